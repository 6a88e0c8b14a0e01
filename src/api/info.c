/* What a context holds, for people and tuners: device facts, backends, route files.
 * SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "api/context.h"
#include "base/reason.h"
#include "base/status.h"
#include "route/search.h"

const struct fp8r_device_facts *fp8r_context_device(const fp8r_context *context)
{
    return context ? &context->device : NULL;
}

size_t fp8r_context_backend_count(const fp8r_context *context)
{
    return context ? (size_t)context->registry.count : 0;
}

static const char *library_of(const struct fp8r_row *row)
{
    const char *library = row->fits && row->backend.library ? row->backend.library(row->backend.user) : NULL;
    return library ? library : "";
}

static const char *library_file_of(const struct fp8r_row *row)
{
    const char *file = row->fits && row->backend.library_file ? row->backend.library_file(row->backend.user) : NULL;
    return file ? file : "";
}

fp8r_status fp8r_context_backend(const fp8r_context *context, size_t index, fp8r_backend_info *info)
{
    static const char *const none[] = {NULL};
    if (!context) return fp8r_fail(FP8R_ERROR_INVALID_ARGUMENT, "context is NULL");
    if (!info) return fp8r_fail(FP8R_ERROR_INVALID_ARGUMENT, "info is NULL");
    if (info->struct_size != sizeof *info)
        return fp8r_fail(FP8R_ERROR_INVALID_ARGUMENT,
                         "info->struct_size is %zu: set it to sizeof(fp8r_backend_info), "
                         "%zu",
                         info->struct_size, sizeof *info);
    if (index >= fp8r_context_backend_count(context))
        return fp8r_fail(FP8R_ERROR_INVALID_ARGUMENT, "index is %zu: the context has %d backends", index,
                         context->registry.count);
    const struct fp8r_row *row = &context->registry.rows[index];
    *info = (fp8r_backend_info){.struct_size = sizeof *info,
                                .name = row->backend.name,
                                .description = row->backend.description,
                                .rev = row->backend.rev,
                                .library = library_of(row),
                                .library_file = library_file_of(row),
                                .configs = row->is_built ? row->backend.configs : none,
                                .priority = row->backend.priority,
                                .is_built = row->is_built,
                                .fits = row->fits,
                                .reason = row->fits ? FP8R_REASON_NONE : row->reason.code};
    if (!row->fits) fp8r_reason_sentence(&row->reason, info->sentence, sizeof info->sentence);
    return FP8R_OK;
}

enum { PATH_BYTES = 4096 };

fp8r_status fp8r_context_user_route_file(const fp8r_context *context, char *path, size_t size)
{
    struct fp8r_identity identity;
    if (!context) return fp8r_fail(FP8R_ERROR_INVALID_ARGUMENT, "context is NULL");
    if (!path) return fp8r_fail(FP8R_ERROR_INVALID_ARGUMENT, "path is NULL");
    const char *home = context->environment.cache_home;
    if (!home || *home != '/')
        return fp8r_fail(FP8R_ERROR_NOT_FOUND, "there is no place for the user's routes: neither XDG_CACHE_HOME nor, where it "
                                               "is not set, HOME is an absolute path");
    fp8r_identity_init(&context->device, &context->registry, &identity);
    char whole[PATH_BYTES];
    if (!fp8r_routes_user_path(&context->environment, &identity, whole, sizeof whole) || strlen(whole) >= size)
        return fp8r_fail(FP8R_ERROR_INVALID_ARGUMENT, "size is %zu: the path is longer", size);
    memcpy(path, whole, strlen(whole) + 1);
    return FP8R_OK;
}

const char *fp8r_context_route_file(const fp8r_context *context, size_t index)
{
    return context && index < (size_t)context->table.file_count ? context->table.files[index] : NULL;
}
