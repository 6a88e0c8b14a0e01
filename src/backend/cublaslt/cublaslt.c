/* The row of NVIDIA's cuBLASLt. Its algorithms depend on M: a plan asks for them on a ladder of M when it is
 * prepared, and a product takes the one of the next rung, so that a run asks nothing and its bits depend on M
 * alone.
 * SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/cublaslt/cublaslt_pick.h"
#include "base/sizes.h"
#include "base/status.h"

/* ---- The ladder: 1, 2, 4, 8, 16, four steps an octave up to 65536, then octaves ---- */

enum { RUNGS_MAX = 80, EVEN_RUNGS_LAST = 65536 };

static int64_t next_rung(int64_t rung)
{
    if (rung < 16 || rung >= EVEN_RUNGS_LAST) return fp8r_size_min(2 * rung, INT32_MAX);
    int64_t octave = 16;
    while (2 * octave <= rung)
        octave *= 2;
    return rung + octave / 4;
}

static int64_t rung_of(int64_t m)
{
    int64_t rung = 1;
    while (rung < m)
        rung = next_rung(rung);
    return rung;
}

/* ---- Questions ---- */

/* What a question to the library needs; product belongs to the question. */
struct view {
    const struct fp8r_cublaslt *library;
    cublasLtHandle_t handle; /* NULL: no library to ask for this device */
    const fp8r_problem *problem;
    struct fp8r_cublaslt_product product;
};

static bool view_init(struct view *view, const fp8r_device_facts *device, const fp8r_problem *problem,
                      fp8r_reason *reason)
{
    *view = (struct view){.handle = fp8r_cublaslt_handle(device), .problem = problem};
    if (!view->handle) return true;
    view->library = fp8r_cublaslt_load(reason);
    FP8R_REJECT_IF(!fp8r_cublaslt_product_init(view->library, problem, &view->product), reason, OTHER,
                   "cuBLASLt refuses an attribute of this problem", 0, 0);
    return true;
}

static bool ask(struct view *view, int config, int64_t m, struct fp8r_cublaslt_choice *choice,
                fp8r_reason *reason)
{
    return fp8r_cublaslt_ask(view->library, view->handle, view->problem, config, m, &view->product, choice,
                             reason);
}

/* Asked at both ends of the even rungs, the same for all M between; beyond, at M's own rung too. On devices
 * that have no handle (they are made by hand) the rules alone answer. */
static bool answers(struct view *view, int config, fp8r_reason *reason)
{
    const int64_t ends[] = {1, EVEN_RUNGS_LAST, rung_of(view->problem->m)};
    int count = view->problem->m > EVEN_RUNGS_LAST ? 3 : 2;
    struct fp8r_cublaslt_choice choice;
    if (!view->handle) return true;
    for (int i = 0; i < count; i++)
        if (!ask(view, config, ends[i], &choice, reason)) return false;
    return true;
}

/* ---- The contract ---- */

static bool probe(void *user, const fp8r_device_facts *device, fp8r_reason *reason)
{
    (void)user;
    const struct fp8r_cublaslt *library = fp8r_cublaslt_load(reason);
    return library && fp8r_cublaslt_handle_make(library, device, reason);
}

static const char *library(void *user)
{
    (void)user;
    fp8r_reason reason;
    const struct fp8r_cublaslt *loaded = fp8r_cublaslt_load(&reason);
    return loaded ? loaded->name : NULL;
}

static bool supports(void *user, const fp8r_device_facts *device, const fp8r_problem *problem, int config,
                     fp8r_reason *reason)
{
    (void)user;
    struct view view;
    if (!fp8r_cublaslt_takes(device, problem, reason) || !view_init(&view, device, problem, reason))
        return false;
    return answers(&view, config == FP8R_CONFIG_ANY ? FP8R_CUBLASLT_HEURISTIC : config, reason);
}

static int pick(void *user, const fp8r_device_facts *device, const fp8r_problem *problem)
{
    (void)user;
    struct view view;
    fp8r_reason ignored;
    if (!fp8r_cublaslt_is_modelled(problem)) return FP8R_CUBLASLT_HEURISTIC;
    int best = fp8r_cublaslt_best(device, problem);
    bool is_taken = view_init(&view, device, problem, &ignored) && answers(&view, best, &ignored);
    return is_taken ? best : FP8R_CUBLASLT_HEURISTIC;
}

static double expect(void *user, const fp8r_device_facts *device, const fp8r_problem *problem, int config)
{
    (void)user;
    return fp8r_cublaslt_is_modelled(problem) ? fp8r_cublaslt_expected_us(device, problem, config) : 0;
}

static int64_t horizon(void *user, const fp8r_device_facts *device, const fp8r_problem *problem)
{
    (void)user, (void)device;
    if (problem->m > INT32_MAX) return INT64_MAX;
    if (fp8r_cublaslt_is_row_wise(problem) && problem->m == 1 && problem->scale_a.row_stride != 1)
        return 1; /* a second row's scale would not stand behind the first one's */
    int64_t last = fp8r_size_max(rung_of(problem->m), EVEN_RUNGS_LAST);
    return fp8r_cublaslt_is_modelled(problem) ? fp8r_size_min(last, fp8r_cublaslt_bracket_end(problem->m))
                                              : last;
}

