/* Writing route files as text: the same content gives the same bytes, whatever the locale and the order in memory.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "route/route_file.h"

/* A text that grows. Once out of memory it stays failed, and is asked at the end. */
struct writer {
    char *text;
    size_t used, size;
    bool failed;
};

static void put_bytes(struct writer *writer, const char *bytes, size_t count)
{
    if (!writer->failed && writer->size - writer->used <= count) {
        size_t wanted = writer->size * 2 + count + 256;
        char *grown = wanted > count ? realloc(writer->text, wanted) : NULL;
        writer->failed = !grown;
        writer->text = grown ? grown : writer->text;
        writer->size = grown ? wanted : writer->size;
    }
    if (writer->failed)
        return;
    memcpy(writer->text + writer->used, bytes, count);
    writer->used += count;
    writer->text[writer->used] = '\0';
}

static void put(struct writer *writer, const char *format, ...) FP8R_PRINTF(2, 3);

/* Short pieces only. */
static void put(struct writer *writer, const char *format, ...)
{
    char piece[512];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(piece, sizeof piece, format, arguments);
    va_end(arguments);
    writer->failed |= length < 0 || length >= (int)sizeof piece;
    if (!writer->failed)
        put_bytes(writer, piece, (size_t)length);
}

static void put_quoted(struct writer *writer, const char *text)
{
    put_bytes(writer, "\"", 1);
    for (; *text; text++) {
        unsigned char code = (unsigned char)*text;
        if (code == '"' || code == '\\')
            put_bytes(writer, "\\", 1);
        put_bytes(writer, code < 0x20 || code == 0x7F ? " " : code >= 0x80 ? "?" : text, 1);
    }
    put_bytes(writer, "\"", 1);
}

/* Six significant digits, trailing zeros dropped, never an exponent. The digits are taken from the %e form by position,
 * because the decimal point is the locale's. A value that is not a positive number gives "0", which is not read back. */
static void put_real(struct writer *writer, double value)
{
    char form[64], digits[7] = "";
    int count = 0, exponent = 0;
    if (!(value > 0) || value > 1e21) {
        put(writer, "0");
        return;
    }
    snprintf(form, sizeof form, "%.5e", value);
    for (const char *at = form; *at != 'e'; at++)
        if (*at >= '0' && *at <= '9' && count < 6)
            digits[count++] = *at;
    exponent = (int)strtol(strchr(form, 'e') + 1, NULL, 10);
    while (count > 1 && digits[count - 1] == '0')
        count--;
    digits[count] = '\0';
    if (exponent < 0)
        put(writer, "0.%.*s%s", -exponent - 1, "0000000000000000000000", digits);
    else if (count <= exponent + 1)
        put(writer, "%s%.*s", digits, exponent + 1 - count, "0000000000000000000000");
    else
        put(writer, "%.*s.%s", exponent + 1, digits, digits + exponent + 1);
}

static int compare_libraries(const void *a, const void *b)
{
    return strcmp(((const struct fp8r_library *)a)->backend, ((const struct fp8r_library *)b)->backend);
}

static void put_header(struct writer *writer, const struct fp8r_route_file *file)
{
    struct fp8r_identity identity = file->identity;
    char text[FP8R_IDENTITY_BYTES];
    fp8r_identity_format(&identity, text);
    put(writer, "fp8route-routes 1\ndevice %s\nidentity %s\n", identity.kind == FP8R_DEVICE_CUDA ? "cuda" : "cpu", text);
    qsort(identity.libraries, (size_t)identity.library_count, sizeof *identity.libraries, compare_libraries);
    for (int i = 0; i < identity.library_count; i++) {
        put(writer, "library %s ", identity.libraries[i].backend);
        put_quoted(writer, identity.libraries[i].version);
        put(writer, "\n");
    }
    for (int i = 0; i < file->fact_count; i++) {
        put(writer, "fact %s ", file->facts[i].name);
        put_quoted(writer, file->facts[i].value);
        put(writer, "\n");
    }
    put(writer, "protocol %s mode=%s operands=%s%s\n", file->is_quick ? "quick" : "full",
        file->mode == FP8R_MODE_GRAPH ? "graph" : "eager", file->is_cold ? "cold" : "warm",
        file->is_behind_both ? " behind=both" : "");
}

static void put_rows(struct writer *writer, const struct fp8r_rows_list *list)
{
    for (int i = 0; i < list->count; i++)
        put(writer, "%s%lld", i == 0 ? " at=" : ",", (long long)list->values[i]);
}

static void put_interval(struct writer *writer, const char *name, double low, double high)
{
    if (!(low > 0 || high > 0))
        return;
    put(writer, " %s=", name);
    put_real(writer, low);
    put(writer, "..");
    put_real(writer, high);
}

static void put_segment(struct writer *writer, const struct fp8r_segment *segment)
{
    bool plain = *segment->rev && !strpbrk(segment->rev, " \t\"\\\n\r");
    put(writer, "  m=%lld..%lld", (long long)segment->m_first, (long long)segment->m_last);
    put_rows(writer, &segment->at);
    put(writer, " backend=%s config=%s rev=", segment->backend, segment->config);
    if (plain)
        put(writer, "%s", segment->rev);
    else
        put_quoted(writer, segment->rev);
    put(writer, " median_us=");
    put_real(writer, segment->median_us);
    if (*segment->runner_up) {
        put(writer, " runner_up=%s runner_up_us=", segment->runner_up);
        put_real(writer, segment->runner_up_us);
    }
    if (*segment->rival) {
        put(writer, " rival=%s rival_us=", segment->rival);
        put_real(writer, segment->rival_us);
        put_interval(writer, "rival_gain", segment->rival_low, segment->rival_high);
    }
    put_interval(writer, "gain", segment->gain_low, segment->gain_high);
    put(writer, " verdict=%s\n", segment->is_clear ? "clear" : "tie");
}

static int compare_entries(const void *a, const void *b)
{
    const struct fp8r_entry *const *one = a, *const *other = b;
    return fp8r_key_compare(&(*one)->key, &(*other)->key);
}

/* An entry that differs from what the header says is marked. */
static fp8r_status put_entries(struct writer *writer, const struct fp8r_table *table, bool is_quick)
{
    char family[FP8R_FAMILY_BYTES];
    fp8r_status status = FP8R_OK;
    const struct fp8r_entry **sorted = calloc(table->count ? table->count : 1, sizeof *sorted);
    if (!sorted)
        return fp8r_fail_memory("a route file's text");
    for (size_t i = 0; i < table->count; i++)
        sorted[i] = &table->entries[i];
    qsort(sorted, table->count, sizeof *sorted, compare_entries);
    for (size_t i = 0; i < table->count && status == FP8R_OK; i++) {
        status = fp8r_entry_family(sorted[i], family);
        put(writer, "\nentry %s%s\n", status == FP8R_OK ? family : "", sorted[i]->is_quick && !is_quick ? " quick" : "");
        for (int j = 0; j < sorted[i]->segment_count; j++)
            put_segment(writer, &sorted[i]->segments[j]);
    }
    free(sorted);
    put(writer, "\nend entries=%zu\n", table->count);
    return status;
}

fp8r_status fp8r_route_file_format(const struct fp8r_route_file *file, char **text)
{
    struct writer writer = {0};
    put_header(&writer, file);
    fp8r_status status = put_entries(&writer, &file->table, file->is_quick);
    if (status == FP8R_OK && writer.failed)
        status = fp8r_fail_memory("a route file's text");
    if (status == FP8R_OK)
        *text = writer.text;
    else
        free(writer.text);
    return status;
}
