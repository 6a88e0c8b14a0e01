/* Regular files and nothing else. SPDX-License-Identifier: Apache-2.0 */
#include "tool_input.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/sha256.h"

int fp8r_tool_input_descriptor(const char *path, int *descriptor, struct fp8r_tool_error *error)
{
    struct stat facts;
    int opened = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a pipe without a writer must not block */
    if (opened < 0)
        return fp8r_tool_error_set(error, FP8R_EXIT_BAD_DATA, "%.300s cannot be opened: %s", path, strerror(errno));
    if (fstat(opened, &facts) != 0 || !S_ISREG(facts.st_mode)) {
        (void)close(opened);
        return fp8r_tool_error_set(error, FP8R_EXIT_BAD_DATA, "%.300s is not a regular file", path);
    }
    *descriptor = opened;
    return FP8R_EXIT_GOOD;
}

int fp8r_tool_input_stream(const char *path, FILE **stream, struct fp8r_tool_error *error)
{
    int descriptor = -1, code = fp8r_tool_input_descriptor(path, &descriptor, error);
    if (code != FP8R_EXIT_GOOD) return code;
    *stream = fdopen(descriptor, "r");
    if (*stream) return FP8R_EXIT_GOOD;
    (void)close(descriptor);
    return fp8r_tool_error_memory(error, "a file's buffer");
}

int fp8r_tool_input_ended(const char *path, FILE *stream, struct fp8r_tool_error *error)
{
    if (ferror(stream))
        return fp8r_tool_error_set(error, FP8R_EXIT_BAD_DATA, "%.300s cannot be read: %s", path, strerror(errno));
    return feof(stream) ? FP8R_EXIT_GOOD : fp8r_tool_error_memory(error, "a line of a file");
}

int fp8r_tool_input_digest(const char *path, char text[65], struct fp8r_tool_error *error)
{
    struct fp8r_sha256 hash;
    unsigned char bytes[4096], digest[32];
    FILE *stream;
    int code = fp8r_tool_input_stream(path, &stream, error);
    if (code != FP8R_EXIT_GOOD) return code;
    fp8r_sha256_init(&hash);
    for (size_t count; (count = fread(bytes, 1, sizeof bytes, stream)) > 0;)
        fp8r_sha256_add(&hash, bytes, count);
    if (ferror(stream)) code = fp8r_tool_error_set(error, FP8R_EXIT_BAD_DATA, "%.200s cannot be read: %s", path, strerror(errno));
    (void)fclose(stream);
    fp8r_sha256_finish(&hash, digest);
    for (size_t i = 0; i < sizeof digest; i++)
        snprintf(text + 2 * i, 3, "%02x", digest[i]);
    return code;
}
