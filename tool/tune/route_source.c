/* Gathers what both languages say of a route file.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tune/route_source.h"

#include <stdlib.h>
#include <string.h>

#include <fp8route/backend.h>

#include "base/dtype.h"
#include "problem/grammar.h"
#include "tool_status.h"
#include "tune/route_build.h"

int fp8r_language_parse(const char *text, enum fp8r_language *language, struct fp8r_tool_error *error)
{
    if (text && strcmp(text, "c") == 0)
        *language = FP8R_LANGUAGE_C;
    else if (text && strcmp(text, "python") == 0)
        *language = FP8R_LANGUAGE_PYTHON;
    else if (text)
        return fp8r_tool_error_set(error, FP8R_EXIT_USAGE, "--language is \"%.40s\": it must be c or python", text);
    else
        return fp8r_tool_error_set(error, FP8R_EXIT_USAGE, "--language is missing: c or python");
    return FP8R_EXIT_GOOD;
}

/* ---- The name ---- */

/* Words that one of the languages keeps to itself, C++ included. */
static bool is_keyword(const char *name)
{
    static const char words[] =
        " False None True alignas alignof and and_eq as asm assert async auto await bitand bitor bool break case catch char "
        "class compl concept const constexpr continue decltype def default del delete do double dynamic_cast elif else enum "
        "except explicit export extern false finally float for friend from global goto if import in inline int is lambda "
        "long main mutable namespace new noexcept nonlocal not not_eq nullptr operator or or_eq pass private protected "
        "public raise register reinterpret_cast requires restrict return short signed sizeof static static_assert "
        "static_cast struct switch template this thread_local throw true try typedef typeid typename union unsigned using "
        "virtual void volatile wchar_t while with xor xor_eq yield ";
    char spaced[FP8R_FUNCTION_BYTES + 3];
    snprintf(spaced, sizeof spaced, " %s ", name);
    return strstr(words, spaced) != NULL;
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static int check_name(const char *name, struct fp8r_tool_error *error)
{
    size_t length = 0;
    while (is_letter(name[length]) || (length > 0 && name[length] >= '0' && name[length] <= '9'))
        length++;
    if (name[length] != '\0' || length == 0 || length >= FP8R_FUNCTION_BYTES || is_keyword(name))
        return fp8r_tool_error_set(error, FP8R_EXIT_USAGE,
                                   "--function is \"%.80s\": it must be a name of at most %d letters, digits and _ that C "
                                   "and Python leave free", name, FP8R_FUNCTION_BYTES - 1);
    return FP8R_EXIT_GOOD;
}

/* ---- The families ---- */

/* A tie keeps the default; so does a segment whose gain over the default is nothing at all. A gain that is absent says
 * that no default was raced. */
static bool names_default(const struct fp8r_segment *segment)
{
    return segment->gain_low > 0 && (!segment->is_clear || (segment->gain_low == 1 && segment->gain_high == 1));
}

/* The last segment's backend, where the largest M at which the default is known knows it as the default. */
static const char *backend_beyond(const struct fp8r_entry *entry)
{
    const struct fp8r_segment *last = &entry->segments[entry->segment_count - 1];
    for (int i = entry->segment_count - 1; i >= 0; i--)
        if (names_default(&entry->segments[i]))
            return strcmp(entry->segments[i].backend, last->backend) == 0 ? last->backend : NULL;
    return NULL;
}

/* Of two pitches along one extent the smaller element is the harder to align. */
static void add_pitch(int *bytes, int element)
{
    *bytes = *bytes == 0 || element < *bytes ? element : *bytes;
}

static void make_layout(const struct fp8r_key *key, struct fp8r_export_layout *layout)
{
    int a = (int)fp8r_dtype_bytes(key->dtype_a), b = (int)fp8r_dtype_bytes(key->dtype_b);
    int out = (int)fp8r_dtype_bytes(key->dtype_out);
    if (key->layout_a == FP8R_LAYOUT_INNER)
        add_pitch(&layout->k_bytes, a);
    if (key->layout_a == FP8R_LAYOUT_OUTER)
        add_pitch(&layout->m_bytes, a);
    if (key->layout_b == FP8R_LAYOUT_INNER)
        add_pitch(&layout->k_bytes, b);
    if (key->layout_b == FP8R_LAYOUT_OUTER)
        add_pitch(&layout->n_bytes, b);
    if (key->layout_out == FP8R_LAYOUT_INNER)
        add_pitch(&layout->n_bytes, out);
    if (key->layout_out == FP8R_LAYOUT_OUTER)
        add_pitch(&layout->m_bytes, out);
}

/* The number of the layout that these options name, once the alignment at their end is cut off; -1 = there is none. */
static int find_layout(const struct fp8r_export *source, const char *options)
{
    const char *align = strstr(options, ":align=");
    size_t length = align ? (size_t)(align - options) : strlen(options);
    for (int i = 0; i < source->layout_count; i++)
        if (strlen(source->layouts[i].options) == length && memcmp(source->layouts[i].options, options, length) == 0)
            return i;
    return -1;
}

static int add_layout(struct fp8r_export *source, const struct fp8r_key *key, const char *options)
{
    int found = find_layout(source, options);
    if (found >= 0)
        return found;
    struct fp8r_export_layout *layout = &source->layouts[source->layout_count];
    snprintf(layout->options, sizeof layout->options, "%s", options);
    char *align = strstr(layout->options, ":align=");
    if (align)
        *align = '\0';
    make_layout(key, layout);
    return source->layout_count++;
}

/* What the library takes the family's member of one row for. */
static int find_one_row(const struct fp8r_export *source, const struct fp8r_export_family *family, int *layout,
                        struct fp8r_tool_error *error)
{
    fp8r_matmul member;
    struct fp8r_product product;
    struct fp8r_key key;
    char text[FP8R_FAMILY_BYTES];
    fp8r_status status = fp8r_family_member(family->text, 1, &member);
    if (status == FP8R_OK)
        status = fp8r_product_init(&member, FP8R_DATA_IGNORED, &product);
    if (status == FP8R_OK) {
        fp8r_key_init(&product.problem, family->entry->key.mode, &key);
        status = fp8r_family_format(&key, text, sizeof text);
    }
    if (status == FP8R_OK)
        *layout = find_layout(source, text + strcspn(text, ":"));
    return fp8r_tool_status(error, status);
}

/* All layouts must be known. */
static int add_kind(struct fp8r_export *source, const struct fp8r_export_family *family, struct fp8r_tool_error *error)
{
    for (int i = 0; i < source->kind_count; i++)
        if (strcmp(source->kinds[i].options, family->options) == 0)
            return FP8R_EXIT_GOOD;
    struct fp8r_export_kind *kind = &source->kinds[source->kind_count++];
    bool is_said = strstr(family->options, ":align=") != NULL; /* only where it is less than the sizes would have it */
    *kind = (struct fp8r_export_kind){
        .options = family->options, .align = is_said ? family->entry->key.align_bytes : 16, .layout = family->layout};
    return find_one_row(source, family, &kind->one_row, error);
}

static int order(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

static int compare_families(const void *a, const void *b)
{
    const struct fp8r_export_family *one = *(struct fp8r_export_family *const *)a;
    const struct fp8r_export_family *other = *(struct fp8r_export_family *const *)b;
    const struct fp8r_key *x = &one->entry->key, *y = &other->entry->key;
    const int orders[] = {order(one->layout, other->layout), order(x->align_bytes, y->align_bytes),
                          order(x->batch, y->batch), order(x->n, y->n), order(x->k, y->k)};
    for (size_t i = 0; i < sizeof orders / sizeof *orders; i++)
        if (orders[i] != 0)
            return orders[i];
    return 0;
}

static int gather(struct fp8r_export *source, struct fp8r_tool_error *error)
{
    const struct fp8r_table *table = &source->file->table;
    int code = FP8R_EXIT_GOOD;
    source->all = calloc(table->count, sizeof *source->all);
    source->families = calloc(table->count, sizeof *source->families);
    source->layouts = calloc(table->count, sizeof *source->layouts);
    source->kinds = calloc(table->count, sizeof *source->kinds);
    if (!source->all || !source->families || !source->layouts || !source->kinds)
        return fp8r_tool_error_memory(error, "the source of routes");
    for (size_t i = 0; i < table->count && code == FP8R_EXIT_GOOD; i++) {
        struct fp8r_export_family *family = &source->all[i];
        family->entry = &table->entries[i];
        family->beyond = backend_beyond(family->entry);
        code = fp8r_tool_status(error, fp8r_entry_family(family->entry, family->text));
        family->options = family->text + strcspn(family->text, ":");
        family->layout = add_layout(source, &family->entry->key, family->options);
        source->families[source->count++] = family;
    }
    for (size_t i = 0; i < source->count && code == FP8R_EXIT_GOOD; i++)
        code = add_kind(source, source->families[i], error);
    qsort(source->families, source->count, sizeof *source->families, compare_families);
    return code;
}

/* ---- Printing ---- */

void fp8r_export_print(const struct fp8r_export *source, FILE *stream, const char *text)
{
    for (; *text; text++) {
        if (*text == '$')
            fputs(source->function, stream);
        else
            fputc(*text, stream);
    }
}

/* A comment of C must not end inside, nor seem to begin another one. */
static void print_comment(FILE *stream, const char *text)
{
    for (char last = ' '; *text; last = *text++) {
        if ((last == '*' && *text == '/') || (last == '/' && *text == '*') || (last == '?' && *text == '?'))
            fputc(' ', stream);
        fputc(*text, stream);
    }
    fputc('\n', stream);
}

static void print_line(FILE *stream, const char *prefix, const char *name, const char *value)
{
    char line[FP8R_HEADER_BYTES + 64];
    snprintf(line, sizeof line, "  %-8s %s", name, value);
    fputs(prefix, stream);
    print_comment(stream, line);
}

void fp8r_export_print_head(const struct fp8r_export *source, FILE *stream, const char *prefix)
{
    static const char *const lines[] = {
        "Answers what the route file decides on that machine, where every backend that it names can run the product:",
        "  \"route\"         m was measured: this backend in this configuration",
        "  \"extrapolated\"  m is above all measured rows, and the last of them go to the backend that is the default of this",
        "                  family: that one, in the configuration that it picks itself",
        "  \"neighbour\"     families on both sides in n (or else in k), equal otherwise and within a factor of 1.5, both go",
        "                  clearly to this backend at this m: that one, in the configuration that it picks itself",
        "No route is the answer where the file does not decide; fp8route then takes its default, which depends on what",
        "the build and the machine have. Options are what stands behind a family's sizes in `fp8route table show`: \"\" for",
        "e4m3 operands, bf16 results and a scale a row and a column, \":fp16:tensor\" and so on, in that spelling."};
    const struct fp8r_route_file *file = source->file;
    char machine[FP8R_HEADER_BYTES], version[32];
    uint32_t number = fp8r_version();
    snprintf(version, sizeof version, "%u.%u.%u", number / 10000, number / 100 % 100, number % 100);
    fp8r_header_describe(file, machine);
    print_line(stream, prefix, "made by", "fp8route table export");
    print_line(stream, prefix, "version", version);
    print_line(stream, prefix, "machine", machine);
    for (int i = 0; i < file->fact_count; i++)
        print_line(stream, prefix, file->facts[i].name, file->facts[i].value);
    fprintf(stream, "%.*s\n", (int)(strlen(prefix) - 1), prefix);
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        fprintf(stream, "%s%s\n", prefix, lines[i]);
}

static int print_text(const struct fp8r_export *source, enum fp8r_language language, char **text,
                      struct fp8r_tool_error *error)
{
    char *made = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&made, &size);
    if (!stream)
        return fp8r_tool_error_memory(error, "the source of routes");
    if (language == FP8R_LANGUAGE_C)
        fp8r_export_print_c(source, stream);
    else
        fp8r_export_print_python(source, stream);
    bool is_short = ferror(stream) != 0;
    is_short |= fclose(stream) != 0;
    if (is_short) {
        free(made);
        return fp8r_tool_error_memory(error, "the source of routes");
    }
    *text = made;
    return FP8R_EXIT_GOOD;
}

int fp8r_route_source(const struct fp8r_route_file *file, enum fp8r_language language, const char *function, char **text,
                      struct fp8r_tool_error *error)
{
    struct fp8r_export source = {.file = file, .function = function};
    int code = check_name(function, error);
    if (code == FP8R_EXIT_GOOD && file->table.count == 0)
        code = fp8r_tool_error_set(error, FP8R_EXIT_UNMEASURED, "the route file has no entries: nothing to export");
    if (code == FP8R_EXIT_GOOD)
        code = gather(&source, error);
    if (code == FP8R_EXIT_GOOD)
        code = print_text(&source, language, text, error);
    free(source.all);
    free(source.families);
    free(source.layouts);
    free(source.kinds);
    return code;
}
