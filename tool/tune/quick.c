/* Measuring a family at each M of its grid.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tune/quick.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/sizes.h"
#include "measure/clock.h"
#include "measure/statistics.h"
#include "problem/problem.h"
#include "tool_status.h"
#include "tune/contest.h"
#include "tune/entrants.h"
#include "tune/race.h"

enum { ROUNDS_MIN = 7, ROUNDS_MAX = 60, SAMPLE_ELEMENTS = 1024, WHOLE_LIMIT = 100000000 };

/* Operands rotate over this many times the last-level cache. */
static const double cache_factor = 4;

/* This much slower than the best is clearly behind. */
static const double behind_factor = 3;

/* With 7 rounds the widest interval of a median has a coverage of 98 %, so 95 % can be had. */
static const double coverage = 0.95;

/* A point may take this many times its share of time; a grid that nobody asked for ends before it would take
 * more. */
static const double patience = 6;

/* A point ends at its share where rounds are short; who took this many times it will take more at the next. */
static const double overrun_factor = 1.2;

/* One family under way. */
struct work {
    struct fp8r_quick *quick;
    const struct fp8r_tune_family *family;
    struct fp8r_points *points;
    struct fp8r_inputs inputs; /* of the largest M */
    double *least_us; /* an entrant: what it took at the M before, which it takes at least; 0 unknown */
    double best_us;   /* the best at the M before, and that M */
    int64_t m_before;
    double point_seconds, taken_seconds; /* a point's share by the plan; what the last one took */
    bool is_wrong;
};

static double budget_us(const struct fp8r_contest *contest)
{
    int planned = 0;
    for (int i = 0; i < contest->count; i++)
        planned += contest->racers[i].standing != FP8R_STANDING_REFUSED;
    return (double)planned * FP8R_QUICK_CANDIDATE_MS * 1e3;
}

/* What an entrant takes at least at this M. The reference gives each thread whole rows, one element after the other: it takes as
 * many times longer as a thread has more of them. Of others all that is known is that times do not shrink. */
static double least_now(const struct work *work, int entrant, int64_t m)
{
    const double threads = fmax(fp8r_context_device(work->quick->context)->threads, 1);
    const double batch = (double)work->family->key.batch;
    bool is_reference = strcmp(work->points->entrants[entrant].backend, "reference") == 0;
    return work->least_us[entrant] * (is_reference && work->m_before > 0 ? ceil((double)m * batch / threads) /
                                                                               ceil((double)work->m_before * batch / threads)
                                                                         : 1);
}

/* Times do not shrink as M grows, and grow no faster than M: who took more than three times what the best can
 * take now need not be run at all. The default always is. */
static void drop_hopeless(struct work *work, struct fp8r_contest *contest, int fallback)
{
    double growth = work->m_before > 0 ? (double)contest->member.a.rows / (double)work->m_before : 1;
    double most_us = work->best_us * fmax(growth, 1);
    for (int i = 0; i < contest->count; i++)
        if (i != fallback && contest->racers[i].standing == FP8R_STANDING_READY && work->best_us > 0 &&
            least_now(work, i, contest->member.a.rows) > behind_factor * most_us)
            fp8r_contest_drop(contest, i, FP8R_STANDING_BEHIND, "%.0fx behind at M=%lld",
                              work->least_us[i] / work->best_us, (long long)work->m_before);
}

static void report_wrong(struct work *work, const struct fp8r_contest *contest, int racer)
{
    char line[FP8R_TEXT_BYTES + FP8R_LABEL_BYTES + 320];
    snprintf(line, sizeof line, "%s at M=%lld: %s is wrong and left out: %s", work->family->text,
             (long long)contest->member.a.rows, work->points->entrants[racer].label,
             contest->racers[racer].why);
    work->is_wrong = true;
    work->quick->note(work->quick->user, line);
}

