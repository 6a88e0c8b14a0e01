/* fp8route fit: the shortest rule that measurements allow.
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/output.h"
#include "cli/share.h"
#include "cli/verb.h"
#include "plural.h"
#include "tune/fit_files.h"

struct fit_arguments {
    struct fp8r_common common;
    struct fp8r_words samples;
    const char *x, *y, *bound, *out_dir;
    int64_t boxes;
};

static const double bound_unless_given = 0.01;
enum { BOXES_UNLESS_GIVEN = 4 };

/* ---- For people ---- */

static void print_machine(const struct fp8r_fit_story *story, int device)
{
    const struct fp8r_route_file *machine = &story->samples->machines[story->set->machines[device]];
    struct fp8r_fit_price price = fp8r_fit_set_price(story->set, story->fit, device);
    char identity[FP8R_IDENTITY_BYTES];
    fp8r_identity_format(&machine->identity, identity);
    printf(
        "machine %d: %s\n           regret %.2f %%, held out %.2f %%; always %s %.1f %%, always %s %.1f %%\n"
        "           price beside the full table %.2f %%, worst problem %.1f %%\n",
        device + 1, identity, 100 * story->fit->regret.device[device],
        100 * story->fit->held_out.device[device], story->set->x, 100 * story->fit->always.device[device],
        story->set->y, 100 * story->fit->never.device[device], 100 * price.mean, 100 * price.worst);
}

static int print_text(const struct fp8r_fit_story *story, const char *out_dir, struct fp8r_tool_error *error)
{
    const struct fp8r_fit *fit = story->fit;
    char *c = fp8r_fit_function(story, FP8R_RULE_C), *python = fp8r_fit_function(story, FP8R_RULE_PYTHON);
    int code = c && python ? FP8R_EXIT_GOOD : fp8r_tool_error_memory(error, "the rule");
    if (code == FP8R_EXIT_GOOD) {
        printf("rule:      %s\n           takes %s where it holds and %s elsewhere; %d condition%s\n",
               story->text, story->set->x, story->set->y, fit->condition_count, fp8r_s((size_t)fit->condition_count));
        if (fit->condition_count == 0)
            printf("           (always %s: no condition gains enough)\n", fit->box_count > 0 ? story->set->x : story->set->y);
        printf("problems:  %zu; %zu left out, where one of the two was not measured\n", story->set->count,
               story->set->left_out);
        printf("regret:    %.2f %% on the worst machine, %s the bound of %g %%; worst problem %.1f %%\n",
               100 * fit->regret.worst, fit->is_within ? "within" : "ABOVE", 100 * story->bound,
               100 * fit->regret.worst_single);
        if (fit->folds > 0)
            printf("held out:  %.2f %%, each family under a rule learned without it (%d fold%s); worst "
                   "problem %.1f %%\n",
                   100 * fit->held_out.worst, fit->folds, fp8r_s((size_t)fit->folds), 100 * fit->held_out.worst_single);
        else
            printf("held out:  nothing, there is a single family\n");
        for (int i = 0; i < story->set->device_count; i++)
            print_machine(story, i);
        printf("\n%s\n%s", c, python);
        if (out_dir) printf("\nwritten to %s\n", out_dir);
    }
    free(c);
    free(python);
    return code;
}

/* ---- For programs ---- */

static void set_regret(struct fp8r_output *output, const char *key, const struct fp8r_fit_regret *regret)
{
    json_t *object = fp8r_output_add_object(output, output->root, key);
    fp8r_output_set(output, object, "worst_machine", json_real(regret->worst));
    fp8r_output_set(output, object, "worst_problem", json_real(regret->worst_single));
}

static void set_machine(struct fp8r_output *output, json_t *object, const struct fp8r_fit_story *story,
                        int device)
{
    struct fp8r_fit_price price = fp8r_fit_set_price(story->set, story->fit, device);
    char identity[FP8R_IDENTITY_BYTES];
    fp8r_identity_format(&story->samples->machines[story->set->machines[device]].identity, identity);
    fp8r_output_set_text(output, object, "machine", identity);
    fp8r_output_set(output, object, "regret", json_real(story->fit->regret.device[device]));
    fp8r_output_set(output, object, "held_out", json_real(story->fit->held_out.device[device]));
    fp8r_output_set(output, object, "always", json_real(story->fit->always.device[device]));
    fp8r_output_set(output, object, "never", json_real(story->fit->never.device[device]));
    fp8r_output_set(output, object, "price", json_real(price.mean));
    fp8r_output_set(output, object, "price_worst", json_real(price.worst));
}

