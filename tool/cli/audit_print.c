/* What an audit found, for people. SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "cli/audit.h"
#include "cli/audit_json.h"
#include "cli/text_table.h"

enum { BORDER_M = 16384 }; /* rules of served models change below this */

static double percent(double ratio)
{
    return 100 * (ratio - 1);
}

/* "+12.3 % to +14.5 %", or what is known of it. */
static void add_interval(struct fp8r_text_table *table, const struct fp8r_audit_result *result)
{
    if (result->low > 0 && isfinite(result->high))
        fp8r_text_table_add(table, FP8R_STYLE_NONE, "%+.1f..%+.1f %%", percent(result->low),
                            percent(result->high));
    else
        fp8r_text_table_add(table, FP8R_STYLE_DIM, "too few pairs");
}

static void add_row(struct fp8r_text_table *table, const struct fp8r_audit_result *result)
{
    bool is_bad = result->verdict == FP8R_AUDIT_LOST || result->verdict == FP8R_AUDIT_WRONG;
    bool has_ratio = result->pairs > 0;
    fp8r_text_table_add(table, FP8R_STYLE_NONE, "%s", result->question->problem);
    fp8r_text_table_add(table, is_bad ? FP8R_STYLE_BAD : FP8R_STYLE_NONE, "%s",
                        fp8r_audit_verdict_name(result->verdict));
    fp8r_text_table_add(table, FP8R_STYLE_NONE, "%s%s", result->pick,
                        result->is_guess ? " (its fastest)" : "");
    fp8r_text_table_add(table, FP8R_STYLE_NONE, "%s", result->other[0] ? result->other : "-");
    if (has_ratio)
        fp8r_text_table_add(table, FP8R_STYLE_NONE, "%+.1f %%", percent(result->ratio));
    else
        fp8r_text_table_add(table, FP8R_STYLE_NONE, "-");
    if (has_ratio)
        add_interval(table, result);
    else
        fp8r_text_table_add(table, FP8R_STYLE_NONE, "-");
    fp8r_text_table_add(table, FP8R_STYLE_NONE, "%d", result->pairs);
}

/* Everything but what is fine. */
static int print_results(const struct fp8r_audit *audit, struct fp8r_tool_error *error)
{
    static const char *const headings[] = {"problem", "verdict",   "picked", "better",
                                           ">loss",   ">interval", ">pairs"};
    struct fp8r_text_table table;
    size_t shown = 0;
    fp8r_text_table_init(&table, headings, sizeof headings / sizeof *headings);
    for (size_t i = 0; i < audit->count; i++) {
        if (audit->results[i].verdict == FP8R_AUDIT_FINE ||
            audit->results[i].verdict == FP8R_AUDIT_UNMEASURED)
            continue;
        add_row(&table, &audit->results[i]);
        shown++;
    }
    if (shown == 0) return FP8R_EXIT_GOOD;
    printf("\n");
    return fp8r_text_table_print(&table, stdout, error);
}

/* Where the rule itself changes its answer along M. */
static int print_rule_borders(const struct fp8r_picker *picker, const struct fp8r_audit_question *question,
                              int64_t m_high, struct fp8r_tool_error *error)
{
    struct fp8r_rule_borders borders = {0};
    struct fp8r_rule_point point = fp8r_picker_point(&question->key, 1);
    if (!picker->rule) {
        printf("\n");
        return FP8R_EXIT_GOOD;
    }
    int code = fp8r_rule_borders_find(picker->rule, &point, 1, m_high, &borders, error);
    if (code != FP8R_EXIT_GOOD) return code;
    if (borders.count == 0) printf("; the rule has no border up to M=%" PRId64, m_high);
    for (size_t i = 0; i < borders.count && i < 4; i++)
        printf("%s%" PRId64, i == 0 ? "; the rule changes at M=" : ", ", borders.items[i]);
    printf("%s\n", borders.count > 4 ? ", ..." : "");
    fp8r_rule_borders_fini(&borders);
    return FP8R_EXIT_GOOD;
}

static int print_stretches(const struct fp8r_picker *picker, const struct fp8r_audit *audit,
                           struct fp8r_tool_error *error)
{
    int code = FP8R_EXIT_GOOD;
    if (audit->stretch_count > 0) printf("\nwhere it goes wrong along M:\n");
    for (size_t i = 0; i < audit->stretch_count && code == FP8R_EXIT_GOOD; i++) {
        const struct fp8r_audit_stretch *stretch = &audit->stretches[i];
        int64_t m_high = stretch->m_last > BORDER_M ? stretch->m_last : BORDER_M;
        printf("  %s: wrong at M=%" PRId64, stretch->question->family, stretch->m_first);
        if (stretch->m_last > stretch->m_first) printf("..%" PRId64, stretch->m_last);
        printf(", up to %+.1f %% for not taking %s", percent(stretch->worst), stretch->other);
        if (stretch->right_before > 0) printf("; right at M=%" PRId64, stretch->right_before);
        if (stretch->right_after > 0) printf("; right again at M=%" PRId64, stretch->right_after);
        code = print_rule_borders(picker, stretch->question, m_high, error);
    }
    return code;
}