/* Verifies, warms and races whoever is left. */
static int run_race(struct work *work, struct fp8r_contest *contest, int fallback, int64_t start_ns,
                    struct fp8r_tool_error *error)
{
    struct fp8r_race race = {.verify = fp8r_verify_options_of(fp8r_context_device(work->quick->context)),
                             .rounds_min = ROUNDS_MIN,
                             .rounds_max = ROUNDS_MAX,
                             .behind_factor = behind_factor,
                             .keep = fallback,
                             .enough_us = FP8R_QUICK_CANDIDATE_MS * 1e3 / ROUNDS_MIN,
                             .until_ns = start_ns + (int64_t)(budget_us(contest) * 1e3)};
    race.verify.seed = work->quick->seed;
    race.verify.sample_elements = SAMPLE_ELEMENTS;
    race.verify.whole_limit = WHOLE_LIMIT;
    int code = fp8r_race_enter(&race, contest, error);
    for (int i = 0; i < contest->count; i++)
        if (contest->racers[i].standing == FP8R_STANDING_WRONG) report_wrong(work, contest, i);
    return code == FP8R_EXIT_GOOD ? fp8r_race_run(&race, contest, error) : code;
}

static void set_medians(const struct fp8r_contest *contest, struct fp8r_point *point)
{
    double times[ROUNDS_MAX];
    for (int i = 0; i < contest->count; i++) {
        size_t count = fp8r_sampler_times(&contest->sampler, i, times, ROUNDS_MAX);
        fp8r_sort(times, count);
        point->medians_us[i] = count > 0 ? fp8r_median(times, count) : 0;
    }
}

/* How much faster than the other is this one? */
static struct fp8r_ratio gain_of(const struct fp8r_contest *contest, int other, int this)
{
    double others[ROUNDS_MAX], these[ROUNDS_MAX], ratios[ROUNDS_MAX];
    size_t count = fp8r_sampler_pairs(&contest->sampler, other, this, others, these, ROUNDS_MAX);
    if (count == 0) return (struct fp8r_ratio){.median = 1, .interval = {.low = 0, .high = INFINITY}};
    return fp8r_paired_ratio(others, these, count, coverage, ratios);
}

/* Index of the fastest that still races, leaving one out; -1 for none. */
static int fastest_but(const struct fp8r_contest *contest, const struct fp8r_point *point, int left_out)
{
    int best = -1;
    for (int i = 0; i < contest->count; i++)
        if (i != left_out && contest->racers[i].standing == FP8R_STANDING_RACING &&
            (best < 0 || point->medians_us[i] < point->medians_us[best]))
            best = i;
    return best;
}

/* The fastest replaces the default past the margin. A default that nobody comes near is as clear; anything
 * else is a tie, and the default stays. */
static void decide(const struct fp8r_contest *contest, double margin, struct fp8r_point *point)
{
    int rival = fastest_but(contest, point, point->fallback);
    point->chosen = point->fallback;
    point->gain_low = point->gain_high = 1;
    point->is_clear = true;
    if (rival < 0) return;
    struct fp8r_ratio gain = gain_of(contest, point->fallback, rival);
    if (gain.interval.low > 1 + margin) {
        point->chosen = rival;
        point->gain_low = gain.interval.low;
        point->gain_high = gain.interval.high;
    } else {
        point->is_clear = gain.interval.high < 1 / (1 + margin);
    }
}

/* Without a default that works, the fastest is all there is; nothing can be said to be gained. */
static void decide_alone(const struct fp8r_contest *contest, struct fp8r_point *point)
{
    point->chosen = point->fallback = fastest_but(contest, point, -1);
    point->gain_low = point->gain_high = 0;
    point->is_clear = true;
}

static int add_point(struct fp8r_points *points, const struct fp8r_contest *contest,
                     struct fp8r_point **point, struct fp8r_tool_error *error)
{
    if (points->count == points->capacity) {
        size_t capacity = points->capacity ? 2 * points->capacity : 16;
        struct fp8r_point *grown = realloc(points->points, capacity * sizeof *grown);
        if (!grown) return fp8r_tool_error_memory(error, "the points");
        points->points = grown;
        points->capacity = capacity;
    }
    double *medians = calloc((size_t)contest->count, sizeof *medians);
    if (!medians) return fp8r_tool_error_memory(error, "the points");
    *point = &points->points[points->count++];
    **point = (struct fp8r_point){.m = contest->member.a.rows, .medians_us = medians};
    return FP8R_EXIT_GOOD;
}

