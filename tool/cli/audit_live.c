/* Running an audit's measurements. SPDX-License-Identifier: Apache-2.0 */
#include "cli/audit_live.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/progress.h"
#include "cli/time_limit.h"
#include "tool_status.h"
#include "tune/audit_measure.h"
#include "tune/entrants.h"
#include "tune/interrupt.h"
#include "tune/pair_set.h"

static void show_progress(void *user, const struct fp8r_progress *progress)
{
    char what[FP8R_TEXT_BYTES + 32];
    snprintf(what, sizeof what, "%s M=%" PRId64, progress->family, progress->m);
    fp8r_progress_show(user, what, progress->share, progress->left_seconds);
}

/* ---- Problems ---- */

static int interrupted_early(struct fp8r_tool_error *error)
{
    return fp8r_tool_error_set(error, FP8R_EXIT_INTERRUPTED,
                               "interrupted: nothing was measured, and the same command starts again");
}

/* Random problems on their way into the questions. */
struct drawing {
    struct audit_live_session *session;
    struct fp8r_random_problems problems;
    struct fp8r_pair_set taken; /* N and K of the questions so far */
    int64_t left, tries;
};

static int ask_drawn(struct drawing *drawing, const struct audit_arguments *arguments,
                     const struct fp8r_picker *picker, struct fp8r_random_problem *drawn,
                     struct fp8r_audit_questions *questions, struct fp8r_tool_error *error)
{
    struct fp8r_tune_family family = {.ms = &drawn->m, .m_count = 1};
    snprintf(family.text, sizeof family.text, "Mx%" PRId64 "x%" PRId64, drawn->n, drawn->k);
    int code = fp8r_tool_status(error, fp8r_family_parse(family.text, drawing->session->session.mode, &family.key));
    if (code == FP8R_EXIT_GOOD && !fp8r_pair_set_add(&drawing->taken, drawn->n, drawn->k))
        code = fp8r_tool_error_memory(error, "the problems of the audit");
    if (code == FP8R_EXIT_GOOD)
        code = fp8r_audit_ask_family(questions, picker, arguments->is_only, &family, true, error);
    drawing->left--;
    return code;
}

/* Where few sizes are left outside the grid, what is in it is taken in the end. */
static int draw_all(struct drawing *drawing, const struct audit_arguments *arguments,
                    const struct fp8r_picker *picker, struct fp8r_audit_questions *questions,
                    struct fp8r_tool_error *error)
{
    int code = FP8R_EXIT_GOOD;
    for (size_t i = 0; i < questions->count; i++)
        if (!fp8r_pair_set_add(&drawing->taken, questions->items[i].key.n, questions->items[i].key.k))
            return fp8r_tool_error_memory(error, "the problems of the audit");
    while (drawing->left > 0 && code == FP8R_EXIT_GOOD) {
        struct fp8r_random_problem drawn = fp8r_random_problems_next(&drawing->problems);
        if (fp8r_interrupted()) return interrupted_early(error);
        if (drawing->tries-- > 0 && fp8r_pair_set_has(&drawing->taken, drawn.n, drawn.k)) continue;
        code = ask_drawn(drawing, arguments, picker, &drawn, questions, error);
    }
    return code;
}

static int ask_random(struct audit_live_session *session, const struct audit_arguments *arguments,
                      const struct fp8r_picker *picker, struct fp8r_audit_questions *questions,
                      struct fp8r_tool_error *error)
{
    struct drawing drawing = {.session = session, .left = arguments->random, .tries = 100 * arguments->random};
    const fp8r_device_facts *facts = fp8r_context_device(session->session.context);
    fp8r_random_problems_init(&drawing.problems, facts->kind, fp8r_host_available_bytes(),
                              (uint64_t)arguments->seed);
    if (arguments->size_max > 0) drawing.problems.size_high = arguments->size_max;
    if (arguments->m_max > 0) drawing.problems.m_high = arguments->m_max;
    fp8r_random_problems_describe(&drawing.problems, session->distribution);
    int code = draw_all(&drawing, arguments, picker, questions, error);
    fp8r_pair_set_fini(&drawing.taken);
    return code;
}

