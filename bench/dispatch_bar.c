/* The cost of dispatch in nanoseconds, against what it may take.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>

#include "api/plan.h"
#include "bar.h"
#include "measure/clock.h"
#include "measure/random.h"
#include "measure/statistics.h"
#include "support/null_backend.h"

enum { PROBLEMS = 1000, CALLS = 20000 };

/* 1,000 problems of different families on a context whose first backend computes nothing. */
struct subject {
    fp8r_context *context;
    struct fp8r_product products[PROBLEMS];
    fp8r_plan *plan; /* of the first */
    int order[CALLS];
};

static bool add_problem(struct subject *subject, int index)
{
    char text[64];
    fp8r_matmul matmul;
    struct fp8r_plan *plan;
    bool owned;
    snprintf(text, sizeof text, "%dx%dx%d", 1 + index % 61, 16 * (1 + index % 40), 16 * (1 + index / 40));
    if (fp8r_matmul_parse(text, &matmul) != FP8R_OK) return false;
    null_operands(&matmul);
    if (fp8r_product_init(&matmul, FP8R_DATA_USED, &subject->products[index]) != FP8R_OK) return false;
    if (index == 0 && fp8r_plan_create(subject->context, &matmul, NULL, &subject->plan) != FP8R_OK) return false;
    return fp8r_cache_find(subject->context, &subject->products[index].problem, false, &plan, &owned) == FP8R_OK;
}

static void drop(struct subject *subject)
{
    if (!subject) return;
    fp8r_plan_destroy(subject->plan);
    fp8r_context_destroy(subject->context);
    free(subject);
}

static struct subject *make(void)
{
    static const fp8r_backend *const backends[] = {&null_backend};
    fp8r_context_options options = {.struct_size = sizeof options,
                                    .threads = 1,
                                    .flags = FP8R_NO_ENVIRONMENT | FP8R_NO_ROUTE_FILES,
                                    .backends = backends,
                                    .backend_count = 1};
    struct fp8r_random random = {.state = 1};
    struct subject *subject = calloc(1, sizeof *subject);
    bool made = subject && fp8r_context_create((fp8r_device){FP8R_DEVICE_CPU, 0}, &options, &subject->context) == FP8R_OK;
    for (int i = 0; made && i < PROBLEMS; i++)
        made = add_problem(subject, i);
    for (int i = 0; made && i < CALLS; i++)
        subject->order[i] = (int)fp8r_random_below(&random, PROBLEMS);
    if (made) return subject;
    drop(subject);
    return NULL;
}

static bool decide_all(struct subject *subject)
{
    for (int i = 0; i < CALLS; i++) {
        struct fp8r_plan *plan;
        bool owned;
        const fp8r_problem *problem = &subject->products[subject->order[i]].problem;
        if (fp8r_cache_find(subject->context, problem, false, &plan, &owned) != FP8R_OK || !fp8r_plan_segment_at(plan, problem->m))
            return false;
    }
    return true;
}

static bool run_all(struct subject *subject)
{
    for (int i = 0; i < CALLS; i++)
        if (fp8r_plan_run(subject->plan, &subject->products[0].pointers, NULL, 0, NULL) != FP8R_OK) return false;
    return true;
}

/* Nanoseconds a call over the limit, a sample a round. */
static void time_calls(const struct bench_settings *settings, bool (*calls)(struct subject *), double limit_ns,
                       struct bench_bar *bar)
{
    double ratios[BENCH_ROUNDS_MOST];
    struct subject *subject = make();
    bool done = subject && calls(subject); /* warm */
    for (int i = 0; done && i < settings->rounds; i++) {
        int64_t start = fp8r_clock_ns();
        done = calls(subject);
        ratios[i] = (double)(fp8r_clock_ns() - start) / CALLS / limit_ns;
    }
    drop(subject);
    if (!done) {
        snprintf(bar->note, sizeof bar->note, "could not set up: %.200s", fp8r_last_error());
        return;
    }
    size_t count = (size_t)settings->rounds;
    fp8r_sort(ratios, count);
    struct fp8r_interval interval = fp8r_median_interval(ratios, count, 0.95);
    bar->is_measured = true;
    bar->rounds = settings->rounds;
    bar->ratio = fp8r_median(ratios, count);
    bar->low = interval.low;
    bar->high = interval.high;
    bar->mine_us = bar->ratio * limit_ns / 1e3;
    bar->peer_us = limit_ns / 1e3;
    bar->mine_rate = 1 / bar->mine_us;
    bar->peer_rate = 1 / bar->peer_us;
    snprintf(bar->config, sizeof bar->config, "null");
    snprintf(bar->note, sizeof bar->note, "the limit, %.0f ns", limit_ns);
}

void bench_decision(const struct bench_settings *settings, struct bench_bar *bar)
{
    *bar = (struct bench_bar){.name = "decision", .must = 1.0, .aim = 0.3, .rate_unit = "M/s"};
    snprintf(bar->what, sizeof bar->what, "a decision, %d known problems in random order: time / 100 ns", PROBLEMS);
    time_calls(settings, decide_all, 100, bar);
}

void bench_plan_run(const struct bench_settings *settings, struct bench_bar *bar)
{
    *bar = (struct bench_bar){.name = "plan-run", .must = 1.0, .aim = 0.5, .rate_unit = "M/s"};
    snprintf(bar->what, sizeof bar->what, "a plan's run on a backend that computes nothing: time / 200 ns");
    time_calls(settings, run_all, 200, bar);
}
