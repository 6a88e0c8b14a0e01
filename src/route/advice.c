/* Sentences about decisions. Decides nothing.
 * SPDX-License-Identifier: Apache-2.0 */
#include "route/advice.h"

#include <stdio.h>
#include <string.h>

#include "base/reason.h"
#include "problem/grammar.h"

enum { KIN_BYTES = FP8R_FAMILY_BYTES + 16 };

static void route_sentence(const struct fp8r_segment *segment, char *text, size_t size)
{
    char rows[48];
    int length = snprintf(rows, sizeof rows, "%lld", (long long)segment->m_first);
    if (segment->m_last > segment->m_first)
        snprintf(rows + length, sizeof rows - (size_t)length, " to %lld", (long long)segment->m_last);
    if (!segment->is_clear)
        snprintf(text, size, "measured within the noise of the others: what was the default stays");
    else if (segment->gain_high <= 1)
        snprintf(text, size, "measured fastest for M %s, where it was the default", rows);
    else
        snprintf(text, size, "measured fastest for M %s: %.2fx to %.2fx over the default", rows, segment->gain_low,
                 segment->gain_high);
}

void fp8r_decision_sentence(const struct fp8r_router *router, const struct fp8r_decision *decision, char *text,
                            size_t size)
{
    const struct fp8r_segment *segment = decision->segment;
    switch (decision->source) {
    case FP8R_SOURCE_FORCED:
        snprintf(text, size, "forced by FP8ROUTE_BACKEND");
        break;
    case FP8R_SOURCE_ROUTE:
        route_sentence(segment, text, size);
        break;
    case FP8R_SOURCE_EXTRAPOLATED:
        snprintf(text, size, "this M was not measured: fastest at the largest that was (%lld), and the default",
                 (long long)segment->m_last);
        break;
    case FP8R_SOURCE_NEIGHBOUR:
        snprintf(text, size, "clearly fastest for the measured families on both sides (N=%lld, K=%lld is one)",
                 (long long)decision->entry->key.n, (long long)decision->entry->key.k);
        break;
    case FP8R_SOURCE_DEFAULT:
        snprintf(text, size, "%s",
                 decision->is_overtaking ? "the default: its model expects clearly less than that of the first by priority"
                                         : "the default: first by priority, in the configuration its own model picks");
        break;
    case FP8R_SOURCE_ONLY:
        snprintf(text, size, "the only one that can run it");
        break;
    case FP8R_SOURCE_REFERENCE:
        snprintf(text, size, "nothing faster can run it");
        break;
    default:
        snprintf(text, size, "%s", router->routed_only ? "no measured route decides" : "nothing can run it");
    }
}

static const char *file_of(const struct fp8r_router *router, const struct fp8r_entry *entry)
{
    const struct fp8r_table *table = router->table;
    return entry->file >= 0 && entry->file < table->file_count ? table->files[entry->file] : "memory";
}

static bool is_stale(const struct fp8r_router *router, const struct fp8r_decision *decision)
{
    return decision->segment && decision->row >= 0 &&
           strcmp(decision->segment->rev, router->registry->rows[decision->row].backend.rev) != 0;
}

/* Whose entry it is, where it is not the problem's own: " (measured as FAMILY)". */
static void kin_text(const struct fp8r_router *router, const fp8r_problem *problem, const struct fp8r_entry *entry,
                     char *text, size_t size)
{
    struct fp8r_key key;
    char family[FP8R_FAMILY_BYTES];
    fp8r_key_init(problem, router->mode, &key);
    key.mode = entry->key.mode;
    text[0] = '\0';
    if (!fp8r_key_equal(&key, &entry->key) && fp8r_entry_family(entry, family) == FP8R_OK)
        snprintf(text, size, " (measured as %s)", family);
}

