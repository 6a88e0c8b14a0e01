/* A fit as a rule: what its boxes have in common, and then each one's own bounds.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stdio.h>

#include "rule/fit_table.h"

/* A box has six comparisons of at most 24 characters and " and ", so that eight boxes stay far below the
 * limit. */
struct writer {
    char *text;
    size_t length;
};

__attribute__((format(printf, 2, 3))) static void put(struct writer *writer, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int length =
        vsnprintf(writer->text + writer->length, FP8R_FIT_TEXT_MAX - writer->length, format, arguments);
    va_end(arguments);
    if (length > 0) writer->length += (size_t)length;
}

static bool is_bounded(const struct fp8r_fit_box *box, int axis)
{
    return box->low[axis] > 1 || box->high[axis] < INT64_MAX;
}

static bool is_shared(const struct fp8r_fit *fit, int axis)
{
    for (int i = 1; i < fit->box_count; i++) {
        if (fit->boxes[i].low[axis] != fit->boxes[0].low[axis] ||
            fit->boxes[i].high[axis] != fit->boxes[0].high[axis])
            return false;
    }
    return fit->box_count > 0;
}

static void axis_put(struct writer *writer, const struct fp8r_fit_box *box, int axis)
{
    char name = "mnk"[axis];
    long long low = box->low[axis], high = box->high[axis];
    if (low == high)
        put(writer, "%c == %lld", name, low);
    else if (low > 1 && high < INT64_MAX)
        put(writer, "%lld <= %c <= %lld", low, name, high);
    else if (low > 1)
        put(writer, "%c >= %lld", name, low);
    else
        put(writer, "%c <= %lld", name, high);
}

/* The bounds on shared axes, or on the others, joined by and; how many axes that were. */
static int axes_put(struct writer *writer, const struct fp8r_fit *fit, const struct fp8r_fit_box *box,
                    bool shared)
{
    int count = 0;
    for (int axis = 0; axis < FP8R_FIT_AXES; axis++) {
        if (!is_bounded(box, axis) || is_shared(fit, axis) != shared) continue;
        if (count++ > 0) put(writer, " and ");
        axis_put(writer, box, axis);
    }
    return count;
}

static int own_axes(const struct fp8r_fit *fit, const struct fp8r_fit_box *box)
{
    int count = 0;
    for (int axis = 0; axis < FP8R_FIT_AXES; axis++)
        count += is_bounded(box, axis) && !is_shared(fit, axis);
    return count;
}

static void boxes_put(struct writer *writer, const struct fp8r_fit *fit)
{
    for (int i = 0; i < fit->box_count; i++) {
        bool is_grouped = own_axes(fit, &fit->boxes[i]) > 1;
        put(writer, "%s%s", i > 0 ? " or " : "", is_grouped ? "(" : "");
        axes_put(writer, fit, &fit->boxes[i], false);
        put(writer, is_grouped ? ")" : "");
    }
}

size_t fp8r_fit_text(const struct fp8r_fit *fit, char text[FP8R_FIT_TEXT_MAX])
{
    struct writer writer = {.text = text};
    text[0] = '\0';
    bool has_own = fit->box_count > 1;
    for (int i = 0; i < fit->box_count; i++)
        has_own = has_own && own_axes(fit, &fit->boxes[i]) > 0;
    if (fit->box_count > 0) {
        int shared = axes_put(&writer, fit, &fit->boxes[0], true);
        if (has_own) {
            put(&writer, shared > 0 ? " and (" : "");
            boxes_put(&writer, fit);
            put(&writer, shared > 0 ? ")" : "");
        }
    }
    if (writer.length == 0) put(&writer, fit->box_count > 0 ? "True" : "False");
    return writer.length;
}

int fp8r_fit_rule(const struct fp8r_fit *fit, struct fp8r_rule **rule, struct fp8r_tool_error *error)
{
    char text[FP8R_FIT_TEXT_MAX];
    fp8r_fit_text(fit, text);
    return fp8r_rule_parse(text, rule, error);
}
