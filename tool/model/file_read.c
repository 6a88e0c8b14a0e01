/* Positioned reads from regular files. Reads rather than maps: a file that shrinks under a mapping kills the
 * process, under a read it is an error with a line of text.
 * SPDX-License-Identifier: Apache-2.0 */
#include "file_read.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tool_input.h"

/* read(2) moves at most about 2 GiB a call on Linux and answers EINVAL past SSIZE_MAX elsewhere. */
#define READ_STEP_BYTES ((size_t)1 << 30)

static int failed(const char *path, struct fp8r_tool_error *error)
{
    return fp8r_tool_error_set(error, FP8R_EXIT_BAD_DATA, "%.200s: %s", path, strerror(errno));
}

int fp8r_file_open(const char *path, struct fp8r_file *file, struct fp8r_tool_error *error)
{
    struct stat facts;
    int descriptor = -1, code = fp8r_tool_input_descriptor(path, &descriptor, error);
    if (code != FP8R_EXIT_GOOD) return code;
    if (fstat(descriptor, &facts) != 0) {
        int rc = failed(path, error);
        (void)close(descriptor);
        return rc;
    }
    *file = (struct fp8r_file){.path = path, .descriptor = descriptor, .size_bytes = (uint64_t)facts.st_size};
    return FP8R_EXIT_GOOD;
}

int fp8r_file_read(const struct fp8r_file *file, uint64_t offset_bytes, void *to, size_t bytes,
                   struct fp8r_tool_error *error)
{
    size_t done_bytes = 0;
    while (done_bytes < bytes) {
        size_t step = bytes - done_bytes < READ_STEP_BYTES ? bytes - done_bytes : READ_STEP_BYTES;
        ssize_t got = pread(file->descriptor, (char *)to + done_bytes, step,
                            (off_t)(offset_bytes + (uint64_t)done_bytes));
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return failed(file->path, error);
        if (got == 0) {
            return fp8r_tool_error_set(
                error, FP8R_EXIT_BAD_DATA, "%.200s: ends at byte %llu, before byte %llu", file->path,
                (unsigned long long)(offset_bytes + done_bytes), (unsigned long long)(offset_bytes + bytes));
        }
        done_bytes += (size_t)got;
    }
    return FP8R_EXIT_GOOD;
}

void fp8r_file_close(struct fp8r_file *file)
{
    (void)close(file->descriptor);
    file->descriptor = -1;
}

static int text_load(const struct fp8r_file *file, uint64_t limit_bytes, char **text,
                     struct fp8r_tool_error *error)
{
    if (file->size_bytes > limit_bytes || file->size_bytes >= SIZE_MAX) {
        return fp8r_tool_error_set(error, FP8R_EXIT_BAD_DATA, "%.200s: %llu bytes, the limit is %llu",
                                   file->path, (unsigned long long)file->size_bytes,
                                   (unsigned long long)limit_bytes);
    }
    size_t size_bytes = (size_t)file->size_bytes;
    char *buffer = malloc(size_bytes + 1);
    if (buffer == NULL) return fp8r_tool_error_memory(error, "the file's text");
    int rc = fp8r_file_read(file, 0, buffer, size_bytes, error);
    if (rc != FP8R_EXIT_GOOD) {
        free(buffer);
        return rc;
    }
    buffer[size_bytes] = '\0';
    *text = buffer;
    return FP8R_EXIT_GOOD;
}

int fp8r_text_read(const char *path, uint64_t limit_bytes, char **text, size_t *text_bytes,
                   struct fp8r_tool_error *error)
{
    struct fp8r_file file = {0};
    int rc = fp8r_file_open(path, &file, error);
    if (rc != FP8R_EXIT_GOOD) return rc;
    rc = text_load(&file, limit_bytes, text, error);
    if (rc == FP8R_EXIT_GOOD) *text_bytes = (size_t)file.size_bytes;
    fp8r_file_close(&file);
    return rc;
}
