/* Finding and merging route files. A file that cannot be used is passed over, never an error in a call, except where the
 * caller named it. Knows places and their order; the format and the fit are asked elsewhere.
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE /* dladdr */
#include "route/search.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/status.h"

/* Reads a file of this machine. A foreign one is a FORMAT error that says what differs. */
static fp8r_status read_fitting(const char *path, const struct fp8r_identity *identity, struct fp8r_route_file *file)
{
    char line[256];
    FP8R_TRY(fp8r_route_file_read(path, file));
    if (fp8r_identity_fits(&file->identity, identity, line, sizeof line))
        return FP8R_OK;
    fp8r_route_file_fini(file);
    return fp8r_fail(FP8R_ERROR_FORMAT, "%.200s: %s", path, line);
}

/* Merges the file at path. level: of the line about a file that cannot be used; below ERROR it is then passed over. */
static fp8r_status load(const char *path, int level, const struct fp8r_identity *identity, const struct fp8r_log *log,
                        struct fp8r_table *table)
{
    struct fp8r_route_file file;
    fp8r_status status = read_fitting(path, identity, &file);
    if (status == FP8R_ERROR_OUT_OF_MEMORY || level == FP8R_LOG_ERROR)
        FP8R_TRY(status);
    if (status != FP8R_OK) {
        fp8r_log_line(log, level, "routes not used: %s", fp8r_last_error());
        return FP8R_OK;
    }
    size_t entries = file.table.count;
    bool merged = fp8r_table_merge(table, &file.table);
    fp8r_route_file_fini(&file);
    if (!merged)
        return fp8r_fail_memory("the routes");
    fp8r_log_line(log, FP8R_LOG_DEBUG, "routes: %zu entries of %s", entries, path);
    return FP8R_OK;
}

static int is_route_file(const struct dirent *entry)
{
    size_t length = strlen(entry->d_name), suffix = strlen(".routes");
    return entry->d_name[0] != '.' && length > suffix && strcmp(entry->d_name + length - suffix, ".routes") == 0;
}

/* By bytes: alphasort would ask the locale. */
static int compare_names(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

fp8r_status fp8r_routes_load_directory(const char *directory, const struct fp8r_identity *identity,
                                       const struct fp8r_log *log, struct fp8r_table *table)
{
    struct dirent **names = NULL;
    fp8r_status status = FP8R_OK;
    int count = scandir(directory, &names, is_route_file, compare_names);
    if (count < 0 && errno == ENOMEM)
        return fp8r_fail_memory("the names of route files");
    if (count < 0)
        fp8r_log_line(log, FP8R_LOG_DEBUG, "routes: no directory %s", directory);
    for (int i = 0; i < count; i++) {
        size_t size = strlen(directory) + strlen(names[i]->d_name) + 2;
        char *path = status == FP8R_OK ? malloc(size) : NULL;
        if (path) {
            snprintf(path, size, "%s/%s", directory, names[i]->d_name);
            status = load(path, FP8R_LOG_DEBUG, identity, log, table);
        } else if (status == FP8R_OK) {
            status = fp8r_fail_memory("a path");
        }
        free(path);
        free(names[i]);
    }
    free(names);
    return status;
}

static bool is_directory(const char *path)
{
    struct stat facts;
    return stat(path, &facts) == 0 && S_ISDIR(facts.st_mode);
}

/* The file that this code was loaded from; NULL where it cannot be told. A program that was started by a bare name has
 * that for its path, libraries always have a whole one. */
static char *own_path(void)
{
    static const char anchor; /* any object of this library */
    Dl_info info;
    if (!dladdr(&anchor, &info) || !info.dli_fname)
        return NULL;
    return realpath(strchr(info.dli_fname, '/') ? info.dli_fname : "/proc/self/exe", NULL);
}

/* PREFIX/share/fp8route/routes, where this library was loaded from PREFIX/lib or PREFIX/lib/TRIPLET: an install that was
 * moved keeps its routes. *directory stays NULL where there is no such directory, otherwise it is the caller's to free. */
static fp8r_status find_relocated(char **directory)
{
    static const char beside[] = "/share/fp8route/routes";
    char *library = own_path();
    if (!library)
        return FP8R_OK;
    char *path = malloc(strlen(library) + sizeof beside);
    char *slash = strrchr(library, '/');
    if (!path) {
        free(library);
        return fp8r_fail_memory("a path");
    }
    for (int level = 0; slash && !*directory && level < 3; level++, slash = strrchr(library, '/')) {
        *slash = '\0'; /* first the library's own name, then lib, then lib/TRIPLET's lib */
        snprintf(path, strlen(library) + sizeof beside, "%s%s", library, beside);
        if (level > 0 && is_directory(path))
            *directory = path;
    }
    free(library);
    if (!*directory)
        free(path);
    return FP8R_OK;
}

bool fp8r_routes_user_path(const struct fp8r_environment *environment, const struct fp8r_identity *identity, char *path,
                           size_t size)
{
    char hash[17];
    const char *home = environment->cache_home;
    if (!home || *home != '/') /* a relative one would mean another place in every process */
        return false;
    fp8r_identity_hash(identity, hash);
    int length = snprintf(path, size, "%s/fp8route/%s-%s.routes", home,
                          identity->kind == FP8R_DEVICE_CUDA ? "cuda" : "cpu", hash);
    return length > 0 && (size_t)length < size;
}

static fp8r_status load_all(const struct fp8r_environment *environment, const struct fp8r_identity *identity,
                            const struct fp8r_log *log, struct fp8r_table *table)
{
    char user[4096];
    if (environment->table)
        FP8R_TRY(load(environment->table, FP8R_LOG_WARNING, identity, log, table));
    if (fp8r_routes_user_path(environment, identity, user, sizeof user))
        FP8R_TRY(load(user, FP8R_LOG_DEBUG, identity, log, table));
    FP8R_TRY(fp8r_routes_load_directory(FP8R_SYSTEM_ROUTES, identity, log, table));
    char *relocated = NULL;
    FP8R_TRY(find_relocated(&relocated));
    fp8r_status status =
        fp8r_routes_load_directory(relocated ? relocated : FP8R_SHIPPED_ROUTES, identity, log, table);
    free(relocated);
    return status;
}

fp8r_status fp8r_routes_load(const char *option, bool only_option, const struct fp8r_environment *environment,
                             const struct fp8r_identity *identity, const struct fp8r_log *log, struct fp8r_table *table)
{
    struct fp8r_table made = {0};
    fp8r_status status = option ? load(option, FP8R_LOG_ERROR, identity, log, &made) : FP8R_OK;
    if (status == FP8R_OK && !only_option)
        status = load_all(environment, identity, log, &made);
    if (status == FP8R_OK)
        *table = made;
    else
        fp8r_table_fini(&made);
    return status;
}
