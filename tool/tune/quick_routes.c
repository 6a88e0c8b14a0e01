/* Adding to a route file.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tune/quick_routes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tool_status.h"

/* Of what is there only the entries are kept: the header is made anew. */
static int take_over(struct fp8r_quick_routes *routes, struct fp8r_route_file *found,
                     struct fp8r_tool_error *error)
{
    char line[256];
    if (!fp8r_identity_fits(&found->identity, &routes->file.identity, line, sizeof line))
        return fp8r_tool_error_set(error, FP8R_EXIT_BAD_DATA, "%s cannot be added to: %s", routes->path,
                                   line);
    if (!found->is_quick)
        return fp8r_tool_error_set(
            error, FP8R_EXIT_USAGE,
            "%s holds full measurements, which a quick tune does not touch: --out names another "
            "file",
            routes->path);
    fp8r_table_fini(&routes->old);
    routes->old = found->table;
    found->table = (struct fp8r_table){0};
    return FP8R_EXIT_GOOD;
}

static int read_old(struct fp8r_quick_routes *routes, struct fp8r_tool_error *error)
{
    struct fp8r_route_file found;
    if (access(routes->path, F_OK) != 0) return FP8R_EXIT_GOOD;
    int code = fp8r_tool_status(error, fp8r_route_file_read(routes->path, &found));
    if (code != FP8R_EXIT_GOOD) return code;
    code = take_over(routes, &found, error);
    fp8r_route_file_fini(&found);
    return code;
}

static int set_path(struct fp8r_quick_routes *routes, const fp8r_context *context, const char *path,
                    struct fp8r_tool_error *error)
{
    if (!path) {
        int code = fp8r_machine_user_path(context, routes->path, error);
        if (code == FP8R_EXIT_GOOD && !routes->path[0])
            return fp8r_tool_error_set(error, FP8R_EXIT_USAGE,
                                       "HOME is not set: --out FILE says where routes go");
        return code;
    }
    int length = snprintf(routes->path, sizeof routes->path, "%s", path);
    if (length < 0 || (size_t)length >= sizeof routes->path)
        return fp8r_tool_error_set(error, FP8R_EXIT_USAGE, "--out: the path is too long");
    return FP8R_EXIT_GOOD;
}

int fp8r_quick_routes_open(struct fp8r_quick_routes *routes, const fp8r_context *context, int mode,
                           const char *path, struct fp8r_tool_error *error)
{
    *routes = (struct fp8r_quick_routes){.file = {.is_quick = true, .mode = mode}};
    fp8r_machine_facts(context, &routes->file);
    int code = set_path(routes, context, path, error);
    if (code == FP8R_EXIT_GOOD) code = fp8r_machine_identity(context, &routes->file.identity, error);
    if (code == FP8R_EXIT_GOOD) code = read_old(routes, error);
    return code == FP8R_EXIT_GOOD ? fp8r_tool_status(error, fp8r_route_file_probe(routes->path)) : code;
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

int fp8r_quick_routes_write(struct fp8r_quick_routes *routes, bool is_cold, struct fp8r_tool_error *error)
{
    routes->file.is_cold = is_cold;
    int code = read_old(routes, error); /* another tuner may have added to it meanwhile */
    if (code != FP8R_EXIT_GOOD) return code;
    if (!fp8r_table_merge(&routes->file.table, &routes->old))
        return fp8r_tool_error_memory(error, "the routes");
    return fp8r_tool_status(error, fp8r_route_file_write(routes->path, &routes->file));
}

void fp8r_quick_routes_close(struct fp8r_quick_routes *routes)
{
    fp8r_route_file_fini(&routes->file);
    fp8r_table_fini(&routes->old);
}
