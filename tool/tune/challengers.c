/* SPDX-License-Identifier: Apache-2.0 */
#include "tune/challengers.h"

#include <math.h>

/* Puts a candidate among those already there, which stand by their times. */
static int insert(const double *medians_us, int candidate, int challengers[CHALLENGERS_MOST], int count)
{
    int at = count < CHALLENGERS_MOST ? count : CHALLENGERS_MOST - 1;
    if (count == CHALLENGERS_MOST && !(medians_us[candidate] < medians_us[challengers[at]]))
        return count;
    for (; at > 0 && medians_us[candidate] < medians_us[challengers[at - 1]]; at--)
        challengers[at] = challengers[at - 1];
    challengers[at] = candidate;
    return count < CHALLENGERS_MOST ? count + 1 : count;
}

int challengers_choose(const double *medians_us, int count, int fallback, double margin, int challengers[CHALLENGERS_MOST])
{
    int found = 0;
    if (fallback < 0 || !isfinite(medians_us[fallback]))
        return 0;
    for (int i = 0; i < count; i++)
        if (i != fallback && (1 + margin / 2) * medians_us[i] < medians_us[fallback])
            found = insert(medians_us, i, challengers, found);
    while (found > 1 && medians_us[challengers[found - 1]] > (1 + margin) * medians_us[challengers[0]])
        found--;
    return found;
}
