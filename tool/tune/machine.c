/* Identity and place of a machine's routes.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tune/machine.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <fp8route/backend.h>

#include "measure/read_speed.h"
#include "tool_status.h"

static int add_libraries(const fp8r_context *context, struct fp8r_identity *identity,
                         struct fp8r_tool_error *error)
{
    for (size_t i = 0; i < fp8r_context_backend_count(context); i++) {
        fp8r_backend_info info = {.struct_size = sizeof info};
        int code = fp8r_tool_status(error, fp8r_context_backend(context, i, &info));
        if (code != FP8R_EXIT_GOOD) return code;
        if (!info.fits || !*info.library || identity->library_count == FP8R_LIBRARIES_MAX) continue;
        struct fp8r_library *library = &identity->libraries[identity->library_count++];
        snprintf(library->backend, sizeof library->backend, "%s", info.name);
        snprintf(library->version, sizeof library->version, "%s", info.library);
    }
    return FP8R_EXIT_GOOD;
}

int fp8r_machine_identity(const fp8r_context *context, struct fp8r_identity *identity,
                          struct fp8r_tool_error *error)
{
    struct fp8r_registry *no_rows = calloc(1, sizeof *no_rows);
    if (!no_rows) return fp8r_tool_error_memory(error, "the machine's identity");
    fp8r_identity_init(fp8r_context_device(context), no_rows, identity);
    free(no_rows);
    return add_libraries(context, identity, error);
}

int fp8r_machine_text(const fp8r_context *context, char text[FP8R_MACHINE_TEXT_BYTES],
                      struct fp8r_tool_error *error)
{
    struct fp8r_identity identity;
    int code = fp8r_machine_identity(context, &identity, error);
    if (code == FP8R_EXIT_GOOD) fp8r_identity_format(&identity, text);
    return code;
}

void fp8r_machine_user_path(const fp8r_context *context, char path[FP8R_MACHINE_PATH_BYTES])
{
    if (fp8r_context_user_route_file(context, path, FP8R_MACHINE_PATH_BYTES) != FP8R_OK) path[0] = '\0';
}

const char *fp8r_machine_why_no_path(void)
{
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    bool is_cache = cache && *cache;
    const char *path = is_cache ? cache : home;
    if (!path || !*path) return "HOME is not set";
    if (*path == '/') return is_cache ? "XDG_CACHE_HOME is too long" : "HOME is too long";
    return is_cache ? "XDG_CACHE_HOME is not an absolute path" : "HOME is not an absolute path";
}

void fp8r_machine_fact(struct fp8r_route_file *file, const char *name, const char *value)
{
    struct fp8r_fact *fact = &file->facts[file->fact_count++];
    snprintf(fact->name, sizeof fact->name, "%s", name);
    snprintf(fact->value, sizeof fact->value, "%s", value);
}

void fp8r_machine_facts(const fp8r_context *context, struct fp8r_route_file *file)
{
    uint32_t version = fp8r_version();
    char text[64] = "";
    time_t now = time(NULL);
    struct tm day;
    fp8r_machine_fact(file, "name", fp8r_context_device(context)->name);
    if (gmtime_r(&now, &day) && strftime(text, sizeof text, "%Y-%m-%d", &day) > 0)
        fp8r_machine_fact(file, "date", text);
    snprintf(text, sizeof text, "%u.%u.%u", version / 10000, version / 100 % 100, version % 100);
    fp8r_machine_fact(file, "fp8route", text);
}

bool fp8r_machine_is_behind_both(int mode)
{
    return mode == FP8R_MODE_GRAPH;
}

int fp8r_machine_header(const fp8r_context *context, int mode, bool is_cold, struct fp8r_route_file *header,
                        struct fp8r_tool_error *error)
{
    const struct fp8r_device_facts *facts = fp8r_context_device(context);
    char text[32];
    *header = (struct fp8r_route_file){
        .mode = mode, .is_cold = is_cold, .is_behind_both = fp8r_machine_is_behind_both(mode)};
    fp8r_machine_facts(context, header);
    bool is_read = is_cold && facts->kind == FP8R_DEVICE_CPU; /* a GPU's is in its identity */
    double gbs = is_read ? fp8r_read_speed_gbs(4 * facts->last_level_bytes, facts->threads) : 0;
    if (gbs > 0) {
        snprintf(text, sizeof text, "%.1f", gbs);
        fp8r_machine_fact(header, "read_gbs", text);
    }
    return fp8r_machine_identity(context, &header->identity, error);
}
