/* One backend with one problem, under examination.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_SUBJECT_H
#define FP8R_SUBJECT_H

#include "backend/row.h"
#include "conform/conform.h"
#include "measure/trial.h"
#include "measure/verify.h"
#include "problem/problem.h"

struct fp8r_subject {
    fp8r_context *context;
    const fp8r_device_facts *device;
    const struct fp8r_row *row;
    uint64_t seed;
    const char *text; /* the problem's */
    struct fp8r_product product;
    bool multiplies; /* false: nothing reaches the backend */
    struct fp8r_inputs inputs;
    struct fp8r_verifier *verifier;
    struct fp8r_conform_result *result;
};

/* False where the examination itself cannot go on (the result says why). */
bool fp8r_subject_open(struct fp8r_subject *subject, const char *text);
void fp8r_subject_close(struct fp8r_subject *subject);

/* Says in the result which check of which configuration begins ("" = the backend's own pick). */
void fp8r_subject_begin(struct fp8r_subject *subject, const char *check, const char *config);

/* The check that began has failed. Always false, so that a check can return it. */
__attribute__((format(printf, 2, 3))) bool fp8r_subject_fail(struct fp8r_subject *subject, const char *format,
                                                             ...);

/* ---- Checks; each returns false after the first failure ---- */

/* supports, pick, workspace and horizon agree with each other. */
bool fp8r_check_answers(struct fp8r_subject *subject);

/* A yes means that it runs, is right, and keeps to its memory; a no has a reason. config: index. */
bool fp8r_check_config(struct fp8r_subject *subject, int config);

/* Runs a plan of the configuration again: on two threads at once and with fewer rows; what its numerics class
 * promises holds. The first result lies in the subject's out. */
bool fp8r_check_threads(struct fp8r_subject *subject, const struct fp8r_trial *trial, int config);
bool fp8r_check_rows(struct fp8r_subject *subject, const struct fp8r_trial *trial, int config);

/* Configurations of one class give equal bits. */
bool fp8r_check_classes(struct fp8r_subject *subject);

#endif
