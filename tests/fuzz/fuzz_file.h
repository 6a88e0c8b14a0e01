/* An input as a file, for readers that take a path: an unlinked temporary file, reached through /proc.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_FUZZ_FILE_H
#define FP8R_FUZZ_FILE_H

#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Inputs that end in a blank go through a file as well: some do, and most are spared the system calls. */
static inline int fuzz_wants_file(const uint8_t *data, size_t size)
{
    return size > 0 && data[size - 1] == ' ';
}

/* The path of a file that holds data; the next call reuses it. */
static inline const char *fuzz_file(const uint8_t *data, size_t size)
{
    static char path[64];
    static int descriptor = -1;
    if (descriptor < 0) {
        char name[] = "/tmp/fp8r-fuzz-XXXXXX";
        descriptor = mkstemp(name);
        if (descriptor < 0) abort();
        (void)unlink(name);
        (void)snprintf(path, sizeof path, "/proc/self/fd/%d", descriptor);
    }
    if (ftruncate(descriptor, 0) != 0 || pwrite(descriptor, data, size, 0) != (ssize_t)size) abort();
    return path;
}

#endif
