/* fp8route audit: holds a rule, or anybody's picks, against measurements.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/audit.h"

#include <inttypes.h>
#include <stdlib.h>

#include "cli/audit_live.h"
#include "cli/share.h"
#include "tune/interrupt.h"
#include "tune/named.h"

static const double margin_unless_given = 0.02;

/* Nobody has the time to measure more; and sizes are drawn in double precision. */
enum { RANDOM_MOST = 10000, SIZE_MOST = 1 << 30 };

/* ---- Words ---- */

static int check_counts(const struct audit_arguments *arguments, struct fp8r_tool_error *error)
{
    const struct {
        const char *name;
        int64_t value, most;
    } counts[] = {{"random", arguments->random, RANDOM_MOST},
                  {"size-max", arguments->size_max, SIZE_MOST},
                  {"m-max", arguments->m_max, SIZE_MOST}};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        if (counts[i].value > counts[i].most)
            return fp8r_tool_error_set(error, FP8R_EXIT_USAGE, "--%s is %" PRId64 ": it must be at most %" PRId64,
                                       counts[i].name, counts[i].value, counts[i].most);
    return FP8R_EXIT_GOOD;
}

static int check_words(const struct audit_arguments *arguments, struct fp8r_tool_error *error)
{
    bool has_families = fp8r_wanted_families_any(&arguments->wanted);
    const char *wrong =
        !arguments->rule == !arguments->picks ? "one of --rule 'EXPR' and --picks FILE says what is audited"
        : arguments->rule && (!arguments->then_pick || !arguments->else_pick)
            ? "--rule needs --then BACKEND[:CONFIG] and --else BACKEND[:CONFIG]"
        : arguments->picks && (arguments->then_pick || arguments->else_pick || arguments->is_only)
            ? "--then, --else and --only belong to --rule"
        : arguments->picks && (has_families || arguments->random > 0)
            ? "--picks names its problems itself: no families, cases or --random beside it"
        : arguments->is_offline && arguments->samples.count == 0 ? "--offline needs --samples PATH..."
        : arguments->is_offline && (has_families || arguments->random > 0)
            ? "--offline audits the problems of its samples: no families, cases or --random beside it"
        : !arguments->is_offline && arguments->samples.count > 1
            ? "--samples names one folder to add to; several can be audited with --offline"
        : !arguments->is_offline && arguments->rule && !has_families && arguments->random == 0
            ? "nothing to audit on: --family NxK, --cases FILE, --hf-config FILE, --random N or --samples "
              "PATH "
              "--offline says what"
            : NULL;
    return wrong ? fp8r_tool_error_set(error, FP8R_EXIT_USAGE, "%s", wrong) : FP8R_EXIT_GOOD;
}

static int open_picker(const struct audit_arguments *arguments, struct fp8r_picker *picker,
                       struct fp8r_tool_error *error)
{
    return arguments->rule ? fp8r_picker_init_rule(picker, arguments->rule, arguments->then_pick,
                                                   arguments->else_pick, error)
                           : fp8r_picker_init_list(picker, arguments->picks, error);
}

/* ---- Measurements already taken ---- */

/* Is there a candidate of this name on any machine? */
static bool is_sampled(const struct samples *samples, const char *name)
{
    for (size_t i = 0; i < samples->case_count; i++)
        for (int j = 0; j < samples->cases[i].count; j++)
            if (fp8r_label_is_named(samples->cases[i].candidates[j].name, name)) return true;
    return false;
}

static int check_names(const struct samples *samples, const struct fp8r_picker *picker,
                       struct fp8r_tool_error *error)
{
    const char *const names[] = {picker->then_pick, picker->else_pick};
    if (samples->case_count == 0)
        return fp8r_tool_error_set(error, FP8R_EXIT_UNMEASURED,
                                   "these samples hold no problem (folders inside of a folder are not read)");
    for (int i = 0; picker->rule && i < 2; i++)
        if (!is_sampled(samples, names[i]))
            return fp8r_tool_error_set(error, FP8R_EXIT_USAGE,
                                       "%s: no candidate of these samples has that name, %s "
                                       "is one",
                                       names[i], samples->cases[0].candidates[0].name);
    return FP8R_EXIT_GOOD;
}

/* Alternatives of the case that has most of them: all cases share the error as if they had so many. */
static int most_alternatives(const struct samples *samples, bool is_only)
{
    int most = 1;
    for (size_t i = 0; i < samples->case_count && !is_only; i++)
        most = samples->cases[i].count - 1 > most ? samples->cases[i].count - 1 : most;
    return most;
}