/* "no route" in its several forms; `reason` for the refusal. */
static void miss_text(const struct fp8r_router *router, const fp8r_problem *problem,
                      const struct fp8r_decision *decision, char *text, size_t size)
{
    const struct fp8r_segment *segment = decision->segment;
    char sentence[192], kin[KIN_BYTES] = "";
    fp8r_reason_sentence(&decision->refusal, sentence, sizeof sentence);
    if (decision->entry)
        kin_text(router, problem, decision->entry, kin, sizeof kin);
    switch (decision->miss) {
    case FP8R_MISS_NO_M:
        snprintf(text, size, "%s has this family%s, but not around this M", file_of(router, decision->entry), kin);
        break;
    case FP8R_MISS_BACKEND:
        snprintf(text, size, "%s routes this%s to backend %s, which is not here", file_of(router, decision->entry), kin,
                 segment->backend);
        break;
    case FP8R_MISS_CONFIG:
        snprintf(text, size, "%s routes this%s to %s:%s, a configuration that is not here",
                 file_of(router, decision->entry), kin, segment->backend, segment->config);
        break;
    case FP8R_MISS_REFUSED:
        snprintf(text, size, "%s routes this%s to %s:%s, which %s", file_of(router, decision->entry), kin,
                 segment->backend, segment->config, sentence);
        break;
    case FP8R_MISS_BEYOND:
        snprintf(text, size, "%s measured up to M=%lld%s, where %s was fastest; behind that only the default counts",
                 file_of(router, decision->entry), (long long)segment->m_last, kin, segment->backend);
        break;
    default:
        snprintf(text, size, "not measured on this machine");
    }
}

/* The full protocol takes some three times as long as the quick one: borders, confirmation. */
enum { FULL_FACTOR = 3 };

/* Does the grid end in calls that outlast a candidate's share (a processor takes some 20 ms for so many operations)? The last
 * points then take up to six times theirs, each half of the next one's: at most the plan once more. */
static bool has_long_calls(const struct fp8r_router *router, const fp8r_problem *problem)
{
    const double operations = 2.0 * FP8R_QUICK_LAST_M * (double)problem->n * (double)problem->k * (double)problem->batch;
    return router->device->kind == FP8R_DEVICE_CPU && operations > 4e9;
}

/* "" where nothing could be measured. What was measured in full a quick tune does not replace. */
static void tune_text(const struct fp8r_router *router, const fp8r_problem *problem,
                      const struct fp8r_candidates *candidates, char *text, size_t size)
{
    struct fp8r_key key;
    char family[FP8R_TEXT_BYTES];
    int eligible = 0;
    fp8r_key_init(problem, router->mode, &key);
    if (fp8r_family_format(&key, family, sizeof family) != FP8R_OK)
        family[0] = '\0';
    for (int i = 0; i < router->registry->count; i++) /* the tuner races every configuration */
        for (int j = 0; candidates->rows[i].is_eligible && router->registry->rows[i].backend.configs[j]; j++)
            eligible++;
    const struct fp8r_entry *entry = fp8r_table_find(router->table, &key);
    bool is_full = entry && !entry->is_quick, is_beyond = problem->m > FP8R_QUICK_LAST_M;
    int ms = eligible * (FP8R_QUICK_POINTS + is_beyond) * FP8R_QUICK_CANDIDATE_MS * (is_full ? FULL_FACTOR : 1);
    char rows[96] = "", most[32] = "";
    if (is_beyond)
        snprintf(rows, sizeof rows, " --m 1,2,4,8,16,32,64,128,256,512,1024,2048,%lld", (long long)problem->m);
    if (has_long_calls(router, problem))
        snprintf(most, sizeof most, " to %d", (2 * ms + 999) / 1000);
    text[0] = '\0';
    if (eligible > 0)
        snprintf(text, size, "; fp8route tune%s --family '%s'%s measures it in about %d%s s", is_full ? "" : " --quick", family,
                 rows, (ms + 999) / 1000, most);
}

void fp8r_decision_note(const struct fp8r_router *router, const fp8r_problem *problem,
                        const struct fp8r_candidates *candidates, const struct fp8r_decision *decision, char *text,
                        size_t size)
{
    char first[512], second[448];
    if (decision->miss == FP8R_MISS_NONE && decision->source != FP8R_SOURCE_FORCED) {
        kin_text(router, problem, decision->entry, first, sizeof first);
        snprintf(text, size, "from %s%s%s%s", file_of(router, decision->entry), first,
                 decision->entry->is_quick ? " (quick)" : "",
                 is_stale(router, decision) ? "; stale: the backend has changed since it was measured" : "");
        return;
    }
    if (decision->source == FP8R_SOURCE_FORCED) {
        snprintf(text, size, "no route was looked up");
        return;
    }
    if (decision->source == FP8R_SOURCE_NEIGHBOUR) {
        tune_text(router, problem, candidates, second, sizeof second);
        snprintf(text, size, "by its neighbours in %s%s", file_of(router, decision->entry), second);
        return;
    }
    miss_text(router, problem, decision, first, sizeof first);
    tune_text(router, problem, candidates, second, sizeof second);
    snprintf(text, size, "%s%s", first, second);
}