static char classes[FP8R_CUBLASLT_CONFIGS][64];
static pthread_once_t classes_once = PTHREAD_ONCE_INIT;

static void name_classes(void)
{
    const char *name = library(NULL);
    for (int i = 0; name && i < FP8R_CUBLASLT_CONFIGS; i++)
        snprintf(classes[i], sizeof classes[i], "cublaslt:%s:%s", strchr(name, ' ') + 1,
                 fp8r_cublaslt_config_names[i]);
}

/* The heuristic's kernel, and with it the order of k, may change with M. */
static const char *numerics(void *user, const fp8r_device_facts *device, const fp8r_problem *problem,
                            int config)
{
    (void)user;
    if (config == FP8R_CUBLASLT_HEURISTIC || problem->numerics == FP8R_NUMERICS_BATCH_INVARIANT ||
        !fp8r_cublaslt_handle(device))
        return NULL;
    pthread_once(&classes_once, name_classes);
    return classes[config];
}

/* ---- Plans ---- */

struct segment {
    int64_t m_last;
    struct fp8r_cublaslt_choice choice;
};

struct state {
    const struct fp8r_cublaslt *library;
    cublasLtHandle_t handle;
    struct fp8r_cublaslt_product product;
    int count;
    struct segment segments[]; /* by m_last, ascending */
};

/* The algorithms up to m's rung, equal neighbours as one. A rung that the library has no answer for takes the
 * one before. Returns how many, 0 with the reason where there is none at all. */
static int climb(struct view *view, int config, int64_t m, struct segment segments[RUNGS_MAX],
                 fp8r_reason *reason)
{
    int count = 0;
    for (int64_t rung = 1;; rung = next_rung(rung)) {
        struct segment *segment = &segments[count];
        if (!ask(view, config, rung, &segment->choice, reason)) {
            if (count == 0) return 0;
            segments[count - 1].m_last = rung;
        } else if (count > 0 &&
                   memcmp(&segment->choice, &segments[count - 1].choice, sizeof segment->choice) == 0) {
            segments[count - 1].m_last = rung;
        } else {
            segment->m_last = rung;
            count++;
        }
        if (rung >= m) return count;
    }
}

static size_t workspace(void *user, const fp8r_device_facts *device, const fp8r_problem *problem, int config)
{
    (void)user;
    struct view view;
    struct segment segments[RUNGS_MAX];
    fp8r_reason ignored;
    if (!view_init(&view, device, problem, &ignored) || !view.handle) return 0;
    size_t bytes = 0;
    int count = climb(&view, config, problem->m, segments, &ignored);
    for (int i = 0; i < count; i++)
        bytes = segments[i].choice.workspace_bytes > bytes ? segments[i].choice.workspace_bytes : bytes;
    return bytes;
}

static fp8r_status prepare(void *user, const fp8r_services *services, const fp8r_device_facts *device,
                           const fp8r_problem *problem, int config, void **result)
{
    (void)user, (void)services;
    struct view view;
    struct segment segments[RUNGS_MAX];
    fp8r_reason reason = {0};
    bool is_seen = view_init(&view, device, problem, &reason) && view.handle;
    int count = is_seen ? climb(&view, config, problem->m, segments, &reason) : 0;
    if (count == 0)
        return fp8r_fail(FP8R_ERROR_UNSUPPORTED, "cublaslt:%s: %s", fp8r_cublaslt_config_names[config],
                         is_seen ? reason.subject : "no library was opened for this device");
    struct state *state = malloc(sizeof *state + (size_t)count * sizeof *segments);
    if (!state) return fp8r_fail_memory("the state of a cublaslt plan");
    state->library = view.library;
    state->handle = view.handle;
    state->product = view.product;
    state->count = count;
    memcpy(state->segments, segments, (size_t)count * sizeof *segments);
    *result = state;
    return FP8R_OK;
}

static fp8r_status run(void *user, const fp8r_services *services, const void *state_,
                       const fp8r_problem *problem, int config, const fp8r_pointers *pointers, void *space,
                       size_t space_bytes, void *stream)
{
    (void)user, (void)services, (void)config, (void)space_bytes;
    const struct state *state = state_;
    const struct segment *segment = state->segments;
    while (segment->m_last < problem->m)
        segment++;
    return fp8r_cublaslt_multiply(state->library, state->handle, &state->product, problem, pointers,
                                  &segment->choice.algo, space, segment->choice.workspace_bytes, stream);
}

static void destroy(void *user, void *state)
{
    (void)user;
    free(state);
}

static const char *library_file(void *user)
{
    fp8r_reason ignored;
    const struct fp8r_cublaslt *loaded = fp8r_cublaslt_load(&ignored);
    (void)user;
    return loaded ? loaded->path : NULL;
}

const fp8r_backend fp8r_backend_cublaslt = {
    .configs = fp8r_cublaslt_config_names,
    .probe = probe,
    .library = library,
    .library_file = library_file,
    .supports = supports,
    .numerics = numerics,
    .pick = pick,
    .horizon = horizon,
    .workspace = workspace,
    .prepare = prepare,
    .run = run,
    .destroy = destroy,
    .expect = expect,
};
