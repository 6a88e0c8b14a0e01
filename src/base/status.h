/* Statuses and this thread's last error line.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_BASE_STATUS_H
#define FP8R_BASE_STATUS_H

#include <fp8route/fp8route.h>

#include "base/compiler.h"

/* Sets this thread's last error and returns status, so that `return fp8r_fail(...)` is one line. */
FP8R_COLD fp8r_status fp8r_fail(fp8r_status status, const char *format, ...) FP8R_PRINTF(2, 3);

/* Forgets the line: what failed inside a call that succeeds is not the caller's. */
void fp8r_error_clear(void);

/* The same as fp8r_fail for an allocation that failed; `what` names it. */
FP8R_COLD fp8r_status fp8r_fail_memory(const char *what);

#endif
