/* Collecting the names of sample files.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tune/sample_files.h"

#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static int no_memory(struct fp8r_tool_error *error)
{
    return fp8r_tool_error_memory(error, "the names of sample files");
}

/* Takes over the path. */
static int add_path(struct fp8r_sample_files *files, char *path, struct fp8r_tool_error *error)
{
    if (path && files->count == files->capacity) {
        size_t capacity = files->capacity ? 2 * files->capacity : 16;
        char **grown = realloc(files->paths, capacity * sizeof *grown);
        if (!grown) {
            free(path);
            return no_memory(error);
        }
        files->paths = grown;
        files->capacity = capacity;
    }
    if (!path)
        return no_memory(error);
    files->paths[files->count++] = path;
    return FP8R_EXIT_GOOD;
}

static int is_sample_file(const struct dirent *entry)
{
    size_t length = strlen(entry->d_name), suffix = strlen(".jsonl");
    return entry->d_name[0] != '.' && length > suffix && strcmp(entry->d_name + length - suffix, ".jsonl") == 0;
}

/* By bytes: alphasort would ask the locale. */
static int compare_names(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static char *join(const char *folder, const char *name)
{
    size_t size = strlen(folder) + strlen(name) + 2;
    char *path = malloc(size);
    if (path)
        snprintf(path, size, "%s%s%s", folder, folder[strlen(folder) - 1] == '/' ? "" : "/", name);
    return path;
}

static int add_folder(struct fp8r_sample_files *files, const char *folder, struct fp8r_tool_error *error)
{
    struct dirent **names = NULL;
    int code = FP8R_EXIT_GOOD, count = scandir(folder, &names, is_sample_file, compare_names);
    if (count < 0)
        return fp8r_tool_error_set(error, errno == ENOMEM ? FP8R_EXIT_INTERNAL : FP8R_EXIT_BAD_DATA,
                                   "%s cannot be listed: %s", folder, strerror(errno));
    if (count == 0)
        code = fp8r_tool_error_set(error, FP8R_EXIT_BAD_DATA, "%s: no sample file (*.jsonl) in this folder", folder);
    for (int i = 0; i < count; i++) {
        if (code == FP8R_EXIT_GOOD)
            code = add_path(files, join(folder, names[i]->d_name), error);
        free(names[i]);
    }
    free(names);
    return code;
}

int fp8r_sample_files_add(struct fp8r_sample_files *files, const char *path, struct fp8r_tool_error *error)
{
    struct stat facts;
    if (stat(path, &facts) != 0)
        return fp8r_tool_error_set(error, FP8R_EXIT_BAD_DATA, "%s cannot be opened: %s", path, strerror(errno));
    return S_ISDIR(facts.st_mode) ? add_folder(files, path, error) : add_path(files, strdup(path), error);
}

void fp8r_sample_files_fini(struct fp8r_sample_files *files)
{
    for (size_t i = 0; i < files->count; i++)
        free(files->paths[i]);
    free(files->paths);
    *files = (struct fp8r_sample_files){0};
}
