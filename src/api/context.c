/* Creating a context: environment, device, backends, routes, in this order; and ending it.
 * SPDX-License-Identifier: Apache-2.0 */
#include "api/context.h"

#include <stdlib.h>
#include <string.h>

#include "api/plan.h"
#include "backend/steps.h"
#include "base/reason.h"
#include "base/sha256.h"
#include "base/status.h"
#include "device/cuda.h"
#include "device/device.h"
#include "route/route_file.h"
#include "route/search.h"

static fp8r_status check_options(const fp8r_context_options *options)
{
    const uint32_t known = FP8R_NO_ENVIRONMENT | FP8R_NO_ROUTE_FILES | FP8R_ROUTED_ONLY | FP8R_EAGER_ROUTES;
    if (options->struct_size != sizeof *options)
        return fp8r_fail(FP8R_ERROR_INVALID_ARGUMENT, "options.struct_size is %zu: set it to sizeof(fp8r_context_options), "
                                                      "%zu", options->struct_size, sizeof *options);
    if (options->threads < 0 || options->threads > 4096)
        return fp8r_fail(FP8R_ERROR_INVALID_ARGUMENT, "options.threads is %d: it must be 1 to 4096, or 0 to choose",
                         (int)options->threads);
    if (options->flags & ~known)
        return fp8r_fail(FP8R_ERROR_INVALID_ARGUMENT, "options.flags is 0x%x: bits of 0x%x are known",
                         (unsigned)options->flags, (unsigned)known);
    return FP8R_OK;
}

static void add_table(struct fp8r_sha256 *hash, const struct fp8r_table *table)
{
    for (size_t i = 0; i < table->count; i++) {
        const struct fp8r_entry *entry = &table->entries[i];
        fp8r_sha256_add(hash, &entry->key, sizeof entry->key);
        for (int j = 0; j < entry->segment_count; j++) {
            const struct fp8r_segment *segment = &entry->segments[j];
            fp8r_sha256_add(hash, &segment->m_first, sizeof segment->m_first);
            fp8r_sha256_add(hash, &segment->m_last, sizeof segment->m_last);
            fp8r_sha256_add(hash, &segment->is_clear, sizeof segment->is_clear);
            fp8r_sha256_add_string(hash, segment->backend);
            fp8r_sha256_add_string(hash, segment->config);
        }
    }
}

/* All that decides: which rows there are and fit, the device facts that they look at, the routes, the policies. */
static void make_routes_id(struct fp8r_context *context)
{
    struct fp8r_sha256 hash;
    fp8r_device_facts facts = context->device;
    memset(facts.name, 0, sizeof facts.name);
    facts.index = 0;
    fp8r_sha256_init(&hash);
    fp8r_sha256_add(&hash, &facts, sizeof facts);
    for (int i = 0; i < context->registry.count; i++) {
        const struct fp8r_row *row = &context->registry.rows[i];
        fp8r_sha256_add_string(&hash, row->backend.name);
        fp8r_sha256_add_string(&hash, row->backend.rev);
        fp8r_sha256_add(&hash, &row->fits, sizeof row->fits);
    }
    add_table(&hash, &context->table);
    fp8r_sha256_add(&hash, &context->router.forced_row, sizeof context->router.forced_row);
    fp8r_sha256_add(&hash, &context->router.forced_config, sizeof context->router.forced_config);
    fp8r_sha256_add(&hash, &context->router.mode, sizeof context->router.mode);
    fp8r_sha256_add(&hash, &context->router.routed_only, sizeof context->router.routed_only);
    fp8r_sha256_finish(&hash, context->routes_id);
}

void fp8r_context_routes_id(const fp8r_context *context, unsigned char id[32])
{
    if (!id)
        return;
    memset(id, 0, 32);
    if (context)
        memcpy(id, context->routes_id, 32);
}

static void set_log(struct fp8r_context *context, const fp8r_context_options *options)
{
    context->log = (struct fp8r_log){.callback = options->log,
                                     .user = options->log_user,
                                     .verbose = context->environment.verbose,
                                     .is_asked_for = context->environment.is_used};
    if (context->environment.complaint[0])
        fp8r_log_line(&context->log, FP8R_LOG_WARNING, "%s", context->environment.complaint);
}

static fp8r_status make_pool(struct fp8r_context *context)
{
    int threads = context->device.kind == FP8R_DEVICE_CPU ? context->device.threads : 1;
    context->pool = fp8r_pool_create(threads);
    if (!context->pool)
        return fp8r_fail_memory("the thread pool");
    context->services = (fp8r_services){.struct_size = sizeof(fp8r_services),
                                        .threads = threads,
                                        .flags = context->environment.launches_plain ? FP8R_LAUNCH_PLAIN : 0,
                                        .pool = context->pool,
                                        .parallel = fp8r_pool_parallel};
    return FP8R_OK;
}

static fp8r_status load_routes(struct fp8r_context *context, const fp8r_context_options *options)
{
    struct fp8r_identity identity;
    fp8r_identity_init(&context->device, &context->registry, &identity);
    return fp8r_routes_load(options->routes, (options->flags & FP8R_NO_ROUTE_FILES) != 0, &context->environment,
                            &identity, &context->log, &context->table);
}

