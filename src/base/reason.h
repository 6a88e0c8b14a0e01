/* Reason records in words: the sentences of the catalogue (fp8route/reasons.inc) with a record's fields filled in.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_BASE_REASON_H
#define FP8R_BASE_REASON_H

#include <stddef.h>
#include <stdint.h>

#include <fp8route/backend.h>

/* Writes the reason's sentence, cut to size; "" for FP8R_REASON_NONE. */
void fp8r_reason_sentence(const fp8r_reason *reason, char *text, size_t size);

/* The stable name, e.g. "ARCH"; "NONE" for 0, "UNKNOWN" for a number not in the catalogue. */
const char *fp8r_reason_name(int32_t code);

#endif
