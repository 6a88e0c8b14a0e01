/* Man pages in roff.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/manual.h"

#include <ctype.h>
#include <string.h>

#include <fp8route/fp8route.h>

#include "cli/options.h"

/* The day that the pages' content last changed, so that a build makes the same bytes every time. */
#define PAGE_DATE "2026-11-29"

enum { LINE_COLUMNS = 70 };

/* Text in which nothing is a request: dashes stay dashes, a line cannot begin with a dot. Where `wrap`, long
 * lines are broken at their spaces. */
static void put_text(FILE *stream, const char *text, size_t length, bool wrap)
{
    int column = 0;
    for (size_t i = 0; i < length; i++) {
        char c = wrap && text[i] == ' ' && column > LINE_COLUMNS ? '\n' : text[i];
        if (column == 0 && (c == '.' || c == '\'')) fputs("\\&", stream);
        column = c == '\n' ? 0 : column + 1;
        if (c == '\\')
            fputs("\\e", stream);
        else if (c == '-')
            fputs("\\-", stream);
        else
            fputc(c, stream);
    }
}

static void put_string(FILE *stream, const char *text)
{
    put_text(stream, text, strlen(text), true);
}

static void put_paragraphs(FILE *stream, const char *text)
{
    while (*text) {
        const char *end = strstr(text, "\n\n");
        size_t length = end ? (size_t)(end - text) : strlen(text);
        put_text(stream, text, length, true);
        fputs(end ? "\n.PP\n" : "\n", stream);
        text += length + (end ? 2 : 0);
    }
}

static void put_lines(FILE *stream, const char *text)
{
    fputs(".nf\n", stream);
    put_text(stream, text, strlen(text), false);
    fputs("\n.fi\n", stream);
}

static void put_title(FILE *stream, const char *verb, const char *summary)
{
    fprintf(stream, ".TH FP8ROUTE%s", verb ? "\\-" : "");
    for (const char *at = verb ? verb : ""; *at; at++)
        fputc(toupper((unsigned char)*at), stream);
    fprintf(stream, " 1 \"%s\" \"fp8route %d.%d.%d\" \"User Commands\"\n.SH NAME\nfp8route%s%s \\- ",
            PAGE_DATE, FP8R_VERSION_MAJOR, FP8R_VERSION_MINOR, FP8R_VERSION_PATCH, verb ? "\\-" : "",
            verb ? verb : "");
    put_string(stream, summary);
    fputs("\n.SH SYNOPSIS\n", stream);
}

static bool ends_sentence(const char *text)
{
    size_t length = strlen(text);
    return length > 0 && strchr(".?!", text[length - 1]);
}

static void put_item(FILE *stream, const char *name, const char *value, const char *text)
{
    fputs(".TP\n.B ", stream);
    put_string(stream, name);
    if (value) {
        fputs(" \\fI", stream);
        put_string(stream, value);
        fputs("\\fR", stream);
    }
    fputc('\n', stream);
    put_string(stream, text);
    fputs(ends_sentence(text) ? "\n" : ".\n", stream);
}

static void put_items(FILE *stream, const char *heading, const struct fp8r_manual_item *items)
{
    fprintf(stream, ".SH %s\n", heading);
    for (; items->name; items++)
        put_item(stream, items->name, NULL, items->text);
}

static void put_options(const struct fp8r_verb *verb, FILE *stream)
{
    struct fp8r_option_table tables[FP8R_OPTION_TABLES];
    char name[64], value[64];
    fp8r_options_tables(verb, tables);
    fputs(".SH OPTIONS\n", stream);
    for (int i = 0; i < FP8R_OPTION_TABLES; i++) {
        for (size_t j = 0; j < tables[i].count; j++) {
            const struct fp8r_option *option = &tables[i].options[j];
            snprintf(name, sizeof name, "--%s", option->name);
            snprintf(value, sizeof value, "%s%s", option->value ? option->value : "",
                     option->kind == FP8R_OPTION_LIST ? "..." : "");
            put_item(stream, name, option->value ? value : NULL, option->help);
        }
    }
}

static void put_verb_page(const struct fp8r_verb *verb, FILE *stream)
{
    put_title(stream, verb->name, verb->summary);
    fprintf(stream, ".B fp8route %s\n", verb->name);
    fputs("[\\fIOPTION\\fR]...\n", stream);
    if (*verb->words) {
        put_string(stream, verb->words);
        fputc('\n', stream);
    }
    fputs(".SH DESCRIPTION\n", stream);
    put_paragraphs(stream, verb->description);
    put_options(verb, stream);
    put_items(stream, "EXIT STATUS", fp8r_manual_exits);
    if (verb->examples) {
        fputs(".SH EXAMPLES\n", stream);
        put_lines(stream, verb->examples);
    }
    fputs(".SH SEE ALSO\n.BR fp8route (1)\n", stream);
}

static void put_program_page(FILE *stream)
{
    put_title(stream, NULL, "FP8 matrix products, each sent to the backend measured fastest on this machine");
    fputs(".B fp8route\n.I VERB\n[\\fIOPTION\\fR]... [\\fIWORD\\fR]...\n.SH DESCRIPTION\n", stream);
    put_paragraphs(
        stream,
        "Runs, explains, measures and checks FP8 matrix products on the backends of this machine. Each "
        "verb has a page of its own.");
    fputs(".SH VERBS\n", stream);
    for (size_t i = 0; fp8r_verb_at(i); i++)
        put_item(stream, fp8r_verb_at(i)->name, NULL, fp8r_verb_at(i)->summary);
    put_items(stream, "EXIT STATUS", fp8r_manual_exits);
    put_items(stream, "ENVIRONMENT", fp8r_manual_environment);
    fputs(".SH SEE ALSO\n", stream);
    for (size_t i = 0; fp8r_verb_at(i); i++)
        fprintf(stream, ".BR fp8route\\-%s (1)%s\n", fp8r_verb_at(i)->name, fp8r_verb_at(i + 1) ? "," : "");
}

void fp8r_manual_print_page(const struct fp8r_verb *verb, FILE *stream)
{
    if (verb)
        put_verb_page(verb, stream);
    else
        put_program_page(stream);
}