/* An unknown name in FP8ROUTE_BACKEND is warned about and forces nothing. */
static void set_router(struct fp8r_context *context, const fp8r_context_options *options)
{
    context->router = (struct fp8r_router){
        .registry = &context->registry,
        .device = &context->device,
        .table = &context->table,
        .mode = context->cuda && !(options->flags & FP8R_EAGER_ROUTES) ? FP8R_MODE_GRAPH : FP8R_MODE_EAGER,
        .forced_row = -1,
        .forced_config = FP8R_CONFIG_ANY,
        .routed_only = (options->flags & FP8R_ROUTED_ONLY) != 0 || context->environment.unrouted_error};
    if (context->environment.backend &&
        fp8r_registry_resolve(&context->registry, context->environment.backend, &context->router.forced_row,
                              &context->router.forced_config) != FP8R_OK)
        fp8r_log_line(&context->log, FP8R_LOG_WARNING, "FP8ROUTE_BACKEND is ignored: %s", fp8r_last_error());
}

/* A name in FP8ROUTE_DENY that no backend has denies nothing: somebody would believe that it does. */
static void warn_of_denied(struct fp8r_context *context)
{
    for (const char *at = context->environment.deny; at && *at; at += *at == ',') {
        size_t length = strcspn(at, ",");
        if (length > 0 && fp8r_registry_check_name(&context->registry, at, length) != FP8R_OK)
            fp8r_log_line(&context->log, FP8R_LOG_WARNING, "FP8ROUTE_DENY: %s", fp8r_last_error());
        at += length;
    }
}

/* A library that a variable names and that does not serve leaves its backend out: worth a line, as nobody would look for
 * the reason. */
static void warn_of_libraries(struct fp8r_context *context)
{
    static const char *const variables[] = {"FP8ROUTE_BLAS=", "FP8ROUTE_CUBLASLT="};
    for (int i = 0; i < context->registry.count; i++) {
        const struct fp8r_row *row = &context->registry.rows[i];
        char sentence[320];
        fp8r_reason_sentence(&row->reason, sentence, sizeof sentence);
        for (size_t j = 0; !row->fits && j < sizeof variables / sizeof *variables; j++)
            if (strstr(sentence, variables[j]))
                fp8r_log_line(&context->log, FP8R_LOG_WARNING, "backend %s is left out: it %s", row->backend.name,
                              sentence);
    }
}

/* A trace that cannot be written is warned about; products run all the same. */
static void open_trace(struct fp8r_context *context)
{
    if (context->environment.trace && fp8r_trace_create(context->environment.trace, &context->trace) != FP8R_OK)
        fp8r_log_line(&context->log, FP8R_LOG_WARNING, "%s", fp8r_last_error());
}

/* A row's probe may ask the GPU itself, and so do the steps beside products. */
static fp8r_status gate(struct fp8r_context *context)
{
    struct fp8r_cuda_guard guard = {0};
    if (context->cuda)
        FP8R_TRY(fp8r_cuda_enter(context->cuda, &guard));
    fp8r_registry_gate(&context->registry, &context->device, context->environment.deny, true);
    const fp8r_status status = context->cuda ? fp8r_step_load(&context->device) : FP8R_OK;
    fp8r_cuda_leave(&guard);
    return status;
}

static fp8r_status fill(struct fp8r_context *context, fp8r_device device, const fp8r_context_options *options)
{
    FP8R_TRY(check_options(options));
    if (!fp8r_environment_init(&context->environment, (options->flags & FP8R_NO_ENVIRONMENT) == 0))
        return fp8r_fail_memory("the environment's values");
    set_log(context, options);
    int32_t threads = options->threads > 0 ? options->threads : context->environment.threads;
    FP8R_TRY(fp8r_device_facts_read(device, threads, context->environment.cpu_mask, &context->device));
    if (device.kind == FP8R_DEVICE_CUDA)
        FP8R_TRY(fp8r_cuda_open(device.index, &context->cuda));
    FP8R_TRY(make_pool(context));
    FP8R_TRY(fp8r_registry_init(&context->registry, options->backends, options->backend_count));
    FP8R_TRY(gate(context));
    FP8R_TRY(load_routes(context, options));
    set_router(context, options);
    warn_of_denied(context);
    warn_of_libraries(context);
    open_trace(context);
    make_routes_id(context);
    return FP8R_OK;
}

fp8r_status fp8r_context_create(fp8r_device device, const fp8r_context_options *options, fp8r_context **context)
{
    const fp8r_context_options defaults = {.struct_size = sizeof defaults};
    if (!context)
        return fp8r_fail(FP8R_ERROR_INVALID_ARGUMENT, "context is NULL");
    struct fp8r_context *made = calloc(1, sizeof *made);
    if (!made)
        return fp8r_fail_memory("a context");
    fp8r_cache_init(&made->cache);
    fp8r_stream_space_init(&made->stream_space);
    fp8r_status status = fill(made, device, options ? options : &defaults);
    if (status != FP8R_OK) {
        fp8r_context_destroy(made);
        return status;
    }
    fp8r_error_clear(); /* of route files that were passed over */
    *context = made;
    return FP8R_OK;
}

void fp8r_context_destroy(fp8r_context *context)
{
    struct fp8r_cuda_guard guard = {0};
    if (!context)
        return;
    if (context->cuda && fp8r_cuda_enter(context->cuda, &guard) != FP8R_OK)
        fp8r_error_clear(); /* the driver is gone, and with it what was on the device */
    fp8r_cache_fini(&context->cache);
    fp8r_stream_space_fini(&context->stream_space);
    fp8r_cuda_leave(&guard);
    fp8r_cuda_close(context->cuda);
    fp8r_trace_destroy(context->trace);
    fp8r_space_fini(&context->space);
    fp8r_pool_destroy(context->pool);
    fp8r_table_fini(&context->table);
    fp8r_environment_fini(&context->environment);
    free(context);
}