static void set_problem(struct fp8r_output *output, json_t *object, const struct fp8r_fit_story *story,
                        size_t i)
{
    const struct fp8r_fit_case *one = &story->set->cases[i];
    const struct fp8r_fit_origin *origin = &story->set->origins[i];
    bool holds = fp8r_fit_holds(story->fit, one->m, one->n, one->k);
    fp8r_output_set_text(output, object, "problem", origin->it->problem);
    fp8r_output_set(output, object, "machine", json_integer(one->device));
    fp8r_output_set(output, object, "holds", json_boolean(holds));
    fp8r_output_set_text(output, object, "takes", origin->it->candidates[holds ? origin->x : origin->y].name);
    fp8r_output_set_text(output, object, "table", origin->it->candidates[origin->table].name);
    fp8r_output_set(output, object, "then_us", json_real(one->then_us));
    fp8r_output_set(output, object, "else_us", json_real(one->else_us));
    fp8r_output_set(output, object, "else_over_then", json_real(origin->ratio));
    fp8r_output_set(output, object, "else_over_then_low", origin->low > 0 ? json_real(origin->low) : json_null());
    fp8r_output_set(output, object, "else_over_then_high", isfinite(origin->high) ? json_real(origin->high) : json_null());
}

static int print_json(const struct fp8r_fit_story *story, const char *out_dir, struct fp8r_tool_error *error)
{
    struct fp8r_output output;
    const struct fp8r_fit *fit = story->fit;
    char *c = fp8r_fit_function(story, FP8R_RULE_C), *python = fp8r_fit_function(story, FP8R_RULE_PYTHON);
    fp8r_output_init(&output, "fit");
    output.is_short |= !c || !python;
    fp8r_output_set_text(&output, output.root, "rule", story->text);
    fp8r_output_set_text(&output, output.root, "then", story->set->x);
    fp8r_output_set_text(&output, output.root, "else", story->set->y);
    fp8r_output_set(&output, output.root, "bound", json_real(story->bound));
    fp8r_output_set(&output, output.root, "within_bound", json_boolean(fit->is_within));
    fp8r_output_set(&output, output.root, "conditions", json_integer(fit->condition_count));
    fp8r_output_set(&output, output.root, "folds", json_integer(fit->folds));
    set_regret(&output, "regret", &fit->regret);
    set_regret(&output, "held_out", &fit->held_out);
    fp8r_output_set_text(&output, output.root, "c", c);
    fp8r_output_set_text(&output, output.root, "python", python);
    fp8r_output_set_text(&output, output.root, "out_dir", out_dir);
    fp8r_output_set(&output, output.root, "left_out", json_integer((json_int_t)story->set->left_out));
    json_t *machines = fp8r_output_add_array(&output, output.root, "machines");
    for (int i = 0; i < story->set->device_count; i++)
        set_machine(&output, fp8r_output_append_object(&output, machines), story, i);
    json_t *problems = fp8r_output_add_array(&output, output.root, "problems");
    for (size_t i = 0; i < story->set->count; i++)
        set_problem(&output, fp8r_output_append_object(&output, problems), story, i);
    free(c);
    free(python);
    return fp8r_output_print(&output, error);
}

/* ---- All of it ---- */

static int tell(const struct fit_arguments *arguments, struct fp8r_fit_story *story,
                const struct fp8r_fit *fit, struct fp8r_tool_error *error)
{
    struct fp8r_rule *rule = NULL;
    char text[FP8R_FIT_TEXT_MAX];
    int code = fp8r_fit_rule(fit, &rule, error);
    if (code != FP8R_EXIT_GOOD) return code;
    (void)fp8r_fit_text(fit, text);
    story->fit = fit;
    story->rule = rule;
    story->text = text;
    if (arguments->out_dir) code = fp8r_fit_write(story, arguments->out_dir, error);
    if (code == FP8R_EXIT_GOOD)
        code = arguments->common.json ? print_json(story, arguments->out_dir, error)
                                      : print_text(story, arguments->out_dir, error);
    fp8r_rule_destroy(rule);
    return code == FP8R_EXIT_GOOD && !fit->is_within ? FP8R_EXIT_FAILED : code;
}

