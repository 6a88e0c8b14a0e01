/* Formats the program's error line. Knows nothing of what failed; keeps whatever text it is given on one line and
 * free of control characters. */
#include "tool_error.h"

#include <stdarg.h>
#include <stdio.h>

int fp8r_tool_error_set(struct fp8r_tool_error *error, int exit_code, const char *format, ...)
{
    if (error == NULL) return exit_code;
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(error->text, sizeof error->text, format, arguments);
    va_end(arguments);
    if (length < 0) error->text[0] = '\0';
    for (char *c = error->text; *c != '\0'; c++) {
        if ((unsigned char)*c < 0x20 || *c == 0x7f) *c = '?';
    }
    error->exit_code = exit_code;
    return exit_code;
}

int fp8r_tool_error_memory(struct fp8r_tool_error *error, const char *what)
{
    return fp8r_tool_error_set(error, FP8R_EXIT_INTERNAL, "out of memory: no room for %s", what);
}