static int ask_grid(const struct audit_arguments *arguments, const struct fp8r_picker *picker,
                    struct fp8r_audit_questions *questions, struct fp8r_tool_error *error)
{
    struct fp8r_tune_families families = {.mode = fp8r_common_mode(&arguments->common)};
    int code = fp8r_wanted_families_collect(&arguments->wanted, "audit", &families, error);
    for (size_t i = 0; i < families.count && code == FP8R_EXIT_GOOD; i++)
        code = fp8r_audit_ask_family(questions, picker, arguments->is_only, &families.items[i], false, error);
    fp8r_families_fini(&families);
    return code;
}

static int ask_all(struct audit_live_session *session, const struct audit_arguments *arguments,
                   const struct fp8r_picker *picker, struct fp8r_audit_questions *questions,
                   struct fp8r_tool_error *error)
{
    int code = FP8R_EXIT_GOOD;
    if (!picker->rule) code = fp8r_audit_ask_list(questions, picker, error);
    if (code == FP8R_EXIT_GOOD && fp8r_wanted_families_any(&arguments->wanted))
        code = ask_grid(arguments, picker, questions, error);
    if (code == FP8R_EXIT_GOOD && arguments->random > 0)
        code = ask_random(session, arguments, picker, questions, error);
    for (size_t i = 0; i < questions->count && code == FP8R_EXIT_GOOD; i++)
        code = fp8r_interrupted() ? interrupted_early(error)
                                  : fp8r_audit_resolve(session->session.context, &questions->items[i], error);
    return code;
}

/* ---- Opening ---- */

static int open_context(struct audit_live_session *session, const struct audit_arguments *arguments,
                        struct fp8r_tool_error *error)
{
    char cleared[64], line[128];
    struct fp8r_common common = arguments->common;
    fp8r_entrants_clear_environment(cleared, sizeof cleared);
    if (*cleared) {
        snprintf(line, sizeof line, "%s: not looked at in an audit, where every backend races", cleared);
        fp8r_progress_note(line);
    }
    common.routes = NULL; /* a route must not decide what a backend's own pick is */
    return fp8r_session_open(&common, FP8R_NO_ROUTE_FILES, &session->session, error);
}

/* Beside the user's route file: FILE.routes, FILE.audit. */
static int set_folder(struct audit_live_session *session, const struct audit_arguments *arguments,
                      struct fp8r_tool_error *error)
{
    char user[FP8R_MACHINE_PATH_BYTES] = "";
    int length;
    if (arguments->samples.count == 0) fp8r_machine_user_path(session->session.context, user);
    if (arguments->samples.count == 0 && !*user)
        return fp8r_tool_error_set(error, FP8R_EXIT_USAGE,
                                   "%s: --samples DIR says where samples go", fp8r_machine_why_no_path());
    const char *dot = strrchr(user, '.');
    if (arguments->samples.count > 0)
        length = snprintf(session->folder, sizeof session->folder, "%s", arguments->samples.items[0]);
    else
        length = snprintf(session->folder, sizeof session->folder, "%.*s.audit", (int)(dot ? dot - user : 0),
                          user);
    return length < (int)sizeof session->folder
               ? FP8R_EXIT_GOOD
               : fp8r_tool_error_set(error, FP8R_EXIT_USAGE, "--samples: the path is too long");
}

static int open_record(struct audit_live_session *session, const struct audit_arguments *arguments,
                       double margin, struct fp8r_tool_error *error)
{
    struct fp8r_route_file header;
    int code = fp8r_machine_header(session->session.context, session->session.mode, !arguments->is_warm, &header, error);
    if (code == FP8R_EXIT_GOOD)
        code = record_open(&session->record, session->folder, "audit", &header, (uint64_t)arguments->seed,
                           margin, error);
    session->is_recording = code == FP8R_EXIT_GOOD;
    return code;
}

