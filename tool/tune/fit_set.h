/* Samples as problems for a fit: what two backends take on each, which of all candidates the full table
 * takes, and what a rule between the two costs beside it. Machines stay apart. Pure. SPDX-License-Identifier:
 * Apache-2.0 */
#ifndef FP8R_FIT_SET_H
#define FP8R_FIT_SET_H

#include "rule/fit.h"
#include "tune/samples.h"

/* Where a case of the fit comes from. */
struct fp8r_fit_origin {
    const struct sample_case *it;
    int x, y;  /* candidates: what the two names stand for on this problem */
    int table; /* what the full table takes: its decision, or the fastest where it has none yet */
    double ratio, low, high; /* median of y's time / x's, and its 95 % interval */
    double x_price, y_price; /* time / the table's time - 1 */
};

struct fp8r_fit_set {
    char x[FP8R_LABEL_BYTES],
        y[FP8R_LABEL_BYTES]; /* backend[:config]: where the rule holds, and where it does not */
    struct fp8r_fit_case *cases;
    struct fp8r_fit_origin *origins; /* of the cases, in their order: by machine, family and M */
    size_t count;
    size_t left_out;                    /* problems on which one of the two was not measured */
    int machines[FP8R_FIT_DEVICES_MAX]; /* of each device of the fit: index into the samples' machines */
    int device_count;
};

/* x and y: backend[:config]; a backend's name stands for the default where that is its own, otherwise for its
 * fastest configuration. Both NULL: the two backends that leave least to gain. Exit codes: USAGE for a name
 * that no candidate has, UNMEASURED where no problem has both, BAD_DATA, INTERNAL. */
int fp8r_fit_set_init(struct fp8r_fit_set *set, const struct samples *samples, const char *x, const char *y,
                      struct fp8r_tool_error *error);
void fp8r_fit_set_fini(struct fp8r_fit_set *set);

/* What the rule costs beside the full table on a device: the weighted mean, and the worst problem's. */
struct fp8r_fit_price {
    double mean, worst;
};
struct fp8r_fit_price fp8r_fit_set_price(const struct fp8r_fit_set *set, const struct fp8r_fit *fit,
                                         int device);

#endif
