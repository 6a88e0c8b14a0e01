/* Words that depend on a number. SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_PLURAL_H
#define FP8R_PLURAL_H

#include <stddef.h>

/* The ending, or the word, for so many: fp8r_plural(count, "y", "ies"). */
static inline const char *fp8r_plural(size_t count, const char *one, const char *many)
{
    return count == 1 ? one : many;
}

/* "" or "s". */
static inline const char *fp8r_s(size_t count)
{
    return fp8r_plural(count, "", "s");
}

#endif
