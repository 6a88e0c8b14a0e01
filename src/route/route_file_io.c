/* Route files on the disk: read whole within a bound, written whole. Knows nothing of what the text means.
 * SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file_replace.h"
#include "base/status.h"
#include "route/route_file.h"

enum { FILE_BYTES_MAX = 64 << 20 };

static fp8r_status io_failure(const char *path, const char *what, int error)
{
    char reason[128] = "unknown error";
    (void)strerror_r(error, reason, sizeof reason);
    return fp8r_fail(FP8R_ERROR_IO, "%.300s: %s: %s", path, what, reason);
}

static fp8r_status check_size(const char *path, long long bytes)
{
    if (bytes <= FILE_BYTES_MAX)
        return FP8R_OK;
    return fp8r_fail(FP8R_ERROR_FORMAT, "%.300s: a route file has at most 64 MiB, this one has %lld bytes", path, bytes);
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
    fp8r_status status = check_size(path, facts.st_size);
    if (status != FP8R_OK) {
        close(opened);
        return status;
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

fp8r_status fp8r_route_file_probe(const char *path)
{
    return fp8r_file_probe(path);
}

/* What would not be read back is not written. */
fp8r_status fp8r_route_file_write(const char *path, const struct fp8r_route_file *file)
{
    struct fp8r_route_file back;
    char *text = NULL;
    FP8R_TRY(fp8r_route_file_format(file, &text));
    const size_t size = strlen(text);
    fp8r_status status = check_size(path, (long long)size);
    if (status == FP8R_OK)
        status = fp8r_route_file_parse(path, text, size, &back);
    if (status == FP8R_OK) {
        fp8r_route_file_fini(&back);
        status = fp8r_file_replace(path, text);
    }
    free(text);
    return status;
}
