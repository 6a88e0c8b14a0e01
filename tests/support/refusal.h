/* Allocations that fail on request, in a test linked with --wrap for them: after `allocations_left` more, one is refused.
 * Included by one file a program, since it defines what the linker calls. SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_REFUSAL_H
#define TESTS_REFUSAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/types.h>

static long allocations_left = -1; /* negative: all succeed; it is again once one was refused */

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__real_realloc(void *memory, size_t bytes);
void *__real_aligned_alloc(size_t alignment, size_t bytes);
ssize_t __real_getline(char **line, size_t *size, FILE *file);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);
void *__wrap_realloc(void *memory, size_t bytes);
void *__wrap_aligned_alloc(size_t alignment, size_t bytes);
ssize_t __wrap_getline(char **line, size_t *size, FILE *file);

static bool refuses(void)
{
    return allocations_left >= 0 && allocations_left-- == 0;
}

void *__wrap_malloc(size_t bytes)
{
    return refuses() ? NULL : __real_malloc(bytes);
}

void *__wrap_calloc(size_t count, size_t bytes)
{
    return refuses() ? NULL : __real_calloc(count, bytes);
}

void *__wrap_realloc(void *memory, size_t bytes)
{
    return refuses() ? NULL : __real_realloc(memory, bytes);
}

void *__wrap_aligned_alloc(size_t alignment, size_t bytes)
{
    return refuses() ? NULL : __real_aligned_alloc(alignment, bytes);
}

/* It makes room for the first line inside of the C library, and where that fails it sets neither of the stream's
 * indicators. */
ssize_t __wrap_getline(char **line, size_t *size, FILE *file)
{
    return !*line && refuses() ? -1 : __real_getline(line, size, file);
}

#endif