/* What the next M may rest on. Who was dropped for its one verified call, which was long, took that. */
static void remember(struct work *work, const struct fp8r_contest *contest, const struct fp8r_point *point)
{
    work->best_us = INFINITY;
    for (int i = 0; i < contest->count; i++) {
        double median_us = point->medians_us[i], taken_us = median_us > 0 ? median_us : contest->racers[i].first_us;
        if (taken_us > 0)
            work->least_us[i] = taken_us;
        else
            work->least_us[i] = least_now(work, i, point->m);
        if (median_us > 0) work->best_us = fmin(work->best_us, median_us);
    }
    work->m_before = point->m;
}

static int conclude(struct work *work, struct fp8r_contest *contest, int fallback,
                    struct fp8r_tool_error *error)
{
    struct fp8r_point *point = NULL;
    bool has_racer = false;
    for (int i = 0; i < contest->count; i++)
        has_racer |= contest->racers[i].standing == FP8R_STANDING_RACING;
    if (!has_racer) return FP8R_EXIT_GOOD;
    int code = add_point(work->points, contest, &point, error);
    if (code != FP8R_EXIT_GOOD) return code;
    set_medians(contest, point);
    point->fallback = fallback;
    if (fallback >= 0 && contest->racers[fallback].standing == FP8R_STANDING_RACING) {
        decide(contest, work->quick->margin, point);
        code = fp8r_entrants_fallback_last(work->quick->context, work->family->text, point->m, work->points->entrants,
                                           work->points->entrant_count, fallback, &point->default_last, error);
    } else {
        decide_alone(contest, point);
    }
    remember(work, contest, point);
    return code;
}

/* Members whose own key is another (a column-major a of odd M is less aligned) would never be looked up here.
 */
static bool is_member(const struct fp8r_tune_family *family, const fp8r_matmul *member)
{
    struct fp8r_product product;
    struct fp8r_key key;
    if (fp8r_product_init(member, FP8R_DATA_IGNORED, &product) != FP8R_OK) return false;
    fp8r_key_init(&product.problem, family->key.mode, &key);
    return fp8r_key_equal(&key, &family->key);
}

static int measure_point(struct work *work, const fp8r_matmul *member, struct fp8r_tool_error *error)
{
    struct fp8r_quick *quick = work->quick;
    struct fp8r_contest contest;
    int fallback = -1;
    int64_t start_ns = fp8r_clock_ns();
    int code = fp8r_entrants_fallback(quick->context, member, work->points->entrants,
                                      work->points->entrant_count, &fallback, error);
    if (code == FP8R_EXIT_GOOD)
        code =
            fp8r_contest_open(&contest, quick->context, work->points, NULL, member, quick->device, &quick->rotation,
                              &work->inputs, quick->seed + (uint64_t)member->a.rows, error);
    if (code != FP8R_EXIT_GOOD) return code;
    drop_hopeless(work, &contest, fallback);
    code = run_race(work, &contest, fallback, start_ns, error);
    if (code == FP8R_EXIT_GOOD) code = conclude(work, &contest, fallback, error);
    fp8r_contest_close(&contest);
    return code;
}

/* Would the default and one rival, at the best time seen so far and growing with M, take more than their
 * share? */
static bool takes_too_long(const struct work *work, int64_t m)
{
    if (work->quick->ms_are_given || work->m_before == 0) return false;
    double call_us = work->best_us * (double)m / (double)work->m_before;
    return 2 * ROUNDS_MIN * call_us > patience * 2 * FP8R_QUICK_CANDIDATE_MS * 1e3;
}

/* The rest of the family from this point on. Where calls are so long that the least rounds overrun a point's share, the next one
 * takes as much more as it has rows. */