/* ---- Measuring and judging ---- */

static int alternatives_of(const fp8r_context *context, bool is_only, struct fp8r_tool_error *error,
                           int *alternatives)
{
    struct fp8r_entrant *entrants = NULL;
    int count = 0, code = fp8r_entrants_list(context, &entrants, &count, error);
    free(entrants);
    *alternatives = is_only || count < 2 ? 1 : count - 1;
    return code;
}

static int measure(struct audit_live_session *session, const struct audit_arguments *arguments,
                   struct audit_findings *findings, struct fp8r_tool_error *error)
{
    struct fp8r_measure_device device;
    struct fp8r_progress_line line = {0};
    struct audit_part *part = &findings->parts[0];
    struct fp8r_audit_live live = {.context = session->session.context,
                                   .device = &device,
                                   .record = &session->record,
                                   .rules = {.margin = findings->margin, .phase = SAMPLE_AUDIT},
                                   .seed = (uint64_t)arguments->seed,
                                   .is_warm = arguments->is_warm,
                                   .progress = show_progress,
                                   .note = fp8r_progress_take_note,
                                   .user = &line};
    int code = alternatives_of(live.context, findings->is_only, error, &live.rules.comparisons);
    if (code == FP8R_EXIT_GOOD)
        code = fp8r_time_limit_parse("budget", arguments->budget, &live.budget_seconds, error);
    if (code != FP8R_EXIT_GOOD) return code;
    live.rules.comparisons *= (int)part->questions.count;
    code = fp8r_session_measure(&session->session, &device, error);
    if (code != FP8R_EXIT_GOOD) return code;
    code = fp8r_audit_measure(&live, &part->questions, error);
    fp8r_progress_end();
    findings->measured = live.measured;
    findings->left = live.left;
    if (code == FP8R_EXIT_INTERRUPTED)
        return fp8r_tool_error_set(error, code,
                                   "interrupted: every sample is in %s, and the same command continues",
                                   session->folder);
    if (code == FP8R_EXIT_GOOD)
        code = fp8r_audit_init(&part->audit, &live.rules, &session->record.samples, session->record.machine,
                               &part->questions, error);
    if (code == FP8R_EXIT_GOOD) findings->exit_code = fp8r_audit_exit(&part->audit, live.left);
    return code;
}

int fp8r_audit_live_run(struct audit_live_session *session, const struct audit_arguments *arguments,
                        struct audit_findings *findings, struct fp8r_tool_error *error)
{
    int code = open_context(session, arguments, error);
    findings->parts = calloc(1, sizeof *findings->parts);
    if (code == FP8R_EXIT_GOOD && !findings->parts) code = fp8r_tool_error_memory(error, "the audit");
    if (code != FP8R_EXIT_GOOD) return code;
    findings->count = 1;
    findings->parts[0].questions.mode = session->session.mode;
    code = ask_all(session, arguments, findings->picker, &findings->parts[0].questions, error);
    if (code == FP8R_EXIT_GOOD) code = set_folder(session, arguments, error);
    if (code == FP8R_EXIT_GOOD) code = open_record(session, arguments, findings->margin, error);
    if (code != FP8R_EXIT_GOOD) return code;
    findings->parts[0].machine = &session->record.samples.machines[session->record.machine];
    findings->folder = session->folder;
    findings->distribution = arguments->random > 0 ? session->distribution : NULL;
    return measure(session, arguments, findings, error);
}

int fp8r_audit_live_close(struct audit_live_session *session, struct fp8r_tool_error *error)
{
    int code = session->is_recording ? record_close(&session->record, error) : FP8R_EXIT_GOOD;
    session->is_recording = false;
    fp8r_session_close(&session->session);
    return code;
}
