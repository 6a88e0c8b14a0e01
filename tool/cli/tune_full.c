/* Running the full protocol from the command line.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/tune_full.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/progress.h"
#include "cli/segment_row.h"
#include "cli/session.h"
#include "cli/time_limit.h"
#include "plural.h"
#include "tool_status.h"
#include "tune/analysis.h"
#include "tune/full.h"
#include "tune/machine.h"
#include "tune/route_update.h"
#include "tune/shard.h"

static const double margin = 0.02;

/* A tune under way. */
struct session {
    const struct tune_arguments *arguments;
    fp8r_context *context;
    const struct fp8r_tune_families *families;
    struct full full;
    struct record record;
    struct fp8r_route_update update; /* the route file */
    struct fp8r_progress_line line;
    char folder[FP8R_MACHINE_PATH_BYTES], out[FP8R_MACHINE_PATH_BYTES];
    size_t noisy; /* problems of these families, whoever measured them */
};

static void show_progress(void *user, const struct fp8r_progress *progress)
{
    struct session *session = user;
    char what[FP8R_TEXT_BYTES + 32];
    snprintf(what, sizeof what, "%s M=%lld", progress->family, (long long)progress->m);
    fp8r_progress_show(&session->line, what, progress->share, progress->left_seconds);
}

static int parse_shard(const char *text, int *index, int *count, struct fp8r_tool_error *error)
{
    struct fp8r_shard shard = {.index = 1, .count = 1};
    int code = text ? fp8r_shard_here(text, &shard, error) : FP8R_EXIT_GOOD;
    *index = shard.index;
    *count = shard.count;
    return code;
}

/* Beside the user's route file: routes FILE, samples in FILE without its ending. */
static int set_paths(struct session *session, struct fp8r_tool_error *error)
{
    const struct tune_arguments *arguments = session->arguments;
    char user[FP8R_MACHINE_PATH_BYTES] = "";
    fp8r_machine_user_path(session->context, user);
    if (!*user && (!arguments->out || !arguments->samples))
        return fp8r_tool_error_set(error, FP8R_EXIT_USAGE, "%s: --out FILE and --samples DIR say what goes where",
                                   fp8r_machine_why_no_path());
    const char *dot = strrchr(user, '.');
    int out = snprintf(session->out, sizeof session->out, "%s", arguments->out ? arguments->out : user);
    int folder = arguments->samples
                     ? snprintf(session->folder, sizeof session->folder, "%s", arguments->samples)
                     : snprintf(session->folder, sizeof session->folder, "%.*s.samples", (int)(dot ? dot - user : 0), user);
    return out < (int)sizeof session->out && folder < (int)sizeof session->folder
               ? FP8R_EXIT_GOOD
               : fp8r_tool_error_set(error, FP8R_EXIT_USAGE, "--out or --samples: the path is too long");
}

/* The route file before the samples: where it cannot be added to, none are begun. */
static int open_files(struct session *session, struct fp8r_tool_error *error)
{
    struct fp8r_route_file header;
    char name[48] = "all";
    int code = fp8r_machine_header(session->context, fp8r_common_mode(&session->arguments->common),
                                   !session->arguments->warm, &header, error);
    if (session->full.shards > 1)
        snprintf(name, sizeof name, "shard-%d-of-%d", session->full.shard, session->full.shards);
    if (code == FP8R_EXIT_GOOD)
        code = fp8r_route_update_open(&session->update, session->out, &header, error);
    return code == FP8R_EXIT_GOOD ? record_open(&session->record, session->folder, name, &header,
                                                (uint64_t)session->arguments->seed, margin, error)
                                  : code;
}

static int print_routes(const struct session *session, const struct fp8r_route_file *file, struct fp8r_tool_error *error)
{
    struct fp8r_text_table table;
    struct fp8r_output output;
    char family[FP8R_TEXT_BYTES];
    bool json = session->arguments->common.json;
    fp8r_segment_table_init(&table);
    fp8r_output_init(&output, "tune");
    fp8r_output_set_text(&output, output.root, "protocol", "full");
    fp8r_output_set_text(&output, output.root, "out", session->out);
    fp8r_output_set_text(&output, output.root, "samples", session->folder);
    fp8r_output_set(&output, output.root, "measured", json_integer((json_int_t)session->full.measured));
    fp8r_output_set(&output, output.root, "noisy", json_integer((json_int_t)session->noisy));
    fp8r_output_set(&output, output.root, "seconds", json_real(session->full.seconds));
    fp8r_output_set(&output, output.root, "timed_seconds", json_real((double)session->full.timed_ns / 1e9));
    fp8r_output_set(&output, output.root, "left", json_integer((json_int_t)session->full.left));
    json_t *families = fp8r_output_add_array(&output, output.root, "families");
    for (size_t i = 0; i < file->table.count; i++) {
        const struct fp8r_entry *entry = &file->table.entries[i];
        if (fp8r_families_find(session->families, &entry->key) < 0 || fp8r_family_format(&entry->key, family, sizeof family) != FP8R_OK)
            continue;
        json_t *object = fp8r_output_append_object(&output, families);
        fp8r_output_set_text(&output, object, "family", family);
        json_t *list = fp8r_output_add_array(&output, object, "segments");
        for (int j = 0; j < entry->segment_count; j++) {
            fp8r_segment_row(&table, family, &entry->segments[j]);
            fp8r_segment_object(&output, fp8r_output_append_object(&output, list), &entry->segments[j]);
        }
    }
    if (json)
        return fp8r_output_print(&output, error);
    json_decref(output.root);
    return fp8r_segment_table_print(&table, margin, error);
}

