/* Placing borders.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tune/border.h"

#include <math.h>

#include "base/sizes.h"

/* Times change by factors, not by steps: the geometric mean lies in the middle. */
static int64_t middle_of(const struct fp8r_border *border)
{
    int64_t middle = (int64_t)floor(sqrt((double)border->m) * sqrt((double)border->m_next) + 1e-9);
    return border->has_steps ? border->m : middle;
}

int64_t fp8r_border_place(const struct fp8r_border *border)
{
    int64_t last = middle_of(border);
    if (!border->has_steps && border->stays) last = fp8r_size_max(last, border->default_last);
    return fp8r_size_max(border->m, fp8r_size_min(last, border->m_next - 1));
}
