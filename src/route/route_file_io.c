/* Route files on the disk: read whole within a bound, written beside and renamed, so that no reader ever sees half a
 * file. Knows nothing of what the text means.
 * SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/status.h"
#include "route/route_file.h"

enum { FILE_BYTES_MAX = 64 << 20, TEMPORARY_NAMES_MAX = 1000 };

static fp8r_status io_failure(const char *path, const char *what, int error)
{
    char reason[128] = "unknown error";
    (void)strerror_r(error, reason, sizeof reason);
    return fp8r_fail(FP8R_ERROR_IO, "%.300s: %s: %s", path, what, reason);
}

/* Opens a regular file. A pipe must not block the open, and a device must not be read without end. */
static fp8r_status open_regular(const char *path, int *descriptor, size_t *size)
{
    struct stat facts;
    int opened = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (opened < 0)
        return io_failure(path, "cannot be opened", errno);
    if (fstat(opened, &facts) != 0 || !S_ISREG(facts.st_mode)) {
        close(opened);
        return fp8r_fail(FP8R_ERROR_IO, "%.300s: it is not a regular file", path);
    }
    if (facts.st_size > FILE_BYTES_MAX) {
        close(opened);
        return fp8r_fail(FP8R_ERROR_FORMAT, "%.300s: a route file has at most 64 MiB, this one has %lld bytes", path,
                         (long long)facts.st_size);
    }
    *descriptor = opened;
    *size = (size_t)facts.st_size;
    return FP8R_OK;
}

/* Reads up to size bytes; a file that shrinks meanwhile shows as cut short. */
static fp8r_status read_all(const char *path, int descriptor, char *text, size_t size, size_t *used)
{
    *used = 0;
    while (*used < size) {
        ssize_t got = read(descriptor, text + *used, size - *used);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return io_failure(path, "cannot be read", errno);
        if (got == 0)
            break;
        *used += (size_t)got;
    }
    return FP8R_OK;
}

fp8r_status fp8r_route_file_read(const char *path, struct fp8r_route_file *file)
{
    int descriptor = -1;
    size_t size = 0, used = 0;
    FP8R_TRY(open_regular(path, &descriptor, &size));
    char *text = malloc(size ? size : 1);
    fp8r_status status = text ? read_all(path, descriptor, text, size, &used) : fp8r_fail_memory("a route file's text");
    if (status == FP8R_OK)
        status = fp8r_route_file_parse(path, text, used, file);
    free(text);
    close(descriptor);
    return status;
}

/* ---- Writing ---- */

/* Makes the directories above path. One that cannot be made shows when the file is opened. */
static fp8r_status make_directories(const char *path)
{
    char *prefix = malloc(strlen(path) + 1);
    if (!prefix)
        return fp8r_fail_memory("a path");
    memcpy(prefix, path, strlen(path) + 1);
    for (char *slash = strchr(prefix + (*prefix == '/'), '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        (void)mkdir(prefix, 0777);
        *slash = '/';
    }
    free(prefix);
    return FP8R_OK;
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

static fp8r_status replace(const char *path, const char *text)
{
    char *beside = NULL;
    int descriptor = -1;
    struct stat facts;
    if (stat(path, &facts) == 0 && !S_ISREG(facts.st_mode)) /* a rename would replace a device or a pipe */
        return fp8r_fail(FP8R_ERROR_IO, "%.300s: it is there and not a regular file", path);
    FP8R_TRY(make_directories(path));
    FP8R_TRY(open_temporary(path, &beside, &descriptor));
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

/* What would not be read back is not written. */
fp8r_status fp8r_route_file_write(const char *path, const struct fp8r_route_file *file)
{
    struct fp8r_route_file back;
    char *text = NULL;
    FP8R_TRY(fp8r_route_file_format(file, &text));
    fp8r_status status = fp8r_route_file_parse(path, text, strlen(text), &back);
    if (status == FP8R_OK) {
        fp8r_route_file_fini(&back);
        status = replace(path, text);
    }
    free(text);
    return status;
}
