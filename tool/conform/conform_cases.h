/* The problems that every backend is examined with.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_CONFORM_CASES_H
#define FP8R_CONFORM_CASES_H

/* NULL behind the last. */
extern const char *const fp8r_conform_cases[];

#endif