static void print_sums(const struct fp8r_audit *audit)
{
    const size_t *verdicts = audit->verdicts;
    printf("judged:  %zu of %zu problems: %zu lost, %zu open, %zu fine", audit->judged, audit->count,
           verdicts[FP8R_AUDIT_LOST], verdicts[FP8R_AUDIT_OPEN], verdicts[FP8R_AUDIT_FINE]);
    if (verdicts[FP8R_AUDIT_WRONG]) printf("; %zu with a wrong result", verdicts[FP8R_AUDIT_WRONG]);
    if (verdicts[FP8R_AUDIT_REFUSED]) printf("; %zu that the pick cannot run", verdicts[FP8R_AUDIT_REFUSED]);
    if (verdicts[FP8R_AUDIT_UNMEASURED]) printf("; %zu without samples", verdicts[FP8R_AUDIT_UNMEASURED]);
    printf("\nlost:    %.1f %% of the problems, %.1f %% of the weighted time\n", 100 * audit->problem_share,
           100 * audit->time_share);
    if (audit->regret_count > 0)
        printf("regret:  mean %.2f %%, worst %.1f %% (%zu problems)\n", 100 * audit->regret_mean,
               100 * audit->regret_worst, audit->regret_count);
    if (verdicts[FP8R_AUDIT_LOST] > 0) {
        const struct fp8r_audit_result *worst = &audit->results[verdicts[FP8R_AUDIT_WRONG]];
        printf("worst:   %s takes %.2f times as long on %s as on %s\n", worst->question->problem,
               worst->ratio, worst->pick, worst->other);
    }
}

static int print_part(const struct audit_findings *findings, const struct audit_part *part,
                      struct fp8r_tool_error *error)
{
    char identity[FP8R_IDENTITY_BYTES];
    fp8r_identity_format(&part->machine->identity, identity);
    printf("machine: %s", identity);
    for (int i = 0; i < part->machine->fact_count; i++)
        if (part->machine->facts[i].name[0] == 'n' && part->machine->facts[i].name[1] == 'a')
            printf(" (%s)", part->machine->facts[i].value);
    printf("\n");
    print_sums(&part->audit);
    int code = print_results(&part->audit, error);
    return code == FP8R_EXIT_GOOD ? print_stretches(findings->picker, &part->audit, error) : code;
}

static void print_verdict(const struct audit_findings *findings)
{
    static const struct {
        int exit_code;
        const char *text;
    } texts[] = {{FP8R_EXIT_GOOD, "no significant loss above the margin"},
                 {FP8R_EXIT_FAILED, "it loses significantly more than the margin"},
                 {FP8R_EXIT_INCONCLUSIVE,
                  "inconclusive: more than a tenth of the problems look lost within the noise, or were not begun"},
                 {FP8R_EXIT_UNMEASURED,
                  "could not be measured everywhere: picks were refused, or nothing was judged"}};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (texts[i].exit_code == findings->exit_code)
            printf("\nverdict: %s (%g %%)\n", texts[i].text, 100 * findings->margin);
}

static int print_text(const struct audit_findings *findings, struct fp8r_tool_error *error)
{
    int code = FP8R_EXIT_GOOD;
    if (findings->rule)
        printf("rule:    %s ? %s : %s\n", findings->rule, findings->picker->then_pick,
               findings->picker->else_pick);
    else
        printf("picks:   %s\n", findings->picks);
    if (findings->distribution)
        printf("random:  %" PRId64 " problems, seed %" PRId64 ": %s\n", findings->random, findings->seed,
               findings->distribution);
    for (size_t i = 0; i < findings->count && code == FP8R_EXIT_GOOD; i++) {
        if (i > 0) printf("\n");
        code = print_part(findings, &findings->parts[i], error);
    }
    if (code != FP8R_EXIT_GOOD) return code;
    print_verdict(findings);
    if (findings->folder)
        printf("samples: %s (%zu problems measured now)\n", findings->folder, findings->measured);
    if (findings->left > 0)
        printf("the budget is used up with %zu problems to go: the same command continues\n", findings->left);
    return code;
}

int fp8r_audit_print(const struct audit_findings *findings, bool json, struct fp8r_tool_error *error)
{
    return json ? fp8r_audit_print_json(findings, error) : print_text(findings, error);
}
