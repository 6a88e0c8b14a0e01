/* Folders of sample files, in the order of their names.
 * SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tune/samples.h"
#include "tune/samples_grow.h"

static bool is_sample_file(const char *name)
{
    size_t length = strlen(name);
    return length > 6 && strcmp(name + length - 6, ".jsonl") == 0;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The folder's sample files, sorted: memory does not depend on the order in which a folder lists them. */
static int list_files(const char *folder, char ***names, size_t *count, struct fp8r_tool_error *error)
{
    size_t capacity = 0;
    int code = FP8R_EXIT_GOOD;
    DIR *listing = opendir(folder);
    *names = NULL;
    *count = 0;
    if (!listing)
        return fp8r_tool_error_set(error, FP8R_EXIT_BAD_DATA, "%s cannot be listed: %s", folder, strerror(errno));
    for (struct dirent *entry; code == FP8R_EXIT_GOOD && (entry = readdir(listing));) {
        if (!is_sample_file(entry->d_name))
            continue;
        bool grown = samples_grow(names, *count, &capacity);
        char *name = grown ? strdup(entry->d_name) : NULL;
        if (name)
            (*names)[(*count)++] = name;
        else
            code = fp8r_tool_error_memory(error, "the list of sample files");
    }
    closedir(listing);
    if (*count > 0)
        qsort(*names, *count, sizeof **names, compare_names);
    return code;
}

static int read_folder(struct samples *samples, const char *folder, struct fp8r_tool_error *error)
{
    char **names = NULL, path[4096];
    size_t count = 0;
    int code = list_files(folder, &names, &count, error);
    for (size_t i = 0; i < count; i++) {
        if (code == FP8R_EXIT_GOOD && (size_t)snprintf(path, sizeof path, "%s/%s", folder, names[i]) >= sizeof path)
            code = fp8r_tool_error_set(error, FP8R_EXIT_USAGE, "%s: the path is too long", folder);
        if (code == FP8R_EXIT_GOOD)
            code = samples_read_lines(samples, path, error);
        free(names[i]);
    }
    free(names);
    return code;
}

int samples_read_paths(struct samples *samples, const char *const *paths, size_t count, struct fp8r_tool_error *error)
{
    int code = FP8R_EXIT_GOOD;
    for (size_t i = 0; i < count && code == FP8R_EXIT_GOOD; i++) {
        struct stat what;
        bool is_folder = stat(paths[i], &what) == 0 && S_ISDIR(what.st_mode);
        code = is_folder ? read_folder(samples, paths[i], error) : samples_read_lines(samples, paths[i], error);
    }
    return code == FP8R_EXIT_GOOD ? samples_order(samples, error) : code;
}

int samples_read_path(struct samples *samples, const char *path, struct fp8r_tool_error *error)
{
    return samples_read_paths(samples, &path, 1, error);
}
