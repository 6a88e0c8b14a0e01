/* Running a race. SPDX-License-Identifier: Apache-2.0 */
#include "tune/recorded_race.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "measure/clock.h"
#include "tool_status.h"
#include "tune/contest.h"
#include "tune/entrants.h"
#include "tune/interrupt.h"

enum { SAMPLE_ELEMENTS = 4096, WHOLE_LIMIT = 2000000000, ENOUGH_US = 50000 };

/* What a single call may take longer than others by chance: it is measured with the start of its recording. */
static const double single_us = 6;

/* One race under way. Racers are the entrants; candidates are those of them that can run the problem. */
struct race {
    const struct race_track *track;
    const struct race_rules *rules;
    struct fp8r_contest contest;
    int *candidates; /* an entrant's number in the case, -1 = it refuses */
    size_t index;    /* of the case */
    size_t recorded; /* samples of the sampler that are in the record */
    int32_t first_round;
    int fallback;    /* an entrant */
    bool is_wrong;
};

static struct sample_case *case_of(const struct race *race)
{
    return &race->track->record->samples.cases[race->index];
}

static bool is_wanted(const struct race *race, int racer)
{
    const char *label = race->track->entrants->entrants[racer].label;
    const char *const *only = race->rules->only;
    while (only && *only && strcmp(label, *only) != 0)
        only++;
    return !only || *only;
}

static bool is_kept(const struct race *race, int racer)
{
    const char *keep = race->rules->keep;
    return racer == race->fallback || (keep && strcmp(race->track->entrants->entrants[racer].label, keep) == 0);
}

/* Was it dropped in an earlier run, for a reason that still counts? */
static bool is_dropped(const struct race *race, int racer)
{
    const char *why = case_of(race)->candidates[race->candidates[racer]].dropped;
    return why[0] && !(is_kept(race, racer) && strstr(why, "behind"));
}

static struct sample_case *find_case(const struct race *race, const char *problem)
{
    return samples_find(&race->track->record->samples, race->track->record->machine, problem);
}

/* A case that is known keeps its candidates: those that stay out today are not asked again. Their revisions are today's,
 * so that another one shows. */
static void copy_candidates(struct race *race, const struct sample_case *known, struct sample_case *wanted)
{
    const struct fp8r_points *entrants = race->track->entrants;
    wanted->count = known->count;
    wanted->fallback = known->fallback;
    for (int i = 0; i < known->count; i++) {
        memcpy(wanted->candidates[i].name, known->candidates[i].name, sizeof known->candidates[i].name);
        memcpy(wanted->candidates[i].rev, known->candidates[i].rev, sizeof known->candidates[i].rev);
    }
    for (int i = 0; i < entrants->entrant_count; i++) {
        int at = sample_case_candidate(known, entrants->entrants[i].label);
        race->candidates[i] = at;
        if (at < 0)
            continue;
        memcpy(wanted->candidates[at].rev, entrants->entrants[i].rev, sizeof entrants->entrants[i].rev);
        wanted->fallback = i == race->fallback ? at : wanted->fallback;
    }
}

static void list_candidates(struct race *race, struct sample_case *wanted)
{
    const struct fp8r_points *entrants = race->track->entrants;
    for (int i = 0; i < entrants->entrant_count; i++) {
        race->candidates[i] = -1;
        if (race->contest.racers[i].standing == FP8R_STANDING_REFUSED)
            continue;
        race->candidates[i] = wanted->count;
        wanted->fallback = i == race->fallback ? wanted->count : wanted->fallback;
        memcpy(wanted->candidates[wanted->count].name, entrants->entrants[i].label, sizeof entrants->entrants[i].label);
        memcpy(wanted->candidates[wanted->count++].rev, entrants->entrants[i].rev, sizeof entrants->entrants[i].rev);
    }
}

/* Up to where the default stays what it is: routes of a CPU end there. A gate and an audit make none. */
static int find_default_last(const struct race *race, struct sample_case *wanted, struct fp8r_tool_error *error)
{
    const struct record *record = race->track->record;
    char family[FP8R_TEXT_BYTES];
    if (race->rules->phase > SAMPLE_CONFIRM || race->fallback < 0 || race->candidates[race->fallback] < 0 ||
        record->samples.machines[record->machine].identity.kind == FP8R_DEVICE_CUDA)
        return FP8R_EXIT_GOOD;
    int code = fp8r_tool_status(error, fp8r_family_format(&wanted->key, family, sizeof family));
    return code == FP8R_EXIT_GOOD
               ? fp8r_entrants_fallback_last(race->track->context, family, wanted->m, race->track->entrants->entrants,
                                             race->track->entrants->entrant_count, race->fallback, &wanted->default_last,
                                             error)
               : code;
}

