/* Collects cells, measures columns, prints.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/text_table.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum { GAP_COLUMNS = 2 };

void fp8r_text_table_init(struct fp8r_text_table *table, const char *const *headings, size_t columns)
{
    *table = (struct fp8r_text_table){.columns = columns};
    for (size_t i = 0; i < columns; i++)
        table->headings[i] = headings[i];
}

static bool grow(struct fp8r_text_table *table)
{
    if (table->count < table->capacity) return true;
    size_t capacity = table->capacity ? 2 * table->capacity : 64;
    struct fp8r_text_cell *cells = realloc(table->cells, capacity * sizeof *cells);
    if (!cells) return false;
    table->cells = cells;
    table->capacity = capacity;
    return true;
}

void fp8r_text_table_add(struct fp8r_text_table *table, enum fp8r_style style, const char *format, ...)
{
    char text[1280]; /* longer than any sentence or note of the library */
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    for (char *at = text; *at; at++)
        if ((unsigned char)*at < 0x20 || *at == 0x7F) *at = '?';
    char *copy = grow(table) ? strdup(text) : NULL;
    if (copy)
        table->cells[table->count++] = (struct fp8r_text_cell){copy, style};
    else
        table->is_short = true;
}

static const char *heading_text(const char *heading)
{
    return heading + (*heading == '>');
}

/* Characters of UTF-8 text: all bytes but continuations. */
static size_t width_of(const char *text)
{
    size_t width = 0;
    for (; *text; text++)
        width += ((unsigned char)*text & 0xC0) != 0x80;
    return width;
}

static void print_cell(FILE *stream, const char *text, enum fp8r_style style, size_t width, bool to_right,
                       bool is_last)
{
    int fill = (int)(width - width_of(text));
    const char *begin = style == FP8R_STYLE_NONE ? "" : fp8r_style(stream, style);
    fprintf(stream, "%*s%s%s%s", to_right ? fill : 0, "", begin, text,
            *begin ? fp8r_style(stream, FP8R_STYLE_NONE) : "");
    if (!is_last) fprintf(stream, "%*s", (to_right ? 0 : fill) + GAP_COLUMNS, "");
}

/* Empty cells at the end leave no blanks behind. */
static void print_row(const struct fp8r_text_table *table, FILE *stream, const size_t *widths, size_t first)
{
    size_t last = table->columns - 1;
    while (last > 0 && !*table->cells[first + last].text)
        last--;
    for (size_t i = 0; i <= last; i++) {
        const struct fp8r_text_cell *cell = &table->cells[first + i];
        print_cell(stream, cell->text, cell->style, widths[i], *table->headings[i] == '>', i == last);
    }
    fputc('\n', stream);
}

static void print_headings(const struct fp8r_text_table *table, FILE *stream, const size_t *widths)
{
    size_t last = table->columns - 1;
    while (last > 0 && !*heading_text(table->headings[last]))
        last--;
    for (size_t i = 0; i <= last; i++)
        print_cell(stream, heading_text(table->headings[i]), FP8R_STYLE_BOLD, widths[i],
                   *table->headings[i] == '>', i == last);
    fputc('\n', stream);
}

int fp8r_text_table_print(struct fp8r_text_table *table, FILE *stream, struct fp8r_tool_error *error)
{
    size_t widths[FP8R_TEXT_COLUMNS_MAX];
    size_t rows = table->count / table->columns;
    for (size_t i = 0; i < table->columns; i++) {
        widths[i] = width_of(heading_text(table->headings[i]));
        for (size_t j = 0; j < rows; j++) {
            size_t width = width_of(table->cells[j * table->columns + i].text);
            widths[i] = width > widths[i] ? width : widths[i];
        }
    }
    if (!table->is_short) {
        print_headings(table, stream, widths);
        for (size_t j = 0; j < rows; j++)
            print_row(table, stream, widths, j * table->columns);
    }
    for (size_t i = 0; i < table->count; i++)
        free(table->cells[i].text);
    free(table->cells);
    bool is_short = table->is_short;
    *table = (struct fp8r_text_table){0};
    return is_short ? fp8r_tool_error_memory(error, "a table") : FP8R_EXIT_GOOD;
}
