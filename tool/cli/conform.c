/* fp8route conform: does every backend keep the contract?
 * SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/output.h"
#include "cli/session.h"
#include "cli/text_table.h"
#include "conform/conform.h"
#include "tune/interrupt.h"

struct conform_arguments {
    struct fp8r_common common;
    const char *backend;
    int64_t seed;
};

enum { RESULTS_MAX = 64 };

struct results {
    struct fp8r_conform_result items[RESULTS_MAX];
    int count;
};

static const char *const outcome_names[] = {"passed", "failed", "skipped", "unfit"};

/* Called in the examining process, which ends without closing anything. */
static int open_context(void *user, fp8r_context **context, const fp8r_backend *const **outside,
                        size_t *outside_count, struct fp8r_tool_error *error)
{
    static struct fp8r_session session;
    int code = fp8r_session_open(user, FP8R_NO_ROUTE_FILES, &session, error);
    *context = session.context;
    *outside = session.plugins.backends;
    *outside_count = session.plugins.count;
    return code;
}

static int examine_all(const struct conform_arguments *arguments, struct results *results,
                       struct fp8r_tool_error *error)
{
    struct fp8r_common common = arguments->common;
    common.routes = NULL;
    struct fp8r_conform_host host = {.open = open_context,
                                     .user = &common,
                                     .only = arguments->backend,
                                     .outside_only = common.plugins.count > 0,
                                     .seed = (uint64_t)arguments->seed};
    struct fp8r_conform_result result;
    int count = 1, code = FP8R_EXIT_GOOD;
    for (int i = 0; i < count && code == FP8R_EXIT_GOOD; i++) {
        code = fp8r_conform_examine(&host, (size_t)i, &result, error);
        if (fp8r_interrupted())
            code = fp8r_tool_error_set(error, FP8R_EXIT_INTERRUPTED, "interrupted: the same command starts again");
        if (code != FP8R_EXIT_GOOD) break;
        count = i == 0 && result.backend_count > 1 ? result.backend_count : count;
        if (result.outcome != FP8R_CONFORM_SKIPPED && results->count < RESULTS_MAX)
            results->items[results->count++] = result;
    }
    if (code == FP8R_EXIT_GOOD && results->count == 0)
        code = fp8r_tool_error_set(error, FP8R_EXIT_USAGE, "no backend is named \"%.63s\": %s",
                                   arguments->backend ? arguments->backend : "",
                                   arguments->backend && strchr(arguments->backend, ':')
                                       ? "it is examined with all its configurations, by its name alone"
                                       : "fp8route info lists them");
    return code;
}

static int print_json(const struct results *results, struct fp8r_tool_error *error)
{
    struct fp8r_output output;
    fp8r_output_init(&output, "conform");
    json_t *list = fp8r_output_add_array(&output, output.root, "backends");
    for (int i = 0; i < results->count; i++) {
        const struct fp8r_conform_result *result = &results->items[i];
        bool failed = result->outcome == FP8R_CONFORM_FAILED;
        json_t *object = fp8r_output_append_object(&output, list);
        fp8r_output_set_text(&output, object, "backend", result->backend);
        fp8r_output_set_text(&output, object, "outcome", outcome_names[result->outcome]);
        fp8r_output_set(&output, object, "problems", json_integer(result->problems));
        fp8r_output_set(&output, object, "runs", json_integer(result->runs));
        fp8r_output_set(&output, object, "refusals", json_integer(result->refusals));
        fp8r_output_set(&output, object, "checks", json_integer(result->checks));
        fp8r_output_set_text(&output, object, "failed_check", failed ? result->check : NULL);
        fp8r_output_set_text(&output, object, "problem", failed ? result->problem : NULL);
        fp8r_output_set_text(&output, object, "config", failed ? result->config : NULL);
        fp8r_output_set_text(&output, object, "text", result->text);
    }
    return fp8r_output_print(&output, error);
}

