/* Formatting. SPDX-License-Identifier: Apache-2.0 */
#include "tune/segment_text.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

void fp8r_rows_format(int64_t first, int64_t last, char text[FP8R_SEGMENT_TEXT_BYTES])
{
    if (first == last)
        snprintf(text, FP8R_SEGMENT_TEXT_BYTES, "%" PRId64, first);
    else
        snprintf(text, FP8R_SEGMENT_TEXT_BYTES, "%" PRId64 "..%" PRId64, first, last);
}

void fp8r_gain_format(double low, double high, char text[FP8R_SEGMENT_TEXT_BYTES])
{
    if (!(low > 0))
        snprintf(text, FP8R_SEGMENT_TEXT_BYTES, "-");
    else if (low == 1 && high == 1)
        snprintf(text, FP8R_SEGMENT_TEXT_BYTES, "default");
    else
        snprintf(text, FP8R_SEGMENT_TEXT_BYTES, "%.2f..%.2fx", low, high);
}

void fp8r_time_format(double us, char text[FP8R_SEGMENT_TEXT_BYTES])
{
    char held[FP8R_SEGMENT_TEXT_BYTES];
    snprintf(held, sizeof held, "%.6g", us);
    us = strtod(held, NULL);
    if (us > 0)
        snprintf(text, FP8R_SEGMENT_TEXT_BYTES, "%.*f us", us < 100 ? 2 : 1, us);
    else
        snprintf(text, FP8R_SEGMENT_TEXT_BYTES, "-");
}
