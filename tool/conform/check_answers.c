/* What a backend says about a problem, before anything runs.
 * SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/sizes.h"
#include "conform/subject.h"

enum { ROWS_AHEAD = 70 }; /* how far a horizon is followed */

static bool supports(const struct fp8r_subject *subject, const fp8r_problem *problem, int config,
                     fp8r_reason *reason)
{
    *reason = (fp8r_reason){0};
    return fp8r_row_supports(subject->row, subject->device, problem, config, reason);
}

static bool is_in_catalogue(int32_t code)
{
    static const int32_t codes[] = {
#define FP8R_REASON(name, number, sentence, meaning) number,
#include <fp8route/reasons.inc>
#undef FP8R_REASON
    };
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
        if (codes[i] == code) return true;
    return false;
}

static bool check_reason(struct fp8r_subject *subject, const fp8r_reason *reason)
{
    if (!is_in_catalogue(reason->code))
        return fp8r_subject_fail(subject, "supports says no with reason %d, which is not in the catalogue",
                                 (int)reason->code);
    return true;
}

/* Asked twice, each configuration answers the same; ANY is yes exactly where one of them is. */
static bool check_supports(struct fp8r_subject *subject, bool *any)
{
    const fp8r_problem *problem = &subject->product.problem;
    const fp8r_backend *backend = &subject->row->backend;
    fp8r_reason reason;
    bool has_one = false;
    for (int i = 0; backend->configs[i]; i++) {
        fp8r_subject_begin(subject, "supports", backend->configs[i]);
        bool yes = supports(subject, problem, i, &reason);
        if (!yes && !check_reason(subject, &reason)) return false;
        if (supports(subject, problem, i, &reason) != yes)
            return fp8r_subject_fail(subject, "supports answers the same question once yes and once no");
        has_one |= yes;
    }
    fp8r_subject_begin(subject, "supports", "");
    *any = supports(subject, problem, FP8R_CONFIG_ANY, &reason);
    if (!*any && !check_reason(subject, &reason)) return false;
    if (*any && !has_one)
        return fp8r_subject_fail(subject, "supports says yes for any configuration, but no for each one");
    return true;
}

static int config_count(const fp8r_backend *backend)
{
    int count = 0;
    while (backend->configs[count])
        count++;
    return count;
}

static bool check_pick(struct fp8r_subject *subject, int *config)
{
    const fp8r_backend *backend = &subject->row->backend;
    fp8r_reason reason;
    fp8r_subject_begin(subject, "pick", "");
    *config = fp8r_row_pick(subject->row, subject->device, &subject->product.problem);
    if (*config < 0 || *config >= config_count(backend))
        return fp8r_subject_fail(subject, "pick answers %d: it has configurations 0 to %d", *config,
                                 config_count(backend) - 1);
    if (!supports(subject, &subject->product.problem, *config, &reason))
        return fp8r_subject_fail(subject, "pick names %s, which supports refuses", backend->configs[*config]);
    return true;
}

static bool same_class(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

static const char *class_of_pick(const struct fp8r_subject *subject, const fp8r_problem *problem, int config)
{
    return fp8r_row_numerics(subject->row, subject->device, problem, config);
}

static bool check_horizon(struct fp8r_subject *subject, int picked)
{
    fp8r_problem problem = subject->product.problem;
    int64_t first = problem.m, last = fp8r_row_horizon(subject->row, subject->device, &problem);
    const char *class = class_of_pick(subject, &problem, picked);
    fp8r_subject_begin(subject, "horizon", "");
    if (last < first)
        return fp8r_subject_fail(subject, "horizon answers %lld: it must be at least M, %lld",
                                 (long long)last, (long long)first);
    for (int64_t m = first; m <= fp8r_size_min(last, first + ROWS_AHEAD); m++) {
        fp8r_reason reason;
        problem.m = m;
        if (!supports(subject, &problem, FP8R_CONFIG_ANY, &reason))
            return fp8r_subject_fail(subject,
                                     "horizon promises the same up to M=%lld, but supports says no at M=%lld",
                                     (long long)last, (long long)m);
        int config = fp8r_row_pick(subject->row, subject->device, &problem);
        if (config != picked || !same_class(class, class_of_pick(subject, &problem, config)))
            return fp8r_subject_fail(
                subject,
                "horizon promises the same up to M=%lld, but pick or its numerics class is "
                "another at M=%lld",
                (long long)last, (long long)m);
    }
    return true;
}

static bool check_workspace(struct fp8r_subject *subject, int picked)
{
    fp8r_problem problem = subject->product.problem;
    size_t before = 0;
    fp8r_subject_begin(subject, "workspace", subject->row->backend.configs[picked]);
    for (int64_t m = 1; m <= subject->product.problem.m; m++) {
        problem.m = m;
        size_t bytes = fp8r_row_workspace(subject->row, subject->device, &problem, picked);
        if (bytes < before)
            return fp8r_subject_fail(subject, "workspace shrinks from %zu bytes to %zu at M=%lld", before,
                                     bytes, (long long)m);
        before = bytes;
    }
    return true;
}

/* In batch-invariant mode one class must serve every M. */
static bool check_invariance(struct fp8r_subject *subject, int picked)
{
    fp8r_problem problem = subject->product.problem;
    const char *class = class_of_pick(subject, &problem, picked);
    if (problem.numerics != FP8R_NUMERICS_BATCH_INVARIANT || !class) return true;
    fp8r_subject_begin(subject, "invariance", "");
    for (int64_t m = 1; m <= 1024; m = m < 8 ? m + 1 : 2 * m) {
        fp8r_reason reason;
        problem.m = m;
        if (!supports(subject, &problem, FP8R_CONFIG_ANY, &reason)) continue;
        int config = fp8r_row_pick(subject->row, subject->device, &problem);
        if (!same_class(class, class_of_pick(subject, &problem, config)))
            return fp8r_subject_fail(
                subject,
                "in batch-invariant mode the numerics class at M=%lld is another than at "
                "M=%lld",
                (long long)m, (long long)subject->product.problem.m);
    }
    return true;
}

bool fp8r_check_answers(struct fp8r_subject *subject)
{
    bool any = false;
    int picked = 0;
    if (!subject->multiplies) return true;
    if (!check_supports(subject, &any)) return false;
    if (!any) return true;
    return check_pick(subject, &picked) && check_horizon(subject, picked) &&
           check_workspace(subject, picked) && check_invariance(subject, picked);
}
