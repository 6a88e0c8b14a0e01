/* Help as text.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/manual.h"

#include <string.h>

#include "cli/options.h"
#include "cli/terminal.h"

enum { LINE_COLUMNS = 100, ITEM_COLUMN = 4, TEXT_COLUMN = 26 };

/* Words wrapped from `column` on, which is where the cursor stands at `indent`. */
static void print_wrapped(FILE *stream, const char *text, size_t length, int indent)
{
    const char *end = text + length;
    int column = indent;
    while (text < end) {
        size_t word = strcspn(text, " \n");
        word = word < (size_t)(end - text) ? word : (size_t)(end - text);
        bool is_first = column == indent;
        if (!is_first && column + 1 + (int)word > LINE_COLUMNS) {
            fprintf(stream, "\n%*s", indent, "");
            column = indent;
            is_first = true;
        }
        fprintf(stream, "%s%.*s", is_first ? "" : " ", (int)word, text);
        column += (int)word + !is_first;
        text += word < (size_t)(end - text) ? word + 1 : word;
    }
    fputc('\n', stream);
}

static void print_heading(FILE *stream, const char *heading)
{
    fprintf(stream, "\n%s%s%s\n", fp8r_style(stream, FP8R_STYLE_BOLD), heading,
            fp8r_style(stream, FP8R_STYLE_NONE));
}

static void print_item(FILE *stream, const char *name, const char *text)
{
    int used = fprintf(stream, "%*s%s", ITEM_COLUMN, "", name);
    if (used + 2 > TEXT_COLUMN)
        fprintf(stream, "\n%*s", TEXT_COLUMN, "");
    else
        fprintf(stream, "%*s", TEXT_COLUMN - used, "");
    print_wrapped(stream, text, strlen(text), TEXT_COLUMN);
}

static void print_items(FILE *stream, const char *heading, const struct fp8r_manual_item *items)
{
    print_heading(stream, heading);
    for (; items->name; items++)
        print_item(stream, items->name, items->text);
}

static void print_paragraphs(FILE *stream, const char *text)
{
    while (*text) {
        const char *end = strstr(text, "\n\n");
        size_t length = end ? (size_t)(end - text) : strlen(text);
        print_wrapped(stream, text, length, 0);
        text += length;
        if (end) {
            fputc('\n', stream);
            text += 2;
        }
    }
}

static void print_lines(FILE *stream, const char *heading, const char *text)
{
    print_heading(stream, heading);
    while (*text) {
        size_t length = strcspn(text, "\n");
        fprintf(stream, "%*s%.*s\n", ITEM_COLUMN, "", (int)length, text);
        text += length + (text[length] == '\n');
    }
}

static void print_options(const struct fp8r_verb *verb, FILE *stream)
{
    struct fp8r_option_table tables[FP8R_OPTION_TABLES];
    char name[96];
    fp8r_options_tables(verb, tables);
    print_heading(stream, "Options");
    for (int i = 0; i < FP8R_OPTION_TABLES; i++) {
        for (size_t j = 0; j < tables[i].count; j++) {
            const struct fp8r_option *option = &tables[i].options[j];
            bool is_list = option->kind == FP8R_OPTION_LIST;
            snprintf(name, sizeof name, "--%s%s%s%s", option->name, option->value ? " " : "",
                     option->value ? option->value : "", is_list ? "..." : "");
            print_item(stream, name, option->help);
        }
    }
}

void fp8r_manual_print_help(const struct fp8r_verb *verb, FILE *stream)
{
    fprintf(stream, "fp8route %s: %s\n\nUsage: fp8route %s [OPTION]...%s%s\n\n", verb->name, verb->summary,
            verb->name, *verb->words ? " " : "", verb->words);
    print_paragraphs(stream, verb->description);
    print_options(verb, stream);
    if (verb->examples) print_lines(stream, "Examples", verb->examples);
    fprintf(stream, "\nfp8route help lists exit codes and environment variables.\n");
}

void fp8r_manual_print_program_help(FILE *stream)
{
    fprintf(stream,
            "fp8route: FP8 matrix products, each sent to the backend measured fastest on this machine\n\n"
            "Usage: fp8route VERB [OPTION]... [WORD]...\n");
    print_heading(stream, "Verbs");
    for (size_t i = 0; fp8r_verb_at(i); i++)
        print_item(stream, fp8r_verb_at(i)->name, fp8r_verb_at(i)->summary);
    print_lines(stream, "Problems",
                "[B*]MxNxK[:option]...   out[B,M,N] = a[B,M,K] b[B,K,N], scaled\n"
                "1x4096x14336            one token, e4m3, bf16 out, a scale a row and a column\n"
                "8192x6144x4096:bias     with a bias\n"
                "16*128x512x128:fp16:tensor   a batch of 16, fp16 out, one scale an operand");
    print_lines(stream, "Examples",
                "fp8route info\nfp8route explain 1x4096x14336\nfp8route run 3x1000x777:fp32:bias");
    print_items(stream, "Exit codes", fp8r_manual_exits);
    print_items(stream, "Environment", fp8r_manual_environment);
    fprintf(stream, "\nfp8route VERB --help says more about each.\n");
}
