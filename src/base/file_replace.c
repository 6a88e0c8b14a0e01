/* Written beside and renamed, so that no reader ever sees half a file and a failure leaves the old one.
 * SPDX-License-Identifier: Apache-2.0 */
#define _XOPEN_SOURCE 700 /* realpath */
#include "base/file_replace.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/status.h"

enum { TEMPORARY_NAMES_MAX = 1000 };

static fp8r_status io_failure(const char *path, const char *what, int error)
{
    char reason[128] = "unknown error";
    (void)strerror_r(error, reason, sizeof reason);
    return fp8r_fail(FP8R_ERROR_IO, "%.300s: %s: %s", path, what, reason);
}

static bool is_directory(const char *path)
{
    struct stat facts;
    return stat(path, &facts) == 0 && S_ISDIR(facts.st_mode);
}

/* Makes the directories above path. Where a file stands in the place of one, that shows when the file is opened. */
static fp8r_status make_directories(const char *path)
{
    char *prefix = malloc(strlen(path) + 1);
    if (!prefix)
        return fp8r_fail_memory("a path");
    memcpy(prefix, path, strlen(path) + 1);
    fp8r_status status = FP8R_OK;
    for (char *slash = strchr(prefix + (*prefix == '/'), '/'); slash && status == FP8R_OK; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        int reason = mkdir(prefix, 0777) != 0 ? errno : 0;
        if (reason != 0 && reason != EEXIST && !is_directory(prefix))
            status = io_failure(prefix, "cannot be made", reason);
        *slash = '/';
    }
    free(prefix);
    return status;
}

/* Opens a new file beside path, under a name that nobody else has. *name is the caller's to free. */
static fp8r_status open_temporary(const char *path, char **name, int *descriptor)
{
    size_t size = strlen(path) + 64;
    char *beside = malloc(size);
    if (!beside)
        return fp8r_fail_memory("a path");
    int opened = -1;
    for (int i = 0; opened < 0 && i < TEMPORARY_NAMES_MAX; i++) {
        snprintf(beside, size, "%s.%ld-%d.tmp", path, (long)getpid(), i);
        opened = open(beside, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (opened < 0 && errno != EEXIST)
            break;
    }
    if (opened < 0) {
        fp8r_status status = io_failure(beside, "cannot be made", errno);
        free(beside);
        return status;
    }
    *name = beside;
    *descriptor = opened;
    return FP8R_OK;
}

static fp8r_status write_all(const char *path, int descriptor, const char *text)
{
    for (size_t left = strlen(text); left > 0;) {
        ssize_t put = write(descriptor, text, left);
        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0)
            return io_failure(path, "cannot be written", errno);
        text += put;
        left -= (size_t)put;
    }
    return fsync(descriptor) == 0 ? FP8R_OK : io_failure(path, "cannot be written", errno);
}

/* The new name is on the disk once its directory is. Not every file system can do that, and the file is whole anyway.
 * beside: a path in that directory, cut here. */
static void sync_directory(char *beside)
{
    char *slash = strrchr(beside, '/');
    if (slash)
        slash[slash == beside] = '\0';
    int opened = open(slash ? beside : ".", O_RDONLY | O_CLOEXEC | O_DIRECTORY);
    if (opened >= 0) {
        (void)fsync(opened);
        close(opened);
    }
}

/* The file that a name stands for: of a symbolic link the one that it leads to, or a rename would replace the link and leave
 * that file as it was. *file is the caller's to free. */
static fp8r_status follow(const char *path, char **file)
{
    struct stat facts;
    if (stat(path, &facts) == 0 && !S_ISREG(facts.st_mode)) /* a rename would replace a device or a pipe */
        return fp8r_fail(FP8R_ERROR_IO, "%.300s: it is there and not a regular file", path);
    if (lstat(path, &facts) == 0 && S_ISLNK(facts.st_mode)) {
        *file = realpath(path, NULL);
        return *file ? FP8R_OK : io_failure(path, "it is a symbolic link that cannot be followed", errno);
    }
    *file = malloc(strlen(path) + 1);
    if (!*file)
        return fp8r_fail_memory("a path");
    memcpy(*file, path, strlen(path) + 1);
    return FP8R_OK;
}

static fp8r_status open_beside(const char *path, char **beside, int *descriptor)
{
    FP8R_TRY(make_directories(path));
    return open_temporary(path, beside, descriptor);
}

static fp8r_status probe(const char *path)
{
    char *beside = NULL;
    int descriptor = -1;
    FP8R_TRY(open_beside(path, &beside, &descriptor));
    close(descriptor);
    (void)unlink(beside);
    free(beside);
    return FP8R_OK;
}

static fp8r_status replace(const char *path, const char *text)
{
    char *beside = NULL;
    int descriptor = -1;
    FP8R_TRY(open_beside(path, &beside, &descriptor));
    fp8r_status status = write_all(path, descriptor, text);
    if (close(descriptor) != 0 && status == FP8R_OK)
        status = io_failure(path, "cannot be written", errno);
    if (status == FP8R_OK && rename(beside, path) != 0)
        status = io_failure(path, "cannot be replaced", errno);
    if (status == FP8R_OK)
        sync_directory(beside);
    else
        (void)unlink(beside);
    free(beside);
    return status;
}

fp8r_status fp8r_file_probe(const char *path)
{
    char *file = NULL;
    FP8R_TRY(follow(path, &file));
    fp8r_status status = probe(file);
    free(file);
    return status;
}

fp8r_status fp8r_file_replace(const char *path, const char *text)
{
    char *file = NULL;
    FP8R_TRY(follow(path, &file));
    fp8r_status status = replace(file, text);
    free(file);
    return status;
}
