/* Parts of a segment as people read them: its rows and its gain. (A route file has a form of its own.)
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_SEGMENT_TEXT_H
#define FP8R_SEGMENT_TEXT_H

#include <stdint.h>

enum { FP8R_SEGMENT_TEXT_BYTES = 48 };

/* "1..16", "19". */
void fp8r_rows_format(int64_t first, int64_t last, char text[FP8R_SEGMENT_TEXT_BYTES]);

/* "1.20..2.41x"; "default" where the route is the default itself, "-" where no default was raced. */
void fp8r_gain_format(double low, double high, char text[FP8R_SEGMENT_TEXT_BYTES]);

/* A time as a route file holds it, with six digits: "12.34 us", "2794.6 us"; "-" for none. */
void fp8r_time_format(double us, char text[FP8R_SEGMENT_TEXT_BYTES]);

#endif
