/* One problem, raced: the plans of all entrants that can run it, on the device's rotating operands, each
 * verified before it is timed. Holds what every protocol needs and decides nothing. SPDX-License-Identifier:
 * Apache-2.0 */
#ifndef FP8R_CONTEST_H
#define FP8R_CONTEST_H

#include "measure/sampler.h"
#include "measure/verify.h"
#include "measure/yardstick.h"
#include "tune/points.h"

enum fp8r_standing {
    FP8R_STANDING_REFUSED, /* cannot run the problem */
    FP8R_STANDING_READY,   /* planned */
    FP8R_STANDING_WRONG,   /* its result was wrong: never timed */
    FP8R_STANDING_RACING,  /* verified and warm */
    FP8R_STANDING_BEHIND   /* clearly slower than another: timed no further */
};

struct fp8r_racer {
    enum fp8r_standing standing;
    fp8r_plan *plan;
    void *workspace; /* on the device */
    double first_us; /* the verified call, an upper estimate of its time; 0 before it */
    char why[256];   /* of a standing that keeps it out */
};

struct fp8r_contest {
    fp8r_context *context;
    const struct fp8r_measure_device *device;
    struct fp8r_rotation *rotation;
    struct fp8r_inputs *inputs; /* host operands of the largest member */
    fp8r_matmul member;         /* this one, with their data */
    struct fp8r_racer *racers;  /* one an entrant, which is also its contestant's index in the sampler */
    int count;
    struct fp8r_sampler sampler;
    struct fp8r_verifier *verifier;   /* made with the first verification, unless there is a yardstick */
    struct fp8r_yardstick *yardstick; /* likewise, where the device judges */
    bool has_looked;                  /* for a yardstick */
    double hopeless_us; /* whose one call takes longer is BEHIND, and its result is not even looked at; 0 = nobody */
};

/* Plans the product of `member` (without data; no larger than what inputs and rotation hold) on every
 * entrant, or on those whose labels stand in `only` (NULL behind the last). All but seed are borrowed. Exit codes: INTERNAL, UNMEASURED when the device fails. */
int fp8r_contest_open(struct fp8r_contest *contest, fp8r_context *context, const struct fp8r_points *entrants,
                      const char *const *only, const fp8r_matmul *member, const struct fp8r_measure_device *device,
                      struct fp8r_rotation *rotation, struct fp8r_inputs *inputs, uint64_t seed,
                      struct fp8r_tool_error *error);
void fp8r_contest_close(struct fp8r_contest *contest);

/* Runs a planned racer once; out is poisoned before, and the result lies in member.out.data afterwards. */
int fp8r_contest_run(struct fp8r_contest *contest, int racer, struct fp8r_tool_error *error);

/* Runs a planned racer once and checks the result. A wrong one becomes WRONG. */
int fp8r_contest_verify(struct fp8r_contest *contest, int racer, const struct fp8r_verify_options *options,
                        struct fp8r_tool_error *error);

/* Warms a verified racer: it then takes part in rounds. */
int fp8r_contest_enter(struct fp8r_contest *contest, int racer, double enough_us,
                       struct fp8r_tool_error *error);

/* The least time that was seen of a racer (its one verified call, the end of its warm-up, its samples), since noise only
 * makes longer: one sample that the machine disturbed drops nobody. And the least of all that race. */
double fp8r_contest_least_us(const struct fp8r_contest *contest, int racer);
double fp8r_contest_best_us(const struct fp8r_contest *contest);

/* How many times longer than that best a racer takes, by the same measure, where it is clearly more than `factor`; 0
 * otherwise. Before the third round there must be twice the distance. */
double fp8r_contest_behind(const struct fp8r_contest *contest, int racer, double best_us, double factor);

/* Takes a racer out of further rounds. */
__attribute__((format(printf, 4, 5))) void fp8r_contest_drop(struct fp8r_contest *contest, int racer,
                                                             enum fp8r_standing standing, const char *format,
                                                             ...);

#endif