static int fit_samples(const struct fit_arguments *arguments, const struct samples *samples,
                       struct fp8r_tool_error *error)
{
    struct fp8r_fit_set set;
    struct fp8r_fit fit;
    struct fp8r_fit_options options = {.regret_max = bound_unless_given,
                                       .boxes_max =
                                           arguments->boxes > 0 ? (int)arguments->boxes : BOXES_UNLESS_GIVEN};
    int code = fp8r_share_parse("bound", arguments->bound, 0, &options.regret_max, error);
    if (code == FP8R_EXIT_GOOD) code = fp8r_fit_set_init(&set, samples, arguments->x, arguments->y, error);
    if (code != FP8R_EXIT_GOOD) return code;
    struct fp8r_fit_story story = {.set = &set, .samples = samples, .bound = options.regret_max};
    code = fp8r_fit_find(set.cases, set.count, &options, &fit, error);
    if (code == FP8R_EXIT_GOOD) code = tell(arguments, &story, &fit, error);
    fp8r_fit_set_fini(&set);
    return code;
}

static int run(const void *words, struct fp8r_tool_error *error)
{
    const struct fit_arguments *arguments = words;
    struct samples samples = {0};
    int code = FP8R_EXIT_GOOD;
    if (arguments->samples.count == 0)
        code = fp8r_tool_error_set(error, FP8R_EXIT_USAGE,
                                   "--samples PATH... is missing: what the rule is fitted to");
    else if (!arguments->x != !arguments->y)
        code = fp8r_tool_error_set(error, FP8R_EXIT_USAGE,
                                   "--x and --y go together: what the rule chooses between");
    else if (arguments->x && strcmp(arguments->x, arguments->y) == 0)
        code = fp8r_tool_error_set(error, FP8R_EXIT_USAGE,
                                   "--x and --y are both \"%.60s\": a rule chooses between two different ones",
                                   arguments->x);
    else if (arguments->boxes > FP8R_FIT_BOXES_MAX)
        code = fp8r_tool_error_set(error, FP8R_EXIT_USAGE, "--boxes is %lld: it must be 1 to %d",
                                   (long long)arguments->boxes, FP8R_FIT_BOXES_MAX);
    for (size_t i = 0; i < arguments->samples.count && code == FP8R_EXIT_GOOD; i++)
        code = samples_read_path(&samples, arguments->samples.items[i], error);
    if (code == FP8R_EXIT_GOOD) code = fit_samples(arguments, &samples, error);
    samples_fini(&samples);
    return code;
}

#define FIELD(name) offsetof(struct fit_arguments, name)

static const struct fp8r_option options[] = {
    {"samples", "PATH",
     "sample files, or folders of them; of several machines, the worst one's regret is minimised",
     FP8R_OPTION_LIST, FIELD(samples), 0},
    {"x", "BACKEND[:CONFIG]",
     "what the rule takes where it holds; the two backends that leave least to gain unless given",
     FP8R_OPTION_TEXT, FIELD(x), 0},
    {"y", "BACKEND[:CONFIG]", "what it takes elsewhere", FP8R_OPTION_TEXT, FIELD(y), 0},
    {"bound", "SHARE", "so much may be lost against the better of the two, on average; 1% unless given",
     FP8R_OPTION_TEXT, FIELD(bound), 0},
    {"boxes", "N", "at most so many boxes joined by or; 4 unless given", FP8R_OPTION_COUNT, FIELD(boxes), 1},
    {"out-dir", "DIR",
     "write the rule as C and Python, a test in each, the table of shapes and route files into DIR",
     FP8R_OPTION_TEXT, FIELD(out_dir), 0}};

const struct fp8r_verb fp8r_verb_fit = {
    .name = "fit",
    .summary = "find the shortest rule that measurements allow",
    .words = "",
    .description =
        "Reads samples of a tune or an audit and finds the shortest rule between two backends (boxes over m, "
        "n and k, "
        "joined by and/or) that loses no more than the bound against the better of the two on every machine; "
        "of equally "
        "short ones, the one whose worst machine loses least. Says what it loses on families that it was not "
        "learned "
        "from, and its price beside the full table. A backend's name stands for the default where that is "
        "its own, and "
        "otherwise for its fastest configuration.\n\n"
        "Exit code 1 where no rule of so many boxes keeps to the bound; the best is printed all the same.",
    .examples = "fp8route fit --samples samples --x blas --y cpu --bound 2%\n"
                "fp8route fit --samples one two --out-dir rule",
    .options = options,
    .option_count = sizeof options / sizeof *options,
    .arguments_bytes = sizeof(struct fit_arguments),
    .run = run,
};
