/* The routes of a quick tune.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tune/quick_routes.h"

#include <stdlib.h>

#include "tool_status.h"

static int user_path(const fp8r_context *context, char path[FP8R_MACHINE_PATH_BYTES], struct fp8r_tool_error *error)
{
    fp8r_machine_user_path(context, path);
    return *path ? FP8R_EXIT_GOOD
                 : fp8r_tool_error_set(error, FP8R_EXIT_USAGE, "%s: --out FILE says where routes go",
                                       fp8r_machine_why_no_path());
}

int fp8r_quick_routes_open(struct fp8r_quick_routes *routes, const fp8r_context *context,
                           const struct fp8r_tune_families *families, const char *path, struct fp8r_tool_error *error)
{
    char own[FP8R_MACHINE_PATH_BYTES];
    *routes = (struct fp8r_quick_routes){.file = {.is_quick = true,
                                                  .mode = families->mode,
                                                  .is_behind_both = fp8r_machine_is_behind_both(families->mode)}};
    fp8r_machine_facts(context, &routes->file);
    int code = path ? FP8R_EXIT_GOOD : user_path(context, own, error);
    if (code == FP8R_EXIT_GOOD) code = fp8r_machine_identity(context, &routes->file.identity, error);
    if (code == FP8R_EXIT_GOOD)
        code = fp8r_route_update_open(&routes->update, path ? path : own, &routes->file, error);
    return code == FP8R_EXIT_GOOD ? fp8r_route_update_admits_quick(&routes->update, families, error) : code;
}

int fp8r_quick_routes_add(struct fp8r_quick_routes *routes, const struct fp8r_tune_family *family,
                          const struct fp8r_points *points, struct fp8r_tool_error *error)
{
    if (points->count == 0) return FP8R_EXIT_GOOD;
    struct fp8r_table one = {.entries = calloc(1, sizeof *one.entries), .count = 1};
    struct fp8r_segment *segments = calloc(points->count, sizeof *segments);
    if (!one.entries || !segments) {
        free(one.entries);
        free(segments);
        return fp8r_tool_error_memory(error, "the routes");
    }
    one.entries[0] = (struct fp8r_entry){.key = family->key, .is_quick = true, .segments = segments};
    one.entries[0].segment_count = fp8r_points_segments(points, segments);
    if (fp8r_table_merge(&routes->file.table, &one)) return FP8R_EXIT_GOOD;
    fp8r_table_fini(&one);
    return fp8r_tool_error_memory(error, "the routes");
}

int fp8r_quick_routes_write(struct fp8r_quick_routes *routes, bool is_cold, void (*note)(void *user, const char *line), void *user,
                            struct fp8r_tool_error *error)
{
    routes->file.is_cold = is_cold;
    return fp8r_route_update_write(&routes->update, &routes->file, NULL, note, user, error);
}

void fp8r_quick_routes_close(struct fp8r_quick_routes *routes)
{
    fp8r_route_file_fini(&routes->file);
    fp8r_route_update_close(&routes->update);
}
