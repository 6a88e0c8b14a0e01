/* Lines, words and fields of a route file. Every message names file, line, and what would be right.
 * SPDX-License-Identifier: Apache-2.0 */
#include "route/route_line.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/sizes.h"
#include "route/table.h"

void fp8r_lines_init(struct fp8r_lines *lines, const char *name, const char *text, size_t size)
{
    *lines = (struct fp8r_lines){.name = name, .at = text, .end = text, .next = text, .limit = text + size};
}

fp8r_status fp8r_lines_fail(const struct fp8r_lines *lines, const char *format, ...)
{
    char what[400];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    return fp8r_fail(FP8R_ERROR_FORMAT, "%.200s, line %d: %s", lines->name, lines->number, what);
}

static bool is_blank(char byte)
{
    return byte == ' ' || byte == '\t';
}

static void skip_blanks(struct fp8r_lines *lines)
{
    while (lines->at < lines->end && is_blank(*lines->at))
        lines->at++;
}

static bool is_control(char byte)
{
    unsigned char code = (unsigned char)byte;
    return (code < 0x20 && code != '\t') || code == 0x7F;
}

/* What is quoted is shown on terminals, some of which are driven by other bytes, too. */
static bool is_ascii(char byte)
{
    unsigned char code = (unsigned char)byte;
    return code < 0x80 && !is_control(byte);
}

static fp8r_status step(struct fp8r_lines *lines)
{
    const char *newline = memchr(lines->next, '\n', (size_t)(lines->limit - lines->next));
    lines->number++;
    if (!newline)
        return fp8r_lines_fail(lines, "the line has no end: the file was cut short");
    lines->at = lines->next;
    lines->end = newline;
    lines->next = newline + 1;
    if (lines->end > lines->at && lines->end[-1] == '\r') /* checked out on a system that ends lines so */
        lines->end--;
    for (const char *byte = lines->at; byte < lines->end; byte++)
        if (is_control(*byte))
            return fp8r_lines_fail(lines, "it holds the control character 0x%02x: expected plain text",
                                   (unsigned)(unsigned char)*byte);
    skip_blanks(lines);
    return FP8R_OK;
}

fp8r_status fp8r_lines_next(struct fp8r_lines *lines, bool *found)
{
    while (lines->next < lines->limit) {
        FP8R_TRY(step(lines));
        if (lines->at < lines->end && *lines->at != '#') {
            *found = true;
            return FP8R_OK;
        }
    }
    lines->at = lines->end = lines->limit;
    *found = false;
    return FP8R_OK;
}

bool fp8r_line_is_done(struct fp8r_lines *lines)
{
    skip_blanks(lines);
    return lines->at == lines->end;
}

fp8r_status fp8r_line_word(struct fp8r_lines *lines, const char *expected, char word[FP8R_WORD_BYTES])
{
    skip_blanks(lines);
    const char *start = lines->at;
    while (lines->at < lines->end && !is_blank(*lines->at))
        lines->at++;
    size_t length = (size_t)(lines->at - start);
    if (length == 0)
        return fp8r_lines_fail(lines, "expected %s", expected);
    if (length >= FP8R_WORD_BYTES)
        return fp8r_lines_fail(lines, "\"%.32s...\" is too long: expected %s", start, expected);
    memcpy(word, start, length);
    word[length] = '\0';
    return FP8R_OK;
}

fp8r_status fp8r_line_quoted(struct fp8r_lines *lines, const char *expected, char text[FP8R_WORD_BYTES])
{
    size_t length = 0;
    skip_blanks(lines);
    if (lines->at == lines->end || *lines->at != '"')
        return fp8r_lines_fail(lines, "expected %s in double quotes", expected);
    for (lines->at++; lines->at < lines->end && *lines->at != '"'; lines->at++) {
        if (*lines->at == '\\' && (++lines->at == lines->end || (*lines->at != '"' && *lines->at != '\\')))
            return fp8r_lines_fail(lines, "\\ in quotes stands before \" or \\ only");
        if (!is_ascii(*lines->at))
            return fp8r_lines_fail(lines, "the quoted text holds the byte 0x%02x: expected printable ASCII",
                                   (unsigned)(unsigned char)*lines->at);
        if (length + 1 == FP8R_WORD_BYTES)
            return fp8r_lines_fail(lines, "the quoted text is too long: expected %s of at most %d bytes", expected,
                                   FP8R_WORD_BYTES - 1);
        text[length++] = *lines->at;
    }
    if (lines->at == lines->end)
        return fp8r_lines_fail(lines, "the quoted text has no closing quote");
    lines->at++;
    text[length] = '\0';
    return FP8R_OK;
}

/* "a, b, c" */
static void list_names(const struct fp8r_field *fields, size_t count, char *text, size_t size)
{
    size_t used = 0;
    for (size_t i = 0; i < count && used < size; i++)
        used += (size_t)snprintf(text + used, size - used, "%s%s", i ? ", " : "", fields[i].name);
}