/* What is left to say behind the table. */
static void print_rest(const struct session *session)
{
    const struct full *full = &session->full;
    printf("\n%zu problem%s measured now in %.1f s, %.1f s of them timed work; of these families' problems %zu too noisy, kept at "
           "the default\n", full->measured,
           fp8r_s(full->measured), full->seconds, (double)full->timed_ns / 1e9, session->noisy);
    printf("routes: %s\nsamples: %s\n", session->out, session->folder);
    if (full->left > 0)
        printf("the budget is used up with %zu problem%s to go: the same command continues\n", full->left, fp8r_s(full->left));
    if (full->waiting > 0)
        printf("borders of %zu famil%s wait for other shards: the same command places them once those are done\n",
               full->waiting, fp8r_plural(full->waiting, "y", "ies"));
}

/* Do the samples of this entry take the place of what the file has? What nothing was measured of now may be newer in the file,
 * and of other candidates; shards write what all of them measured. */
static bool is_to_replace(const struct session *session, const struct fp8r_entry *entry)
{
    int family = fp8r_families_find(session->families, &entry->key);
    return family >= 0 && (session->full.is_measured[family] || session->full.shards > 1);
}

/* What is not to replace the file's entries goes to `rest`: it is added where the file has none. */
static bool split(const struct session *session, struct fp8r_table *table, struct fp8r_table *rest)
{
    size_t kept = 0;
    *rest = (struct fp8r_table){.entries = calloc(table->count + 1, sizeof *rest->entries)};
    for (size_t i = 0; rest->entries && i < table->count; i++)
        *(is_to_replace(session, &table->entries[i]) ? &table->entries[kept++] : &rest->entries[rest->count++]) =
            table->entries[i];
    table->count = rest->entries ? kept : table->count;
    return rest->entries != NULL;
}

static bool is_same_choice(const struct fp8r_entry *a, const struct fp8r_entry *b)
{
    bool same = a->segment_count == b->segment_count;
    for (int i = 0; same && i < a->segment_count; i++)
        same = a->segments[i].m_first == b->segments[i].m_first && a->segments[i].m_last == b->segments[i].m_last &&
               strcmp(a->segments[i].backend, b->segments[i].backend) == 0 &&
               strcmp(a->segments[i].config, b->segments[i].config) == 0;
    return same;
}

/* The first backend among an entry's choices that was not here to race: a callable, or a plug-in; "" where all were. */
static const char *absent_backend(const struct session *session, const struct fp8r_entry *entry)
{
    for (int i = 0; i < entry->segment_count; i++) {
        bool is_here = false;
        for (size_t j = 0; j < fp8r_context_backend_count(session->context) && !is_here; j++) {
            fp8r_backend_info info = {.struct_size = sizeof info};
            is_here = fp8r_context_backend(session->context, j, &info) == FP8R_OK &&
                      strcmp(info.name, entry->segments[i].backend) == 0;
        }
        if (!is_here)
            return entry->segments[i].backend;
    }
    return "";
}

enum { REPLACED_BYTES = 4 * FP8R_MACHINE_PATH_BYTES };

/* Of a family whose entry in the file is not what these samples say, or names a backend that did not race; "" of others. */
static void say_replaced(const struct session *session, const struct fp8r_entry *made, char line[REPLACED_BYTES])
{
    int family = fp8r_families_find(session->families, &made->key);
    const struct fp8r_entry *found = fp8r_table_find(&session->update.found.table, &made->key);
    *line = '\0';
    if (family < 0 || !found || found->is_quick || is_same_choice(found, made))
        return;
    const char *text = session->families->items[family].text, *absent = absent_backend(session, found);
    if (!is_to_replace(session, made))
        snprintf(line, REPLACED_BYTES, "%s: nothing was measured now, and the routes that the file holds stay; those of the "
                                       "samples: fp8route table build %s --into %s", text, session->folder, session->out);
    else if (*absent)
        snprintf(line, REPLACED_BYTES, "%s: its routes went to %s, which did not race here, and are replaced; to have them back: "
                                       "fp8route table build SAMPLES --into %s, with the samples of their tune (a Python tune "
                                       "keeps them in %s/callables)", text, absent, session->out, session->folder);
}

