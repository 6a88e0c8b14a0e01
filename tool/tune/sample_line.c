/* Taking a sample's line apart by hand: there are millions of them, all of the one form that the writer gives them.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tune/sample_line.h"

#include <string.h>

#include "tune/samples.h"

static bool skip(const char **at, const char *text)
{
    size_t length = strlen(text);
    if (strncmp(*at, text, length) != 0)
        return false;
    *at += length;
    return true;
}

static bool take_number(const char **at, int64_t limit, int64_t *number)
{
    int64_t value = 0;
    const char *start = *at;
    for (; **at >= '0' && **at <= '9'; (*at)++) {
        value = value * 10 + (**at - '0');
        if (value > limit)
            return false;
    }
    *number = value;
    return *at > start;
}

static bool take_phase(const char **at, int *phase)
{
    for (*phase = 0; *phase < SAMPLE_PHASES; (*phase)++)
        if (skip(at, sample_phase_name(*phase)))
            return true;
    return false;
}

/* A thousandth: shorter than a clock's tick, let alone a product. The limit of the whole part keeps it below 1e12. */
#define SAMPLE_US_LEAST 1e-3

/* Microseconds with six decimals, as the writer gives them: locale-free. */
static bool take_us(const char **at, double *us)
{
    int64_t whole, millionths;
    const char *start;
    if (!take_number(at, INT64_MAX / 20000000, &whole) || !skip(at, "."))
        return false;
    start = *at;
    if (!take_number(at, 999999, &millionths) || *at - start != 6)
        return false;
    *us = (double)(whole * 1000000 + millionths) / 1e6;
    return *us >= SAMPLE_US_LEAST;
}

/* Both or neither: a CPU tells none of them. */
static bool take_state(const char **at, struct sample_parts *parts)
{
    parts->watts = parts->celsius = 0;
    if (!skip(at, ",\"watts\":"))
        return true;
    return take_number(at, INT16_MAX, &parts->watts) && skip(at, ",\"celsius\":") &&
           take_number(at, INT16_MAX, &parts->celsius);
}

bool sample_line_take(const char *line, struct sample_parts *parts)
{
    const char *at = line;
    return skip(&at, "{\"record\":\"sample\",\"case\":") && take_number(&at, SAMPLE_CASES_MAX, &parts->number) &&
           skip(&at, ",\"candidate\":") && take_number(&at, SAMPLE_CANDIDATES_MAX, &parts->candidate) &&
           skip(&at, ",\"phase\":\"") && take_phase(&at, &parts->phase) && skip(&at, "\",\"round\":") &&
           take_number(&at, INT32_MAX, &parts->round) && skip(&at, ",\"us\":") && take_us(&at, &parts->us) &&
           skip(&at, ",\"mhz\":") && take_number(&at, INT16_MAX, &parts->mhz) && take_state(&at, parts) &&
           strcmp(at, "}") == 0;
}