/* One "name=value"; the value may be quoted. */
static fp8r_status read_field(struct fp8r_lines *lines, struct fp8r_field *fields, size_t count)
{
    char names[160], value[FP8R_WORD_BYTES];
    const char *start = lines->at;
    while (lines->at < lines->end && !is_blank(*lines->at) && *lines->at != '=')
        lines->at++;
    int length = (int)fp8r_size_min(lines->at - start, 40);
    list_names(fields, count, names, sizeof names);
    if (lines->at == lines->end || *lines->at != '=')
        return fp8r_lines_fail(lines, "\"%.*s\" is no NAME=VALUE: expected one of %s", length, start, names);
    struct fp8r_field *field = NULL;
    for (size_t i = 0; i < count && !field; i++)
        if ((size_t)(lines->at - start) == strlen(fields[i].name) && !strncmp(start, fields[i].name, (size_t)length))
            field = &fields[i];
    if (!field)
        return fp8r_lines_fail(lines, "there is no field \"%.*s\" here: expected one of %s", length, start, names);
    if (field->is_given)
        return fp8r_lines_fail(lines, "the field %s is given twice", field->name);
    field->is_given = true;
    lines->at++;
    if (lines->at < lines->end && *lines->at == '"')
        FP8R_TRY(fp8r_line_quoted(lines, field->name, value));
    else if (lines->at == lines->end || is_blank(*lines->at))
        return fp8r_lines_fail(lines, "the field %s has no value", field->name);
    else
        FP8R_TRY(fp8r_line_word(lines, field->name, value));
    const char *expected = field->read(value, field->to);
    return expected ? fp8r_lines_fail(lines, "%s=%.60s: expected %s", field->name, value, expected) : FP8R_OK;
}

fp8r_status fp8r_line_fields(struct fp8r_lines *lines, struct fp8r_field *fields, size_t count)
{
    while (!fp8r_line_is_done(lines))
        FP8R_TRY(read_field(lines, fields, count));
    for (size_t i = 0; i < count; i++)
        if (!fields[i].is_given && !fields[i].is_optional)
            return fp8r_lines_fail(lines, "the field %s is missing", fields[i].name);
    return FP8R_OK;
}

/* ---- Values ---- */

/* A whole number at *at, which moves behind it. */
static bool read_whole(const char **at, int64_t *number)
{
    int64_t value = 0;
    const char *digit = *at;
    for (; *digit >= '0' && *digit <= '9'; digit++)
        if (!fp8r_size_mul(value, 10, &value) || !fp8r_size_add(value, *digit - '0', &value))
            return false;
    if (digit == *at)
        return false;
    *at = digit;
    *number = value;
    return true;
}

/* Digits, and perhaps a point and more digits. With at most 15 digits and a power of ten up to 22 both parts are exact
 * doubles, so that the one division rounds correctly. */
static bool read_real(const char **at, double *number)
{
    const char *digit = *at;
    double value = 0, scale = 1;
    int digits = 0;
    bool behind_point = false;
    for (;; digit++) {
        if (*digit == '.' && !behind_point && digit > *at && digit[1] >= '0' && digit[1] <= '9') {
            behind_point = true;
            continue;
        }
        if (*digit < '0' || *digit > '9')
            break;
        value = value * 10 + (*digit - '0');
        scale *= behind_point ? 10 : 1;
        digits += digits > 0 || *digit != '0'; /* zeros in front do not count */
        if (digits > 15 || scale > 1e22)
            return false;
    }
    if (digits == 0)
        return false;
    *at = digit;
    *number = value / scale;
    return true;
}

const char *fp8r_value_count(const char *value, void *int64)
{
    int64_t number;
    if (!read_whole(&value, &number) || *value)
        return "a whole number";
    *(int64_t *)int64 = number;
    return NULL;
}

const char *fp8r_value_positive(const char *value, void *int64)
{
    int64_t number;
    if (!read_whole(&value, &number) || *value || number < 1)
        return "a whole number of at least 1";
    *(int64_t *)int64 = number;
    return NULL;
}

const char *fp8r_value_small(const char *value, void *int32)
{
    int64_t number;
    if (!read_whole(&value, &number) || *value || number < 1 || number > INT32_MAX)
        return "a whole number from 1 to 2147483647";
    *(int32_t *)int32 = (int32_t)number;
    return NULL;
}

const char *fp8r_value_real(const char *value, void *real)
{
    double number;
    if (!read_real(&value, &number) || *value)
        return "a number above 0 of at most 15 digits, like 812.4";
    *(double *)real = number;
    return NULL;
}

/* The two dots between the ends of a range. */
static bool read_dots(const char **at)
{
    bool there = (*at)[0] == '.' && (*at)[1] == '.';
    *at += there ? 2 : 0;
    return there;
}

const char *fp8r_value_rows(const char *value, void *two_int64)
{
    int64_t *rows = two_int64, first, last;
    if (!read_whole(&value, &first) || !read_dots(&value) || !read_whole(&value, &last) || *value || first < 1 ||
        last < first)
        return "FIRST..LAST with 1 <= FIRST <= LAST, like 1..16";
    rows[0] = first;
    rows[1] = last;
    return NULL;
}

const char *fp8r_value_numbers(const char *value, int64_t *numbers, int most, int *count)
{
    static const char expected[] = "ascending whole numbers of at least 1 with commas, like 1,2,4, at most 16";
    int64_t number = 0, last = 0;
    for (*count = 0; *count < most; last = number, value++) {
        if (!read_whole(&value, &number) || number <= last)
            return expected;
        numbers[(*count)++] = number;
        if (*value != ',')
            break;
    }
    return *value ? expected : NULL;
}

const char *fp8r_value_interval(const char *value, void *two_reals)
{
    double *reals = two_reals, low, high;
    if (!read_real(&value, &low) || !read_dots(&value) || !read_real(&value, &high) || *value || !(low <= high))
        return "LOW..HIGH with 0 < LOW <= HIGH, like 1.02..1.08";
    reals[0] = low;
    reals[1] = high;
    return NULL;
}

const char *fp8r_value_name(const char *value, void *name)
{
    size_t length = strlen(value);
    if (length == 0 || length >= FP8R_NAME_BYTES ||
        strspn(value, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.=-") != length)
        return "1 to 63 letters, digits and _.=-";
    memcpy(name, value, length + 1);
    return NULL;
}
