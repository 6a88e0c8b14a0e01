/* A directory of a test's own, and small files in it.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_SCRATCH_H
#define FP8R_SCRATCH_H

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SCRATCH_BYTES = 512 };

static char scratch_root[64];

/* SCRATCH/name; a few results stay valid at a time. */
static inline const char *scratch_path(const char *name)
{
    static char paths[64][SCRATCH_BYTES];
    static int next;
    char *path = paths[next++ % 64];
    (void)snprintf(path, SCRATCH_BYTES, "%s/%s", scratch_root, name);
    return path;
}

static inline void scratch_remove(const char *path)
{
    struct stat facts;
    if (lstat(path, &facts) != 0)
        return;
    if (!S_ISDIR(facts.st_mode)) {
        (void)unlink(path);
        return;
    }
    (void)chmod(path, 0700);
    DIR *directory = opendir(path);
    for (struct dirent *entry; directory && (entry = readdir(directory));) {
        char inner[SCRATCH_BYTES];
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        if (snprintf(inner, sizeof inner, "%s/%s", path, entry->d_name) < (int)sizeof inner)
            scratch_remove(inner);
    }
    if (directory)
        (void)closedir(directory);
    (void)rmdir(path);
}

static inline int scratch_setup(void **state)
{
    (void)state;
    (void)snprintf(scratch_root, sizeof scratch_root, "/tmp/fp8r-routes-XXXXXX");
    return mkdtemp(scratch_root) ? chmod(scratch_root, 0755) : -1;
}

static inline int scratch_teardown(void **state)
{
    (void)state;
    scratch_remove(scratch_root);
    return 0;
}

/* How many names the directory holds. */
static inline int scratch_count(const char *path)
{
    int count = -2; /* . and .. */
    DIR *directory = opendir(path);
    if (!directory)
        return -1;
    while (readdir(directory))
        count++;
    (void)closedir(directory);
    return count;
}

static inline void scratch_write(const char *path, const char *text, size_t size)
{
    FILE *stream = fopen(path, "wb");
    if (!stream || fwrite(text, 1, size, stream) != size || fclose(stream) != 0)
        abort();
}

#endif