/* Announces the case: its candidates are the entrants that can run it, whether they race today or not. */
static int announce(struct race *race, const char *problem, const fp8r_matmul *member, struct fp8r_tool_error *error)
{
    const struct fp8r_points *entrants = race->track->entrants;
    const struct sample_case *known = find_case(race, problem);
    struct sample_case wanted = {.weight = race->rules->weight > 0 ? race->rules->weight : 1};
    struct fp8r_product product;
    int code = fp8r_tool_status(error, fp8r_product_init(member, FP8R_DATA_IGNORED, &product));
    if (code != FP8R_EXIT_GOOD)
        return code;
    snprintf(wanted.problem, sizeof wanted.problem, "%s", problem);
    fp8r_key_init(&product.problem, race->track->record->samples.machines[race->track->record->machine].mode, &wanted.key);
    wanted.m = product.problem.m;
    size_t room = (size_t)(known && known->count > entrants->entrant_count ? known->count : entrants->entrant_count);
    wanted.candidates = calloc(room, sizeof *wanted.candidates);
    if (!wanted.candidates)
        return fp8r_tool_error_memory(error, "a case");
    if (known && race->rules->only)
        copy_candidates(race, known, &wanted);
    else
        list_candidates(race, &wanted);
    if (!known || known->default_last == 0)
        code = find_default_last(race, &wanted, error);
    if (code == FP8R_EXIT_GOOD)
        code = wanted.count > 0 ? record_case(race->track->record, &wanted, &race->index, error)
                            : fp8r_tool_error_set(error, FP8R_EXIT_UNMEASURED, "%s: no backend can run it", problem);
    free(wanted.candidates);
    return code;
}

static int drop(struct race *race, int racer, enum fp8r_standing standing, const char *why, struct fp8r_tool_error *error)
{
    fp8r_contest_drop(&race->contest, racer, standing, "%s", why);
    return record_dropped(race->track->record, race->index, race->candidates[racer], why, error);
}

static int drop_wrong(struct race *race, int racer, struct fp8r_tool_error *error)
{
    char line[FP8R_TEXT_BYTES + FP8R_LABEL_BYTES + 320];
    snprintf(line, sizeof line, "%s: %s is wrong and left out: %s", case_of(race)->problem,
             race->track->entrants->entrants[racer].label, race->contest.racers[racer].why);
    race->track->note(race->track->user, line);
    race->is_wrong = true;
    return record_dropped(race->track->record, race->index, race->candidates[racer], "wrong result", error);
}

static bool are_siblings(const struct race *race, int one, int other)
{
    const struct fp8r_entrant *entrants = race->track->entrants->entrants;
    return strcmp(entrants[one].backend, entrants[other].backend) == 0;
}

/* The least time of those that are in, of one's own backend or of all. */
static double least_of(const struct race *race, int racer, bool own)
{
    double least_us = INFINITY;
    for (int i = 0; i < race->contest.count; i++)
        if (race->contest.racers[i].standing == FP8R_STANDING_RACING && (!own || are_siblings(race, racer, i)))
            least_us = fmin(least_us, fp8r_contest_least_us(&race->contest, i));
    return least_us;
}

/* Twice the distance that counts later, as in the first rounds. 0: no limit. */
static double hopeless_us(const struct race *race, int racer)
{
    const struct race_rules *rules = race->rules;
    if (!race->track->device->records || !(rules->behind_factor > 1) || is_kept(race, racer))
        return 0;
    double limit_us = (2 * rules->behind_factor - 1) * least_of(race, racer, false);
    if (rules->sibling_factor > 1)
        limit_us = fmin(limit_us, (2 * rules->sibling_factor - 1) * least_of(race, racer, true));
    return limit_us < INFINITY ? limit_us + single_us : 0;
}

static int drop_slow(struct race *race, int racer, struct fp8r_tool_error *error)
{
    char why[64];
    snprintf(why, sizeof why, "%.2fx behind", race->contest.racers[racer].first_us / least_of(race, racer, false));
    return drop(race, racer, FP8R_STANDING_BEHIND, why, error);
}