/* What is said of it is found before the tables are merged, and said when the file is written. */
static int update_routes(struct session *session, struct fp8r_route_file *file, struct fp8r_tool_error *error)
{
    struct fp8r_table rest = {0};
    const size_t count = file->table.count;
    char (*lines)[REPLACED_BYTES] = calloc(count + 1, sizeof *lines);
    for (size_t i = 0; lines && i < count; i++)
        say_replaced(session, &file->table.entries[i], lines[i]);
    int code = lines && split(session, &file->table, &rest) ? FP8R_EXIT_GOOD : fp8r_tool_error_memory(error, "the routes");
    if (code == FP8R_EXIT_GOOD)
        code = fp8r_route_update_write(&session->update, file, &rest, fp8r_progress_take_note, NULL, error);
    for (size_t i = 0; code == FP8R_EXIT_GOOD && i < count; i++)
        if (*lines[i]) fp8r_progress_note(lines[i]);
    free(lines);
    fp8r_table_fini(&rest);
    return code;
}

static int write_routes(struct session *session, struct fp8r_tool_error *error)
{
    struct analysis analysis;
    struct fp8r_route_file file;
    int code = analysis_init(&session->record.samples, session->record.machine, &analysis, error);
    if (code != FP8R_EXIT_GOOD)
        return code;
    for (size_t i = 0; i < analysis.count; i++)
        if (fp8r_families_find(session->families, &analysis.families[i].key) >= 0)
            session->noisy += analysis_noisy(&analysis.families[i]);
    code = analysis.count > 0
               ? analysis_routes(&session->record.samples, session->record.machine, &analysis, &file, error)
               : fp8r_tool_error_set(error, FP8R_EXIT_UNMEASURED, "nothing was measured yet: no routes are written");
    analysis_fini(&analysis);
    if (code != FP8R_EXIT_GOOD)
        return code;
    code = update_routes(session, &file, error);
    if (code == FP8R_EXIT_GOOD)
        code = print_routes(session, &file, error);
    if (code == FP8R_EXIT_GOOD && !session->arguments->common.json)
        print_rest(session);
    fp8r_route_file_fini(&file);
    return code;
}

static int tune(struct session *session, struct fp8r_tool_error *error)
{
    int code = full_tune(&session->full, session->families, error);
    fp8r_progress_end();
    if (code == FP8R_EXIT_INTERRUPTED)
        return fp8r_tool_error_set(error, code, "interrupted: every sample is in %s, and the same command continues",
                                   session->folder);
    if (code == FP8R_EXIT_GOOD)
        code = write_routes(session, error);
    return session->full.is_wrong ? fp8r_exit_worse(code, FP8R_EXIT_FAILED) : code;
}

/* With the files open. */
static int measure(struct session *session, struct fp8r_tool_error *error)
{
    struct fp8r_tool_error closing = {0};
    session->full.record = &session->record;
    session->full.user = session;
    int code = tune(session, error);
    return fp8r_tool_error_join(error, code, &closing, record_close(&session->record, &closing));
}

int fp8r_tune_full(const struct tune_arguments *arguments, fp8r_context *context,
                   const struct fp8r_measure_device *device, const struct fp8r_tune_families *families,
                   struct fp8r_tool_error *error)
{
    struct session session = {.arguments = arguments,
                              .context = context,
                              .families = families,
                              .full = {.context = context,
                                       .device = device,
                                       .seed = (uint64_t)arguments->seed,
                                       .margin = margin,
                                       .is_warm = arguments->warm,
                                       .progress = show_progress,
                                       .note = fp8r_progress_take_note}};
    int code = fp8r_time_limit_parse("budget", arguments->budget, &session.full.budget_seconds, error);
    session.full.is_measured = calloc(families->count + 1, sizeof *session.full.is_measured);
    if (code == FP8R_EXIT_GOOD && !session.full.is_measured)
        code = fp8r_tool_error_memory(error, "the families");
    if (code == FP8R_EXIT_GOOD)
        code = parse_shard(arguments->shard, &session.full.shard, &session.full.shards, error);
    if (code == FP8R_EXIT_GOOD)
        code = set_paths(&session, error);
    if (code == FP8R_EXIT_GOOD)
        code = open_files(&session, error);
    if (code == FP8R_EXIT_GOOD)
        code = measure(&session, error);
    fp8r_route_update_close(&session.update);
    free(session.full.is_measured);
    return code;
}
