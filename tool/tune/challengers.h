/* Who challenges the default after a problem's grid. Pure: times in, candidates out.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_TUNE_CHALLENGERS_H
#define TOOL_TUNE_CHALLENGERS_H

/* The few rounds of a grid do not tell candidates apart that are within the margin of each other, so more than one may. */
enum { CHALLENGERS_MOST = 3 };

/* Of `count` candidates' medians (INFINITY: out of the race), those that may beat the default by `margin`: all within
 * `margin` of the fastest, where the default is behind by half of it. Their indices, the fastest first; how many. The
 * default's own median may be INFINITY: then it has nothing to defend, and nobody challenges. */
int challengers_choose(const double *medians_us, int count, int fallback, double margin, int challengers[CHALLENGERS_MOST]);

#endif