/* Times behind whatever the rules hold a racer against: everybody's best, and its own backend's. */
static double behind(const struct race *race, int racer, double best_us)
{
    const struct fp8r_contest *contest = &race->contest;
    const struct race_rules *rules = race->rules;
    double times = fp8r_contest_behind(contest, racer, best_us, rules->behind_factor);
    if (times > 0 || !(rules->sibling_factor > 1))
        return times;
    times = fp8r_contest_behind(contest, racer, least_of(race, racer, true), rules->sibling_factor);
    return times > 0 ? fp8r_contest_least_us(contest, racer) / best_us : 0;
}

static int drop_behind(struct race *race, struct fp8r_tool_error *error)
{
    struct fp8r_contest *contest = &race->contest;
    double best_us = fp8r_contest_best_us(contest); /* who is dropped is not the best */
    int code = FP8R_EXIT_GOOD;
    for (int i = 0; i < contest->count && code == FP8R_EXIT_GOOD; i++) {
        char why[64];
        if (is_kept(race, i) || contest->racers[i].standing != FP8R_STANDING_RACING)
            continue;
        double times = behind(race, i, best_us);
        if (!(times > 0))
            continue;
        snprintf(why, sizeof why, "%.2fx behind", times);
        code = drop(race, i, FP8R_STANDING_BEHIND, why, error);
    }
    return code;
}

static int verify(struct race *race, int i, struct fp8r_tool_error *error)
{
    struct fp8r_verify_options options = fp8r_verify_options_of(fp8r_context_device(race->track->context));
    struct sample_candidate *candidate = &case_of(race)->candidates[race->candidates[i]];
    options.seed = race->rules->seed;
    options.sample_elements = SAMPLE_ELEMENTS;
    options.whole_limit = WHOLE_LIMIT;
    race->contest.hopeless_us = hopeless_us(race, i);
    /* Once a process: the phases of a problem share its operands, and a reference can take longer than a race. */
    int code = candidate->is_verified ? FP8R_EXIT_GOOD : fp8r_contest_verify(&race->contest, i, &options, error);
    candidate->is_verified = code == FP8R_EXIT_GOOD && race->contest.racers[i].standing == FP8R_STANDING_READY;
    if (code == FP8R_EXIT_GOOD && race->contest.racers[i].standing == FP8R_STANDING_BEHIND)
        code = drop_slow(race, i, error);
    return code == FP8R_EXIT_GOOD && race->contest.racers[i].standing == FP8R_STANDING_WRONG ? drop_wrong(race, i, error)
                                                                                             : code;
}

/* Verifies and warms those that are to race. Who was dropped in an earlier run stays out. */
static int enter_all(struct race *race, struct fp8r_tool_error *error)
{
    /* Where a batch is recorded, a single turn of it tells who is far behind before long ones are. */
    bool has_heats = race->track->device->records && race->rules->behind_factor > 1;
    for (int i = 0; i < race->contest.count; i++) {
        struct fp8r_racer *racer = &race->contest.racers[i];
        if (racer->standing != FP8R_STANDING_READY || !is_wanted(race, i) || is_dropped(race, i))
            continue;
        if (fp8r_interrupted())
            return FP8R_EXIT_INTERRUPTED;
        int code = verify(race, i, error);
        if (code == FP8R_EXIT_GOOD && racer->standing == FP8R_STANDING_READY)
            code = fp8r_contest_enter(&race->contest, i, has_heats ? 0 : ENOUGH_US, error);
        if (code != FP8R_EXIT_GOOD)
            return code;
    }
    if (!has_heats)
        return FP8R_EXIT_GOOD;
    int code = drop_behind(race, error);
    for (int i = 0; i < race->contest.count && code == FP8R_EXIT_GOOD; i++)
        if (race->contest.racers[i].standing == FP8R_STANDING_RACING)
            code = fp8r_contest_enter(&race->contest, i, ENOUGH_US, error);
    return code;
}

/* A GPU keeps its clock for some 0.1 s of a large product and then lowers it to what its power allows; candidates that are 6 %
 * apart before may be equal behind (docs/worklog.md). What counts is the chip that has been busy, as in a model's layers one
 * behind the other. Below so many operations a microsecond the clock stays. */
