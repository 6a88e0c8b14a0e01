/* Adding to a route file.
 * SPDX-License-Identifier: Apache-2.0 */
#define _DEFAULT_SOURCE /* flock, realpath */
#include "tune/route_update.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include "base/sizes.h"
#include "tool_status.h"
#include "tune/lost_rows.h"

static int refuse(const struct fp8r_route_update *update, const char *why, struct fp8r_tool_error *error)
{
    return fp8r_tool_error_set(error, FP8R_EXIT_BAD_DATA, "%.200s cannot be added to: %s; move it away, or name another file",
                               update->path, why);
}

static const char *mode_name(int mode)
{
    return mode == FP8R_MODE_GRAPH ? "graph" : "eager";
}

/* Is what the file holds of the kind that will be measured? A quick tune's operands are as cold as memory allows, which no
 * full measurement is refused for. */
static int check_found(const struct fp8r_route_update *update, struct fp8r_tool_error *error)
{
    const struct fp8r_route_file *found = &update->found, *header = &update->header;
    char why[256];
    if (!fp8r_identity_fits(&found->identity, &header->identity, why, sizeof why))
        return refuse(update, why, error);
    if (found->mode != header->mode) {
        snprintf(why, sizeof why, "it holds routes of mode=%s, and mode=%s is measured now", mode_name(found->mode),
                 mode_name(header->mode));
        return refuse(update, why, error);
    }
    if (found->table.count > 0 && found->is_behind_both != header->is_behind_both)
        return refuse(update, found->is_behind_both
                                  ? "its routes were measured half behind another kernel, and now all behind themselves"
                                  : "its routes were measured behind themselves, and now half behind another kernel", error);
    if (!found->is_quick && !header->is_quick && found->is_cold != header->is_cold)
        return refuse(update, found->is_cold ? "its routes were measured with cold operands, and now they are warm"
                                             : "its routes were measured with warm operands, and now they are cold",
                      error);
    return FP8R_EXIT_GOOD;
}

static int read_found(struct fp8r_route_update *update, struct fp8r_tool_error *error)
{
    fp8r_route_file_fini(&update->found);
    if (access(update->path, F_OK) != 0)
        return FP8R_EXIT_GOOD;
    int code = fp8r_tool_status(error, fp8r_route_file_read(update->path, &update->found));
    if (code == FP8R_EXIT_BAD_DATA) {
        char why[sizeof error->text];
        snprintf(why, sizeof why, "%s", error->text);
        return fp8r_tool_error_set(error, code, "%.400s; move it away, or name another file", why);
    }
    return code == FP8R_EXIT_GOOD ? check_found(update, error) : code;
}

int fp8r_route_update_open(struct fp8r_route_update *update, const char *path, const struct fp8r_route_file *header,
                           struct fp8r_tool_error *error)
{
    *update = (struct fp8r_route_update){.header = *header};
    update->header.table = (struct fp8r_table){0};
    int length = snprintf(update->path, sizeof update->path, "%s", path);
    if (length < 0 || (size_t)length >= sizeof update->path)
        return fp8r_tool_error_set(error, FP8R_EXIT_USAGE, "%.60s...: the path is too long", path);
    int code = fp8r_tool_status(error, fp8r_route_file_probe(update->path));
    return code == FP8R_EXIT_GOOD ? read_found(update, error) : code;
}

int fp8r_route_update_admits_quick(const struct fp8r_route_update *update, const struct fp8r_tune_families *families,
                                   struct fp8r_tool_error *error)
{
    for (size_t i = 0; i < families->count; i++) {
        const struct fp8r_entry *entry = fp8r_table_find(&update->found.table, &families->items[i].key);
        if (entry && !entry->is_quick)
            return fp8r_tool_error_set(error, FP8R_EXIT_USAGE,
                                       "%.200s holds full measurements of %.100s, which a quick tune does not replace: without "
                                       "--quick they are made anew, --out names another file",
                                       update->path, families->items[i].text);
    }
    return FP8R_EXIT_GOOD;
}

/* ---- Writing ---- */