static double expected_seconds(const struct work *work, size_t from)
{
    const bool overruns = work->taken_seconds > overrun_factor * work->point_seconds;
    double seconds = 0;
    for (size_t i = from; i < work->family->m_count && !(overruns && takes_too_long(work, work->family->ms[i])); i++) {
        double growth = work->m_before > 0 ? (double)work->family->ms[i] / (double)work->m_before : 1;
        seconds += fmax(work->point_seconds, overruns ? growth * work->taken_seconds : 0);
    }
    return seconds;
}

static void show_progress(const struct work *work, size_t point)
{
    const struct fp8r_quick *quick = work->quick;
    double share = quick->all_seconds > 0 ? quick->done_seconds / quick->all_seconds : 0;
    double others = quick->all_seconds - quick->done_seconds - (double)(work->family->m_count - point) * work->point_seconds;
    struct fp8r_progress progress = {work->family->text, work->family->ms[point], share,
                                     fmax(others, 0) + expected_seconds(work, point)};
    quick->progress(quick->user, &progress);
}

static void note_end(const struct work *work, int64_t m)
{
    char line[FP8R_TEXT_BYTES + 160];
    snprintf(line, sizeof line,
             "%s: measured up to M=%lld, larger ones take too long for the quick protocol (--m %lld asks "
             "for them)",
             work->family->text, (long long)work->m_before, (long long)m);
    work->quick->note(work->quick->user, line);
}

static int measure_points(struct work *work, struct fp8r_tool_error *error)
{
    const struct fp8r_tune_family *family = work->family;
    int code = FP8R_EXIT_GOOD;
    work->point_seconds = work->points->entrant_count * FP8R_QUICK_CANDIDATE_MS / 1e3;
    for (size_t i = 0; i < family->m_count && code == FP8R_EXIT_GOOD; i++) {
        fp8r_matmul member;
        code = fp8r_tool_status(error, fp8r_family_member(family->text, family->ms[i], &member));
        if (code != FP8R_EXIT_GOOD) break;
        show_progress(work, i);
        if (takes_too_long(work, family->ms[i])) {
            note_end(work, family->ms[i]);
            work->quick->done_seconds += (double)(family->m_count - i) * work->point_seconds;
            break;
        }
        int64_t start_ns = fp8r_clock_ns();
        if (is_member(family, &member)) code = measure_point(work, &member, error);
        work->taken_seconds = (double)(fp8r_clock_ns() - start_ns) / 1e9;
        work->quick->done_seconds += work->point_seconds;
    }
    return code;
}

static int load_operands(struct work *work, struct fp8r_tool_error *error)
{
    const struct fp8r_tune_family *family = work->family;
    fp8r_matmul largest;
    int64_t m = family->ms[family->m_count - 1];
    int code = fp8r_tool_status(error, fp8r_family_member(family->text, m, &largest));
    if (code == FP8R_EXIT_GOOD)
        code = fp8r_inputs_create(&largest, work->quick->seed, fp8r_inputs_guard(work->quick->device->is_remote), &work->inputs, error);
    return code == FP8R_EXIT_GOOD ? fp8r_rotation_load(&work->quick->rotation, work->quick->device,
                                                       &work->inputs, cache_factor, error)
                                  : code;
}

int fp8r_quick_measure(struct fp8r_quick *quick, const struct fp8r_tune_family *family,
                       struct fp8r_points *points, struct fp8r_tool_error *error)
{
    struct work work = {.quick = quick, .family = family, .points = points};
    int code = fp8r_entrants_list(quick->context, &points->entrants, &points->entrant_count, error);
    if (code != FP8R_EXIT_GOOD) return code;
    work.least_us = calloc((size_t)points->entrant_count, sizeof *work.least_us);
    if (!work.least_us) return fp8r_tool_error_memory(error, "the family's times");
    code = load_operands(&work, error);
    if (code == FP8R_EXIT_GOOD) code = measure_points(&work, error);
    fp8r_inputs_destroy(&work.inputs);
    free(work.least_us);
    if (code == FP8R_EXIT_GOOD && work.is_wrong) code = FP8R_EXIT_FAILED;
    return code;
}
