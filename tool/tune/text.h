/* Text that grows, for files that are made in memory first. SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_TEXT_H
#define FP8R_TEXT_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

/* Zero-initialise. Once out of memory it stays failed. */
struct fp8r_text {
    char *bytes;
    size_t used, capacity;
    bool is_short;
};

__attribute__((format(printf, 2, 3))) static inline void fp8r_text_add(struct fp8r_text *text,
                                                                       const char *format, ...)
{
    va_list arguments, again;
    va_start(arguments, format);
    va_copy(again, arguments);
    int length = vsnprintf(NULL, 0, format, arguments);
    size_t needed = text->used + (length > 0 ? (size_t)length : 0) + 1;
    if (needed > text->capacity && !text->is_short) {
        char *grown = realloc(text->bytes, 2 * needed);
        text->is_short = !grown;
        text->bytes = grown ? grown : text->bytes;
        text->capacity = grown ? 2 * needed : text->capacity;
    }
    if (!text->is_short && length >= 0) {
        vsnprintf(text->bytes + text->used, text->capacity - text->used, format, again);
        text->used += (size_t)length;
    }
    va_end(again);
    va_end(arguments);
}

/* The text, owned by the caller now; NULL when it ran out of memory. */
static inline char *fp8r_text_take(struct fp8r_text *text)
{
    char *bytes = text->bytes;
    if (text->is_short) {
        free(bytes);
        bytes = NULL;
    }
    *text = (struct fp8r_text){0};
    return bytes;
}

#endif
