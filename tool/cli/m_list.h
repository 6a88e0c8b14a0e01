/* Lists of M on the command line: "1,2,4,16".
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_M_LIST_H
#define FP8R_M_LIST_H

#include <stddef.h>
#include <stdint.h>

#include "tool_error.h"

/* A new array (free it). Exit codes: USAGE for anything but whole numbers from 1 with commas between them,
 * INTERNAL. */
int fp8r_m_list_parse(const char *text, int64_t **ms, size_t *count, struct fp8r_tool_error *error);

#endif
