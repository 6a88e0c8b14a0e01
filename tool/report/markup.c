/* The growing text. SPDX-License-Identifier: Apache-2.0 */
#include "report/markup.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void markup_fini(struct markup *markup)
{
    free(markup->text);
    *markup = (struct markup){0};
}

/* Room for `more` bytes and a zero. */
static bool reserve(struct markup *markup, size_t more)
{
    size_t wanted = markup->used + more + 1;
    if (markup->failed || wanted <= markup->size)
        return !markup->failed;
    size_t size = markup->size * 2 > wanted ? markup->size * 2 : wanted + 4096;
    char *grown = realloc(markup->text, size);
    markup->failed = !grown;
    if (grown) {
        markup->text = grown;
        markup->size = size;
    }
    return !markup->failed;
}

void markup_add(struct markup *markup, const char *format, ...)
{
    va_list arguments, again;
    va_start(arguments, format);
    va_copy(again, arguments);
    int length = vsnprintf(NULL, 0, format, arguments);
    if (length >= 0 && reserve(markup, (size_t)length)) {
        vsnprintf(markup->text + markup->used, (size_t)length + 1, format, again);
        markup->used += (size_t)length;
    }
    va_end(again);
    va_end(arguments);
}

void markup_add_text(struct markup *markup, const char *text)
{
    for (; *text; text++) {
        const char *code = *text == '&' ? "&amp;" : *text == '<' ? "&lt;" : *text == '>' ? "&gt;" : *text == '"' ? "&quot;" : NULL;
        size_t length = code ? strlen(code) : 1;
        if (!reserve(markup, length))
            return;
        memcpy(markup->text + markup->used, code ? code : text, length);
        markup->used += length;
        markup->text[markup->used] = '\0';
    }
}

void markup_time(double us, char *text, size_t size)
{
    static const struct {
        double us;
        const char *name;
    } units[] = {{1e6, "s"}, {1e3, "ms"}, {1, "us"}, {1e-3, "ns"}};
    size_t i = 0;
    while (i < 3 && us < units[i].us)
        i++;
    double value = us / units[i].us;
    snprintf(text, size, "%.*f %s", value < 10 ? 2 : value < 100 ? 1 : 0, value, units[i].name);
}
