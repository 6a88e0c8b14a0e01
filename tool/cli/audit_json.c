/* The object of `audit --json`. SPDX-License-Identifier: Apache-2.0 */
#include "cli/audit_json.h"

#include <math.h>
#include <stdio.h>

#include "cli/output.h"

/* JSON has no infinity: what bounds nothing is null. */
static json_t *number(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

static json_t *count(size_t value)
{
    return json_integer((json_int_t)value);
}

static void set_result(struct fp8r_output *output, json_t *object, const struct fp8r_audit_result *result)
{
    const struct fp8r_audit_question *question = result->question;
    bool has_pairs = result->pairs > 0;
    fp8r_output_set_text(output, object, "problem", question->problem);
    fp8r_output_set_text(output, object, "from", question->is_random ? "random" : "grid");
    fp8r_output_set(output, object, "weight", json_real(question->weight));
    fp8r_output_set_text(output, object, "verdict", fp8r_audit_verdict_name(result->verdict));
    fp8r_output_set_text(output, object, "picked", result->pick);
    fp8r_output_set(output, object, "picked_is_fastest_of_backend", json_boolean(result->is_guess));
    fp8r_output_set_text(output, object, "better", result->other[0] ? result->other : NULL);
    fp8r_output_set(output, object, "picked_us", has_pairs ? number(result->pick_us) : json_null());
    fp8r_output_set(output, object, "loss", has_pairs ? number(result->ratio - 1) : json_null());
    fp8r_output_set(output, object, "loss_low",
                    has_pairs && result->low > 0 ? number(result->low - 1) : json_null());
    fp8r_output_set(output, object, "loss_high", has_pairs ? number(result->high - 1) : json_null());
    fp8r_output_set(output, object, "pairs", json_integer(result->pairs));
    fp8r_output_set(output, object, "regret", number(result->regret));
    fp8r_output_set_text(output, object, "refusal", question->refusal[0] ? question->refusal : NULL);
}

static int set_stretch(struct fp8r_output *output, json_t *object, const struct fp8r_picker *picker,
                       const struct fp8r_audit_stretch *stretch, struct fp8r_tool_error *error)
{
    struct fp8r_rule_borders borders = {0};
    struct fp8r_rule_point point = fp8r_picker_point(&stretch->question->key, 1);
    int code = FP8R_EXIT_GOOD;
    if (picker->rule)
        code = fp8r_rule_borders_find(picker->rule, &point, 1, stretch->m_last, &borders, error);
    if (code != FP8R_EXIT_GOOD) return code;
    fp8r_output_set_text(output, object, "family", stretch->question->family);
    fp8r_output_set(output, object, "m_first", json_integer(stretch->m_first));
    fp8r_output_set(output, object, "m_last", json_integer(stretch->m_last));
    fp8r_output_set(output, object, "right_before",
                    stretch->right_before > 0 ? json_integer(stretch->right_before) : json_null());
    fp8r_output_set(output, object, "right_after",
                    stretch->right_after > 0 ? json_integer(stretch->right_after) : json_null());
    fp8r_output_set_text(output, object, "picked", stretch->pick);
    fp8r_output_set_text(output, object, "better", stretch->other);
    fp8r_output_set(output, object, "worst_loss", number(stretch->worst - 1));
    json_t *list = fp8r_output_add_array(output, object, "rule_borders");
    for (size_t i = 0; i < borders.count; i++)
        fp8r_output_append(output, list, json_integer(borders.items[i]));
    fp8r_rule_borders_fini(&borders);
    return code;
}

static int set_part(struct fp8r_output *output, json_t *object, const struct fp8r_picker *picker,
                    const struct audit_part *part, struct fp8r_tool_error *error)
{
    const struct fp8r_audit *audit = &part->audit;
    char identity[FP8R_IDENTITY_BYTES];
    int code = FP8R_EXIT_GOOD;
    fp8r_identity_format(&part->machine->identity, identity);
    fp8r_output_set_text(output, object, "machine", identity);
    json_t *facts = fp8r_output_add_object(output, object, "facts");
    for (int i = 0; i < part->machine->fact_count; i++)
        fp8r_output_set_text(output, facts, part->machine->facts[i].name, part->machine->facts[i].value);
    fp8r_output_set(output, object, "count", count(audit->count));
    fp8r_output_set(output, object, "judged", count(audit->judged));
    for (int i = 0; i < FP8R_AUDIT_VERDICTS; i++)
        fp8r_output_set(output, object, fp8r_audit_verdict_name((enum fp8r_audit_verdict)i),
                        count(audit->verdicts[i]));
    fp8r_output_set(output, object, "problem_share_lost", number(audit->problem_share));
    fp8r_output_set(output, object, "time_share_lost", number(audit->time_share));
    fp8r_output_set(output, object, "regret_mean",
                    audit->regret_count ? number(audit->regret_mean) : json_null());
    fp8r_output_set(output, object, "regret_worst",
                    audit->regret_count ? number(audit->regret_worst) : json_null());
    json_t *problems = fp8r_output_add_array(output, object, "problems");
    for (size_t i = 0; i < audit->count; i++)
        set_result(output, fp8r_output_append_object(output, problems), &audit->results[i]);
    json_t *stretches = fp8r_output_add_array(output, object, "wrong_along_m");
    for (size_t i = 0; i < audit->stretch_count && code == FP8R_EXIT_GOOD; i++)
        code = set_stretch(output, fp8r_output_append_object(output, stretches), picker, &audit->stretches[i],
                           error);
    return code;
}

static const char *verdict_name(int exit_code)
{
    return exit_code == FP8R_EXIT_GOOD           ? "good"
           : exit_code == FP8R_EXIT_FAILED       ? "lost"
           : exit_code == FP8R_EXIT_INCONCLUSIVE ? "inconclusive"
                                                 : "unmeasured";
}

int fp8r_audit_print_json(const struct audit_findings *findings, struct fp8r_tool_error *error)
{
    struct fp8r_output output;
    const struct fp8r_picker *picker = findings->picker;
    int code = FP8R_EXIT_GOOD;
    fp8r_output_init(&output, "audit");
    fp8r_output_set_text(&output, output.root, "verdict", verdict_name(findings->exit_code));
    fp8r_output_set(&output, output.root, "margin", json_real(findings->margin));
    fp8r_output_set_text(&output, output.root, "rule", findings->rule);
    fp8r_output_set_text(&output, output.root, "then", findings->rule ? picker->then_pick : NULL);
    fp8r_output_set_text(&output, output.root, "else", findings->rule ? picker->else_pick : NULL);
    fp8r_output_set_text(&output, output.root, "picks", findings->picks);
    fp8r_output_set(&output, output.root, "only", json_boolean(findings->is_only));
    fp8r_output_set(&output, output.root, "seed", json_integer(findings->seed));
    fp8r_output_set(&output, output.root, "random", json_integer(findings->random));
    fp8r_output_set_text(&output, output.root, "distribution", findings->distribution);
    fp8r_output_set_text(&output, output.root, "samples", findings->folder);
    fp8r_output_set(&output, output.root, "measured", count(findings->measured));
    fp8r_output_set(&output, output.root, "left", count(findings->left));
    json_t *machines = fp8r_output_add_array(&output, output.root, "machines");
    for (size_t i = 0; i < findings->count && code == FP8R_EXIT_GOOD; i++)
        code = set_part(&output, fp8r_output_append_object(&output, machines), picker, &findings->parts[i],
                        error);
    if (code == FP8R_EXIT_GOOD) return fp8r_output_print(&output, error);
    json_decref(output.root);
    return code;
}