static int audit_machine(struct audit_findings *findings, const struct samples *samples, int machine,
                         struct fp8r_tool_error *error)
{
    struct audit_part *part = &findings->parts[findings->count];
    *part = (struct audit_part){.machine = &samples->machines[machine]};
    int code = fp8r_audit_ask_samples(&part->questions, findings->picker, findings->is_only, samples, machine,
                                      error);
    if (code != FP8R_EXIT_GOOD || part->questions.count == 0) {
        fp8r_audit_questions_fini(&part->questions);
        return code;
    }
    findings->count++;
    struct fp8r_audit_rules rules = {.margin = findings->margin, .phase = SAMPLE_PHASES};
    rules.comparisons = (int)part->questions.count * most_alternatives(samples, findings->is_only);
    code = fp8r_audit_init(&part->audit, &rules, samples, machine, &part->questions, error);
    if (code == FP8R_EXIT_GOOD)
        findings->exit_code = fp8r_exit_worse(findings->exit_code, fp8r_audit_exit(&part->audit, 0));
    return code;
}

static int audit_samples(const struct audit_arguments *arguments, struct audit_findings *findings,
                         struct samples *samples, struct fp8r_tool_error *error)
{
    int code = FP8R_EXIT_GOOD;
    for (size_t i = 0; i < arguments->samples.count && code == FP8R_EXIT_GOOD; i++)
        code = samples_read_path(samples, arguments->samples.items[i], error);
    if (code == FP8R_EXIT_GOOD) code = check_names(samples, findings->picker, error);
    if (code != FP8R_EXIT_GOOD) return code;
    findings->parts = calloc((size_t)samples->machine_count + 1, sizeof *findings->parts);
    if (!findings->parts) return fp8r_tool_error_memory(error, "the machines of the audit");
    for (int i = 0; i < samples->machine_count && code == FP8R_EXIT_GOOD; i++)
        code = audit_machine(findings, samples, i, error);
    if (code == FP8R_EXIT_GOOD && findings->count == 0)
        code = fp8r_tool_error_set(error, FP8R_EXIT_UNMEASURED,
                                   "none of the picks' problems is in these samples");
    return code;
}

/* ---- All of it ---- */

static int audit_and_print(const struct audit_arguments *arguments, struct audit_findings *findings,
                           struct fp8r_tool_error *error)
{
    struct samples samples = {0};
    struct audit_live_session session = {0};
    int code = arguments->is_offline ? audit_samples(arguments, findings, &samples, error)
                                     : fp8r_audit_live_run(&session, arguments, findings, error);
    if (code == FP8R_EXIT_GOOD) code = fp8r_audit_print(findings, arguments->common.json, error);
    for (size_t i = 0; i < findings->count; i++) {
        fp8r_audit_fini(&findings->parts[i].audit);
        fp8r_audit_questions_fini(&findings->parts[i].questions);
    }
    free(findings->parts);
    samples_fini(&samples);
    struct fp8r_tool_error closing = {0};
    int closed = fp8r_audit_live_close(&session, &closing);
    if (code == FP8R_EXIT_GOOD) code = findings->exit_code;
    return fp8r_tool_error_join(error, code, &closing, closed);
}

static int run(const void *words, struct fp8r_tool_error *error)
{
    const struct audit_arguments *arguments = words;
    struct fp8r_picker picker = {0};
    struct audit_findings findings = {.picker = &picker,
                                      .rule = arguments->rule,
                                      .picks = arguments->picks,
                                      .random = arguments->random,
                                      .seed = arguments->seed,
                                      .margin = margin_unless_given,
                                      .is_only = arguments->is_only};
    int code = check_words(arguments, error);
    if (code == FP8R_EXIT_GOOD) code = check_counts(arguments, error);
    if (code == FP8R_EXIT_GOOD)
        code = fp8r_share_parse("margin", arguments->margin, 0.001, &findings.margin, error);
    if (code == FP8R_EXIT_GOOD) code = open_picker(arguments, &picker, error);
    if (code == FP8R_EXIT_GOOD) {
        fp8r_interrupt_watch();
        code = audit_and_print(arguments, &findings, error);
    }
    fp8r_picker_fini(&picker);
    return code;
}

#define FIELD(name) offsetof(struct audit_arguments, name)