static int heat(struct race *race, const fp8r_matmul *member, struct fp8r_tool_error *error)
{
    const double heat_us = 150e3, operations_limit = 6e8;
    const double operations = 2.0 * (double)member->out.batch * (double)member->a.rows * (double)member->a.cols * (double)member->b.cols;
    if (!race->track->device->records || operations < operations_limit * fp8r_contest_best_us(&race->contest))
        return FP8R_EXIT_GOOD;
    return fp8r_sampler_heat(&race->contest.sampler, heat_us, error);
}

static int16_t read_state(const struct fp8r_measure_device *device, int (*read)(void *user))
{
    return read ? (int16_t)read(device->user) : 0;
}

/* What the sampler took since the last time, with the device as it is now. */
static int record_round(struct race *race, struct fp8r_tool_error *error)
{
    const struct fp8r_measure_device *device = race->track->device;
    const struct fp8r_sampler *sampler = &race->contest.sampler;
    const struct sample state = {.mhz = read_state(device, device->clock_mhz),
                                 .watts = read_state(device, device->power_watts),
                                 .celsius = read_state(device, device->temperature_celsius)};
    int code = FP8R_EXIT_GOOD;
    for (; race->recorded < sampler->sample_count && code == FP8R_EXIT_GOOD; race->recorded++) {
        const struct fp8r_sample *taken = &sampler->samples[race->recorded];
        struct sample sample = {.us = taken->us,
                                .round = race->first_round + taken->round,
                                .phase = (int16_t)race->rules->phase,
                                .mhz = state.mhz,
                                .watts = state.watts,
                                .celsius = state.celsius};
        code = record_sample(race->track->record, race->index, race->candidates[taken->contestant], &sample, error);
    }
    return code == FP8R_EXIT_GOOD ? record_flush(race->track->record, error) : code;
}

static int run_rounds(struct race *race, struct fp8r_tool_error *error)
{
    const struct race_rules *rules = race->rules;
    int64_t start_ns = fp8r_clock_ns();
    race->first_round = record_next_round(race->track->record, race->index, rules->phase);
    for (int round = 0; round < rules->rounds_most; round++) {
        double spent_us = (double)(fp8r_clock_ns() - start_ns) / 1e3;
        bool over = round >= rules->rounds_least && spent_us + fp8r_sampler_round_us(&race->contest.sampler) > rules->budget_us;
        if (over || (round >= rules->rounds_least && rules->is_enough && rules->is_enough(rules->arg, case_of(race))))
            break;
        if (fp8r_interrupted())
            return FP8R_EXIT_INTERRUPTED;
        int code = fp8r_sampler_round(&race->contest.sampler, error);
        if (code == FP8R_EXIT_GOOD)
            code = record_round(race, error);
        if (code == FP8R_EXIT_GOOD && rules->behind_factor > 1)
            code = drop_behind(race, error);
        if (code != FP8R_EXIT_GOOD)
            return code;
    }
    return FP8R_EXIT_GOOD;
}

int race_run(const struct race_track *track, const struct race_rules *rules, const char *problem,
             const fp8r_matmul *member, size_t *index, struct fp8r_tool_error *error)
{
    const struct fp8r_points *entrants = track->entrants;
    struct race race = {.track = track, .rules = rules};
    int code = fp8r_entrants_fallback(track->context, member, entrants->entrants, entrants->entrant_count, &race.fallback,
                                      error);
    if (code == FP8R_EXIT_GOOD)
        code = fp8r_contest_open(&race.contest, track->context, entrants, find_case(&race, problem) ? rules->only : NULL,
                                 member, track->device, track->rotation, track->inputs, rules->seed, error);
    if (code != FP8R_EXIT_GOOD)
        return code;
    race.candidates = calloc((size_t)entrants->entrant_count, sizeof *race.candidates);
    code = race.candidates ? announce(&race, problem, member, error) : fp8r_tool_error_memory(error, "a race");
    if (code == FP8R_EXIT_GOOD)
        code = enter_all(&race, error);
    if (code == FP8R_EXIT_GOOD)
        code = heat(&race, member, error);
    if (code == FP8R_EXIT_GOOD)
        code = run_rounds(&race, error);
    if (track->timed_ns)
        *track->timed_ns += race.contest.sampler.timed_ns;
    fp8r_contest_close(&race.contest);
    free(race.candidates);
    *index = race.index;
    return code == FP8R_EXIT_GOOD && race.is_wrong ? FP8R_EXIT_FAILED : code;
}
