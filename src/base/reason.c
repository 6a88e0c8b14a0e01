/* The catalogue's sentences and their placeholders. The only place where a refusal becomes text.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/reason.h"

#include <stdio.h>
#include <string.h>

#include "base/dtype.h"

static const struct {
    int32_t code;
    const char *name, *sentence;
} catalogue[] = {
#define FP8R_REASON(name_, number, sentence_, meaning) {number, #name_, sentence_},
#include <fp8route/reasons.inc>
#undef FP8R_REASON
};

static const char *sentence_of(int32_t code)
{
    for (size_t i = 0; i < sizeof catalogue / sizeof *catalogue; i++)
        if (catalogue[i].code == code)
            return catalogue[i].sentence;
    return "gives no reason that this version knows";
}

const char *fp8r_reason_name(int32_t code)
{
    if (code == FP8R_REASON_NONE)
        return "NONE";
    for (size_t i = 0; i < sizeof catalogue / sizeof *catalogue; i++)
        if (catalogue[i].code == code)
            return catalogue[i].name;
    return "UNKNOWN";
}

/* Writes the value of the placeholder at `at` and returns what is behind it; NULL where there is none. */
static const char *fill(const char *at, const fp8r_reason *reason, char *value, size_t size)
{
    static const char *const names[] = {"{subject}", "{have:dtype}", "{need:dtype}", "{have}", "{need}"};
    for (int i = 0; i < 5; i++) {
        size_t length = strlen(names[i]);
        if (strncmp(at, names[i], length) != 0)
            continue;
        int64_t number = i == 1 || i == 3 ? reason->have : reason->need;
        if (i == 0)
            snprintf(value, size, "%s", reason->subject ? reason->subject : "it");
        else if (i < 3)
            snprintf(value, size, "%s", fp8r_dtype_name((int32_t)number));
        else
            snprintf(value, size, "%lld", (long long)number);
        return at + length;
    }
    return NULL;
}

void fp8r_reason_sentence(const fp8r_reason *reason, char *text, size_t size)
{
    size_t used = 0;
    const char *at = reason->code == FP8R_REASON_NONE ? "" : sentence_of(reason->code);
    while (*at && used + 1 < size) {
        char value[256];
        const char *behind = *at == '{' ? fill(at, reason, value, sizeof value) : NULL;
        if (!behind) {
            text[used++] = *at++;
            continue;
        }
        size_t length = strlen(value);
        if (length > size - 1 - used)
            length = size - 1 - used;
        memcpy(text + used, value, length);
        used += length;
        at = behind;
    }
    if (size > 0)
        text[used] = '\0';
}