static bool has_library(const struct fp8r_identity *identity, const char *backend)
{
    for (int i = 0; i < identity->library_count; i++)
        if (strcmp(identity->libraries[i].backend, backend) == 0)
            return true;
    return false;
}

static bool has_fact(const struct fp8r_route_file *file, const char *name)
{
    for (int i = 0; i < file->fact_count; i++)
        if (strcmp(file->facts[i].name, name) == 0)
            return true;
    return false;
}

/* What is known here counts; what only the file says (of a library that is not here now) is kept while there is room. */
static void join_headers(const struct fp8r_route_file *found, struct fp8r_route_file *into)
{
    struct fp8r_identity *identity = &into->identity;
    for (int i = 0; i < found->identity.library_count && identity->library_count < FP8R_LIBRARIES_MAX; i++)
        if (!has_library(identity, found->identity.libraries[i].backend))
            identity->libraries[identity->library_count++] = found->identity.libraries[i];
    for (int i = 0; i < found->fact_count && into->fact_count < FP8R_FACTS_MAX; i++)
        if (!has_fact(into, found->facts[i].name))
            into->facts[into->fact_count++] = found->facts[i];
    if (into->is_quick && found->table.count > 0)
        into->is_cold = found->is_cold && (into->is_cold || !found->is_quick);
}

static bool is_all_quick(const struct fp8r_table *table)
{
    for (size_t i = 0; i < table->count; i++)
        if (!table->entries[i].is_quick)
            return false;
    return true;
}

/* Two tunes that end at once take turns, for as long as the descriptor is open. Where there are no locks, or somebody holds
 * this one for seconds, it is done without: -1, or a descriptor all the same. */
static int lock_folder(const char *path)
{
    enum { TRIES = 200, PAUSE_NS = 20000000 };
    char folder[FP8R_MACHINE_PATH_BYTES], *file = realpath(path, NULL); /* one file, whichever link names it */
    snprintf(folder, sizeof folder, "%s", file ? file : path);
    free(file);
    char *slash = strrchr(folder, '/');
    if (slash)
        slash[slash == folder] = '\0';
    int descriptor = open(slash ? folder : ".", O_RDONLY | O_CLOEXEC | O_DIRECTORY);
    for (int i = 0; descriptor >= 0 && i < TRIES && flock(descriptor, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK; i++)
        nanosleep(&(struct timespec){.tv_nsec = PAUSE_NS}, NULL);
    return descriptor;
}

static int merge_and_write(struct fp8r_route_update *update, struct fp8r_route_file *measured, struct fp8r_table *rest,
                           struct fp8r_lost_rows *lost, struct fp8r_tool_error *error)
{
    int code = read_found(update, error);
    if (code != FP8R_EXIT_GOOD)
        return code;
    join_headers(&update->found, measured);
    if (!fp8r_lost_rows_init(lost, &update->found.table, &measured->table, rest) ||
        !fp8r_table_merge(&measured->table, &update->found.table) || (rest && !fp8r_table_merge(&measured->table, rest)))
        return fp8r_tool_error_memory(error, "the routes");
    measured->is_quick = is_all_quick(&measured->table);
    return fp8r_tool_status(error, fp8r_route_file_write(update->path, measured));
}

int fp8r_route_update_write(struct fp8r_route_update *update, struct fp8r_route_file *measured, struct fp8r_table *rest,
                            void (*note)(void *user, const char *line), void *user, struct fp8r_tool_error *error)
{
    struct fp8r_lost_rows lost = {.count = 0};
    int lock = lock_folder(update->path);
    int code = merge_and_write(update, measured, rest, &lost, error);
    if (lock >= 0)
        close(lock);
    for (size_t i = 0; code == FP8R_EXIT_GOOD && i < lost.count; i++)
        note(user, lost.lines[i]);
    fp8r_lost_rows_fini(&lost);
    return code;
}

void fp8r_route_update_close(struct fp8r_route_update *update)
{
    fp8r_route_file_fini(&update->header);
    fp8r_route_file_fini(&update->found);
}