static const struct fp8r_option options[] = {
    {"rule", "EXPR", "the rule: m, n, k, b, numbers, comparisons, and, or, not, + - * // %, parentheses",
     FP8R_OPTION_TEXT, FIELD(rule), 0},
    {"then", "BACKEND[:CONFIG]",
     "where the rule sends what it holds for; without a configuration the backend's own pick",
     FP8R_OPTION_TEXT, FIELD(then_pick), 0},
    {"else", "BACKEND[:CONFIG]", "where it sends the rest", FP8R_OPTION_TEXT, FIELD(else_pick), 0},
    {"picks", "FILE",
     "instead of a rule: JSON lines {\"problem\": \"1x4096x14336\", \"pick\": \"blas:sgemm\"}, and "
     "\"weight\" where wanted",
     FP8R_OPTION_TEXT, FIELD(picks), 0},
    {"only", NULL, "hold the rule's two answers against each other; all that can run a problem unless given",
     FP8R_OPTION_FLAG, FIELD(is_only), 0},
    {"family", "NxK[:OPTION]", "families of the grid", FP8R_OPTION_LIST, FIELD(wanted.families), 0},
    {"cases", "FILE", "the problems of a case list, one a line", FP8R_OPTION_TEXT, FIELD(wanted.cases), 0},
    {"hf-config", "FILE", "the layers of a model's config.json", FP8R_OPTION_TEXT, FIELD(wanted.hf_config),
     0},
    {"safetensors", "FILE", "the layers of a checkpoint", FP8R_OPTION_LIST, FIELD(wanted.safetensors), 0},
    {"trace", "FILE", "what a program asked for, from what FP8ROUTE_TRACE=FILE wrote, weighed by its calls",
     FP8R_OPTION_LIST, FIELD(wanted.traces), 0},
    {"tp", "LIST", "tensor-parallel degrees of the model, e.g. 1,2,8", FP8R_OPTION_TEXT, FIELD(wanted.tp), 0},
    {"m", "LIST", "the values of M in the grid; powers of two from 1 to 2048 unless given", FP8R_OPTION_TEXT,
     FIELD(wanted.m), 0},
    {"random", "N", "so many random problems outside the grid, at most 10000", FP8R_OPTION_COUNT, FIELD(random), 1},
    {"size-max", "N", "the largest N and K of random problems; 8192 on a CPU unless given, 32768 on a GPU",
     FP8R_OPTION_COUNT, FIELD(size_max), 512},
    {"m-max", "M", "the largest M of random problems; 512 on a CPU unless given, 16384 on a GPU",
     FP8R_OPTION_COUNT, FIELD(m_max), 1},
    {"seed", "N", "of the random problems, operands and orders; 0 unless given", FP8R_OPTION_COUNT,
     FIELD(seed), 0},
    {"samples", "PATH",
     "the folder of raw samples, which the same command goes on with; beside the user's route file "
     "unless given",
     FP8R_OPTION_LIST, FIELD(samples), 0},
    {"offline", NULL, "measure nothing: audit the problems of --samples, each machine by itself",
     FP8R_OPTION_FLAG, FIELD(is_offline), 0},
    {"warm", NULL, "time operands that stay in the caches; they rotate out of them unless given",
     FP8R_OPTION_FLAG, FIELD(is_warm), 0},
    {"margin", "SHARE", "a loss of less does not count; 2% unless given", FP8R_OPTION_TEXT, FIELD(margin), 0},
    {"budget", "TIME", "begin no problem after so long: 90s, 10m, 2h, or so many seconds", FP8R_OPTION_TEXT, FIELD(budget), 0}};

const struct fp8r_verb fp8r_verb_audit = {
    .name = "audit",
    .summary = "hold a routing rule, or anybody's picks, against measurements",
    .words = "",
    .description = "Evaluates the rule at every problem of a grid, and at random ones outside it, and races "
                   "what it picks against "
                   "everything else that can run the problem: verified first, then in rounds of random "
                   "order, until 30 to 120 "
                   "pairs of samples say whether the pick is slower. Names each misrouted problem with its "
                   "loss and the loss's "
                   "interval, worst first, the share of problems and of time lost, and where along M the "
                   "rule goes wrong.\n\n"
                   "A loss counts where the whole interval lies beyond the margin, the error being split "
                   "over all problems and "
                   "alternatives. Exit code 1 where a loss counts or a pick computes wrong values, 3 where "
                   "more than a tenth of "
                   "the problems look lost but the noise is too wide to say so, 4 where a pick cannot run "
                   "its problem or nothing "
                   "was measured, 0 otherwise.\n\n"
                   "--picks audits any other picker the same way. --samples PATH... --offline audits "
                   "measurements already taken, "
                   "by a tune for instance, on several machines side by side, never pooled; a backend's name "
                   "then stands for the "
                   "default where that is its own, and otherwise for its fastest configuration.",
    .examples = "fp8route audit --rule 'm >= 64' --then blas --else cpu --family 4096x14336 "
                "--random 20\n"
                "fp8route audit --picks picks.jsonl --samples audit.samples --budget 10m\n"
                "fp8route audit --rule 'm >= 64' --then blas --else cpu --samples one two --offline --json",
    .has_context = true,
    .options = options,
    .option_count = sizeof options / sizeof *options,
    .arguments_bytes = sizeof(struct audit_arguments),
    .run = run,
};