static void add_row(struct fp8r_text_table *table, const struct fp8r_conform_result *result)
{
    static const enum fp8r_style styles[] = {FP8R_STYLE_GOOD, FP8R_STYLE_BAD, FP8R_STYLE_DIM, FP8R_STYLE_DIM};
    enum fp8r_style style = styles[result->outcome];
    fp8r_text_table_add(table, style, "%s", result->backend);
    fp8r_text_table_add(table, style, "%s", outcome_names[result->outcome]);
    fp8r_text_table_add(table, style, "%" PRId64, result->problems);
    fp8r_text_table_add(table, style, "%" PRId64, result->runs);
    fp8r_text_table_add(table, style, "%" PRId64, result->refusals);
    fp8r_text_table_add(table, style, "%" PRId64, result->checks);
    if (result->outcome == FP8R_CONFORM_FAILED)
        fp8r_text_table_add(table, style, "%s%s%s%s%s: %s", result->check, *result->problem ? ", " : "",
                            result->problem, *result->config ? ", " : "", result->config, result->text);
    else
        fp8r_text_table_add(table, style, "%s", result->text);
}

static int print_text(const struct results *results, struct fp8r_tool_error *error)
{
    static const char *const headings[] = {"backend",   "outcome", ">problems", ">runs",
                                           ">refusals", ">checks", ""};
    struct fp8r_text_table table;
    fp8r_text_table_init(&table, headings, sizeof headings / sizeof *headings);
    for (int i = 0; i < results->count; i++)
        add_row(&table, &results->items[i]);
    return fp8r_text_table_print(&table, stdout, error);
}

/* A backend that was asked for by name and cannot run here leaves the question open. */
static int judge(const struct conform_arguments *arguments, const struct results *results,
                 struct fp8r_tool_error *error)
{
    int passed = 0;
    for (int i = 0; i < results->count; i++) {
        if (results->items[i].outcome == FP8R_CONFORM_FAILED) return FP8R_EXIT_FAILED;
        passed += results->items[i].outcome == FP8R_CONFORM_PASSED;
    }
    if (passed > 0) return FP8R_EXIT_GOOD;
    return fp8r_tool_error_set(error, FP8R_EXIT_UNMEASURED, "%s cannot run on this device: %s",
                               arguments->backend ? arguments->backend : results->items[0].backend,
                               results->items[0].text);
}

static int run(const void *words, struct fp8r_tool_error *error)
{
    const struct conform_arguments *arguments = words;
    static struct results results; /* large, and there is one run a process */
    fp8r_interrupt_watch();
    int code = examine_all(arguments, &results, error);
    if (code != FP8R_EXIT_GOOD) return code;
    code = arguments->common.json ? print_json(&results, error) : print_text(&results, error);
    return fp8r_exit_worse(code, judge(arguments, &results, error));
}

static const struct fp8r_option options[] = {
    {"backend", "NAME", "examine this backend and no other", FP8R_OPTION_TEXT,
     offsetof(struct conform_arguments, backend), 0},
    {"seed", "N", "of the random operands; 0 unless given", FP8R_OPTION_COUNT,
     offsetof(struct conform_arguments, seed), 0}};

const struct fp8r_verb fp8r_verb_conform = {
    .name = "conform",
    .summary = "check that backends keep the contract, anyone's",
    .words = "",
    .description = "Examines every backend, or with --plugin those of the shared object, on a list of small "
                   "and odd problems: the "
                   "answers of supports, pick, horizon and workspace agree with each other; a refusal has a "
                   "reason of the catalogue; "
                   "a yes means that it runs and every element is right; nothing but out's elements and the "
                   "workspace is written, and "
                   "nothing beyond operands and workspace is read (pages behind them end the process); two "
                   "threads may run one plan; "
                   "fewer rows through one plan are right; and configurations of one numerics class give "
                   "equal bits, at every M.\n\n"
                   "Each backend is examined in a process of its own: one that crashes or hangs has failed. "
                   "A failure names the "
                   "check, the problem, the configuration and the first wrong element.",
    .examples =
        "fp8route conform\nfp8route conform --plugin ./libmine.so\nfp8route conform --backend cpu --json",
    .has_context = true,
    .options = options,
    .option_count = sizeof options / sizeof *options,
    .arguments_bytes = sizeof(struct conform_arguments),
    .run = run,
};
