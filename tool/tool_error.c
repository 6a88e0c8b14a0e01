/* Formats the program's error line. Knows nothing of what failed; keeps whatever text it is given on one line
 * and free of control characters. SPDX-License-Identifier: Apache-2.0 */
#include "tool_error.h"

#include <stdarg.h>
#include <stdio.h>

/* Bytes of the printable UTF-8 character at text; 0 for control characters (C1 ones included) and bad or
 * cut-off sequences. Overlong forms and surrogates are bad. */
static size_t printable_bytes(const unsigned char *text)
{
    if (text[0] < 0x80) return text[0] < 0x20 || text[0] == 0x7f ? 0 : 1;
    size_t bytes = text[0] < 0xc2 ? 0 : text[0] < 0xe0 ? 2 : text[0] < 0xf0 ? 3 : text[0] < 0xf5 ? 4 : 0;
    for (size_t i = 1; i < bytes; i++) {
        if ((text[i] & 0xc0) != 0x80) return 0;
    }
    if (text[0] == 0xc2 && text[1] < 0xa0) return 0;
    if ((text[0] == 0xe0 && text[1] < 0xa0) || (text[0] == 0xed && text[1] >= 0xa0)) return 0;
    if ((text[0] == 0xf0 && text[1] < 0x90) || (text[0] == 0xf4 && text[1] >= 0x90)) return 0;
    return bytes;
}

int fp8r_tool_error_set(struct fp8r_tool_error *error, int exit_code, const char *format, ...)
{
    if (error == NULL) return exit_code;
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(error->text, sizeof error->text, format, arguments);
    va_end(arguments);
    if (length < 0) error->text[0] = '\0';
    for (unsigned char *c = (unsigned char *)error->text; *c != '\0';) {
        size_t bytes = printable_bytes(c);
        if (bytes == 0) *c++ = '?';
        c += bytes;
    }
    error->exit_code = exit_code;
    return exit_code;
}

int fp8r_tool_error_memory(struct fp8r_tool_error *error, const char *what)
{
    return fp8r_tool_error_set(error, FP8R_EXIT_INTERNAL, "out of memory: no room for %s", what);
}

int fp8r_tool_error_join(struct fp8r_tool_error *error, int code, const struct fp8r_tool_error *other, int other_code)
{
    if (other_code == FP8R_EXIT_GOOD) return code;
    const struct fp8r_tool_error first = *error;
    return fp8r_tool_error_set(error, fp8r_exit_worse(code, other_code), "%s%s%s", first.text, *first.text ? "; " : "",
                               other->text);
}

int fp8r_exit_worse(int a, int b)
{
    static const int worst_first[] = {FP8R_EXIT_INTERRUPTED, FP8R_EXIT_USAGE,        FP8R_EXIT_INTERNAL,
                                      FP8R_EXIT_BAD_DATA,    FP8R_EXIT_FAILED,       FP8R_EXIT_INCONCLUSIVE,
                                      FP8R_EXIT_UNMEASURED,  FP8R_EXIT_GOOD};
    for (size_t i = 0; i < sizeof worst_first / sizeof *worst_first; i++)
        if (a == worst_first[i] || b == worst_first[i])
            return worst_first[i];
    return FP8R_EXIT_INTERNAL;
}
