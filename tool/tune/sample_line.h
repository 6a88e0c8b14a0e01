/* The line of one sample, as numbers. Knows its form, not what its case and candidate are.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_TUNE_SAMPLE_LINE_H
#define TOOL_TUNE_SAMPLE_LINE_H

#include <stdbool.h>
#include <stdint.h>

enum { SAMPLE_CANDIDATES_MAX = 4096, SAMPLE_CASES_MAX = 1 << 24 };

struct sample_parts {
    int64_t number, candidate, round; /* number: of the case */
    int64_t mhz, watts, celsius;
    int phase;
    double us;
};

/* False where the line has another form than sample_writer_sample gives it, or a number is out of range. */
bool sample_line_take(const char *line, struct sample_parts *parts);

#endif
