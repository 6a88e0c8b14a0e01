/* Reading sample files. Lines of samples are taken apart by hand (there are millions); all others by jansson.
 * SPDX-License-Identifier: Apache-2.0 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "route/route_line.h"
#include "tool_input.h"
#include "tool_json.h"
#include "tune/sample_line.h"
#include "tune/samples.h"
#include "tune/samples_grow.h"

/* One file under way. */
struct reader {
    struct samples *samples;
    const char *path;
    long line;
    int run;                              /* index of the file's present run; -1 before the first */
    size_t *cases;                        /* the run's case numbers -> cases */
    size_t case_count, case_capacity;
    struct fp8r_tool_error *error;
};

static int reject(const struct reader *reader, const char *expected)
{
    return fp8r_tool_error_set(reader->error, FP8R_EXIT_BAD_DATA, "%s, line %ld: expected %s", reader->path,
                               reader->line, expected);
}

static int no_memory(const struct reader *reader)
{
    return fp8r_tool_error_memory(reader->error, "samples");
}

/* What the library says of a part of the line. */
static int pass_on(const struct reader *reader, fp8r_status status)
{
    int code = status == FP8R_ERROR_OUT_OF_MEMORY ? FP8R_EXIT_INTERNAL : FP8R_EXIT_BAD_DATA;
    return fp8r_tool_error_set(reader->error, code, "%s, line %ld: %s", reader->path, reader->line, fp8r_last_error());
}

/* ---- Samples ---- */

/* The case of a number of the present run, and the candidate in it. */
static struct sample_candidate *locate(const struct reader *reader, int64_t number, int64_t candidate,
                                       struct sample_case **it)
{
    if (number < 0 || (size_t)number >= reader->case_count)
        return NULL;
    *it = &reader->samples->cases[reader->cases[number]];
    return candidate >= 0 && candidate < (*it)->count ? &(*it)->candidates[candidate] : NULL;
}

static int add_sample(struct reader *reader, const char *line)
{
    struct sample_parts parts;
    struct sample_case *it;
    if (!sample_line_take(line, &parts))
        return reject(reader, "a sample's fields: case, candidate, phase, round, us (six decimals, 0.001 at least), mhz, "
                              "and of a GPU watts and celsius");
    struct sample_candidate *candidate = locate(reader, parts.number, parts.candidate, &it);
    if (!candidate)
        return reject(reader, "a case and a candidate that an earlier line of this run announced");
    if (!samples_grow(&candidate->samples, candidate->count, &candidate->capacity))
        return no_memory(reader);
    candidate->samples[candidate->count++] = (struct sample){.us = parts.us,
                                                             .run = reader->run,
                                                             .round = (int32_t)parts.round,
                                                             .phase = (int16_t)parts.phase,
                                                             .mhz = (int16_t)parts.mhz,
                                                             .watts = (int16_t)parts.watts,
                                                             .celsius = (int16_t)parts.celsius};
    return FP8R_EXIT_GOOD;
}

/* ---- Runs ---- */

static bool has_libraries_of(const struct fp8r_identity *a, const struct fp8r_identity *b)
{
    int found = 0;
    for (int i = 0; i < b->library_count; i++)
        for (int j = 0; j < a->library_count; j++)
            found += strcmp(a->libraries[j].backend, b->libraries[i].backend) == 0;
    return found == b->library_count;
}

/* Stricter than the fit of a route file: where another library is loaded, other candidates raced. */
static bool is_same_machine(const struct fp8r_route_file *a, const struct fp8r_route_file *b)
{
    char line[256];
    return a->mode == b->mode && a->is_cold == b->is_cold && a->is_quick == b->is_quick &&
           a->is_behind_both == b->is_behind_both &&
           fp8r_identity_fits(&a->identity, &b->identity, line, sizeof line) &&
           fp8r_identity_fits(&b->identity, &a->identity, line, sizeof line) &&
           has_libraries_of(&a->identity, &b->identity) && has_libraries_of(&b->identity, &a->identity);
}

/* Is the run newer than all of that machine so far? */
static bool is_newest(const struct samples *samples, int machine, const char *id)
{
    for (int i = 0; i < samples->run_count; i++)
        if (samples->runs[i].machine == machine && strcmp(samples->runs[i].id, id) >= 0)
            return false;
    return true;
}

static int add_machine(struct reader *reader, const char *text, const char *id, int *machine)
{
    struct samples *samples = reader->samples;
    struct fp8r_route_file file;
    fp8r_status status = fp8r_route_file_parse("machine", text, strlen(text), &file);
    if (status != FP8R_OK)
        return pass_on(reader, status);
    for (*machine = 0; *machine < samples->machine_count; (*machine)++) {
        struct fp8r_route_file *known = &samples->machines[*machine], old = file;
        if (!is_same_machine(known, &file))
            continue;
        if (is_newest(samples, *machine, id)) {
            old = *known;
            *known = file;
        }
        fp8r_route_file_fini(&old);
        return FP8R_EXIT_GOOD;
    }
    void *grown = realloc(samples->machines, (size_t)(samples->machine_count + 1) * sizeof *samples->machines);
    if (!grown) {
        fp8r_route_file_fini(&file);
        return no_memory(reader);
    }
    samples->machines = grown;
    samples->machines[samples->machine_count++] = file;
    return FP8R_EXIT_GOOD;
}

/* The run of that id: one that is there was read before, from this file or a copy. */
static int find_run(struct reader *reader, const struct sample_run *run)
{
    struct samples *samples = reader->samples;
    for (int i = 0; i < samples->run_count; i++) {
        if (strcmp(samples->runs[i].id, run->id) != 0)
            continue;
        if (samples->runs[i].machine != run->machine || samples->runs[i].seed != run->seed)
            return reject(reader, "a run of its own name: another run has this one's, on another machine or of another "
                                  "seed");
        reader->run = i;
        return FP8R_EXIT_GOOD;
    }
    void *grown = realloc(samples->runs, (size_t)(samples->run_count + 1) * sizeof *samples->runs);
    if (!grown)
        return no_memory(reader);
    samples->runs = grown;
    samples->runs[samples->run_count] = *run;
    reader->run = samples->run_count++;
    return FP8R_EXIT_GOOD;
}

static int add_run(struct reader *reader, json_t *object)
{
    const char *id, *schema, *text;
    int64_t seed;
    struct sample_run run = {0};
    if (!fp8r_json_text(object, "schema", &schema) || !fp8r_json_text(object, "run", &id) ||
        !fp8r_json_text(object, "machine", &text) || !fp8r_json_integer(object, "seed", &seed) ||
        !fp8r_json_number(object, "margin", &run.margin))
        return reject(reader, "a run's fields: schema, run, machine, seed, margin");
    if (strcmp(schema, "fp8route.samples/1") != 0)
        return reject(reader, "schema fp8route.samples/1: this file is of another version");
    if (!(run.margin > 0 && run.margin < 1))
        return reject(reader, "a margin above 0 and below 1, like 0.02");
    if (strlen(id) >= sizeof run.id)
        return reject(reader, "a run of at most 39 bytes");
    snprintf(run.id, sizeof run.id, "%s", id);
    run.seed = (uint64_t)seed;
    int code = add_machine(reader, text, id, &run.machine);
    if (code == FP8R_EXIT_GOOD)
        code = find_run(reader, &run);
    reader->case_count = 0;
    return code;
}

/* ---- Cases ---- */

/* Weighted times are added up, which must stay far from what a double holds. */
static const double weight_most = 1e18;

/* BACKEND:CONFIG as a route file holds them: what was read here may be written there. */
static bool is_label(const char *text)
{
    char backend[FP8R_NAME_BYTES], config[FP8R_NAME_BYTES];
    size_t length = strcspn(text, ":");
    if (text[length] != ':' || length >= sizeof backend)
        return false;
    snprintf(backend, sizeof backend, "%.*s", (int)length, text);
    return !fp8r_value_name(backend, backend) && !fp8r_value_name(text + length + 1, config);
}

static bool has_control(const char *text)
{
    for (; *text; text++)
        if ((unsigned char)*text < ' ' || *text == 0x7F)
            return true;
    return false;
}

static int read_candidates(struct reader *reader, json_t *list, struct sample_case *it)
{
    size_t count = json_array_size(list);
    if (count == 0 || count > SAMPLE_CANDIDATES_MAX)
        return reject(reader, "a case's candidates: an array of 1 to 4096");
    it->candidates = calloc(count, sizeof *it->candidates);
    if (!it->candidates)
        return no_memory(reader);
    it->count = (int)count;
    for (size_t i = 0; i < count; i++) {
        const char *name, *rev;
        struct sample_candidate *candidate = &it->candidates[i];
        const json_t *item = json_array_get(list, i);
        if (!fp8r_json_text(item, "name", &name) || !fp8r_json_text(item, "rev", &rev) ||
            strlen(name) >= sizeof candidate->name || strlen(rev) >= sizeof candidate->rev)
            return reject(reader, "a candidate's name and rev");
        if (!is_label(name) || has_control(rev))
            return reject(reader, "a candidate's name BACKEND:CONFIG, each of letters, digits and _.=-, and a rev of "
                                  "printable text");
        snprintf(candidate->name, sizeof candidate->name, "%s", name);
        snprintf(candidate->rev, sizeof candidate->rev, "%s", rev);
    }
    return FP8R_EXIT_GOOD;
}

static int read_case(struct reader *reader, json_t *object, struct sample_case *it)
{
    const char *problem;
    json_t *list = json_object_get(object, "candidates");
    int64_t number, fallback;
    fp8r_matmul matmul;
    struct fp8r_product product;
    if (!fp8r_json_integer(object, "case", &number) || !fp8r_json_text(object, "problem", &problem) ||
        !fp8r_json_number(object, "weight", &it->weight) || !fp8r_json_integer(object, "default", &fallback) || !list)
        return reject(reader, "a case's fields: case, problem, weight, default, candidates");
    if (number != (int64_t)reader->case_count)
        return reject(reader, "the next case number of this run");
    if (!(it->weight > 0 && it->weight <= weight_most) || strlen(problem) >= sizeof it->problem)
        return reject(reader, "a weight above 0 and at most 1e18, and a problem of at most 255 bytes");
    fp8r_status status = fp8r_matmul_parse(problem, &matmul);
    if (status == FP8R_OK)
        status = fp8r_product_init(&matmul, FP8R_DATA_IGNORED, &product);
    if (status != FP8R_OK)
        return pass_on(reader, status);
    if (fp8r_problem_is_empty(&product.problem) || product.problem.k == 0)
        return reject(reader, "a problem with something to multiply: M, N, K and the batch at least 1");
    snprintf(it->problem, sizeof it->problem, "%s", problem);
    it->machine = reader->samples->runs[reader->run].machine;
    fp8r_key_init(&product.problem, reader->samples->machines[it->machine].mode, &it->key);
    it->m = product.problem.m;
    if (json_object_get(object, "default_last") && /* files of before do not say it */
        (!fp8r_json_integer(object, "default_last", &it->default_last) || it->default_last < it->m))
        return reject(reader, "default_last: a whole number, the problem's M or more");
    int code = read_candidates(reader, list, it);
    if (code == FP8R_EXIT_GOOD && (fallback < 0 || fallback >= it->count))
        code = reject(reader, "default: the number of one of the candidates");
    it->fallback = (int)fallback;
    return code;
}

static int add_case(struct reader *reader, json_t *object)
{
    struct samples *samples = reader->samples;
    struct sample_case it = {0};
    int code = read_case(reader, object, &it);
    struct sample_case *known = code == FP8R_EXIT_GOOD ? samples_find(samples, it.machine, it.problem) : NULL;
    if (code == FP8R_EXIT_GOOD && known && !sample_case_same_list(known, &it))
        code = reject(reader, "the same candidates and default as where this problem came before: a backend has changed "
                              "since, start a new file");
    if (code == FP8R_EXIT_GOOD && !samples_grow(&reader->cases, reader->case_count, &reader->case_capacity))
        code = no_memory(reader);
    if (code == FP8R_EXIT_GOOD && !known && !samples_add_case(samples, &it))
        code = no_memory(reader);
    if (code != FP8R_EXIT_GOOD || known)
        free(it.candidates);
    if (code == FP8R_EXIT_GOOD && known)
        sample_case_join(known, &it);
    if (code == FP8R_EXIT_GOOD)
        reader->cases[reader->case_count++] = known ? (size_t)(known - samples->cases) : samples->case_count - 1;
    return code;
}

/* Of what several runs say of one thing the newest holds, in whatever order they are read. */
static bool is_older(const struct reader *reader, int said_by)
{
    return strcmp(reader->samples->runs[said_by].id, reader->samples->runs[reader->run].id) > 0;
}

static int add_dropped(struct reader *reader, json_t *object)
{
    int64_t number, which;
    const char *why;
    struct sample_case *it;
    if (!fp8r_json_integer(object, "case", &number) || !fp8r_json_integer(object, "candidate", &which) ||
        !fp8r_json_text(object, "why", &why))
        return reject(reader, "the fields case, candidate, why");
    struct sample_candidate *candidate = locate(reader, number, which, &it);
    if (!candidate)
        return reject(reader, "a case and a candidate that an earlier line of this run announced");
    if (*candidate->dropped && is_older(reader, candidate->dropped_run))
        return FP8R_EXIT_GOOD;
    candidate->dropped_run = reader->run;
    snprintf(candidate->dropped, sizeof candidate->dropped, "%s", why);
    return FP8R_EXIT_GOOD;
}

static int add_done(struct reader *reader, json_t *object)
{
    int64_t number;
    bool is_noisy;
    struct sample_case *it;
    if (!fp8r_json_integer(object, "case", &number) || !fp8r_json_boolean(object, "noisy", &is_noisy))
        return reject(reader, "the fields case, noisy");
    if (!locate(reader, number, 0, &it))
        return reject(reader, "a case that an earlier line of this run announced");
    if (it->is_done && is_older(reader, it->done_run))
        return FP8R_EXIT_GOOD;
    it->is_done = true;
    it->done_run = reader->run;
    it->is_noisy = is_noisy;
    return FP8R_EXIT_GOOD;
}

/* ---- Lines ---- */

static int read_object(struct reader *reader, const char *line)
{
    static const struct {
        const char *record;
        int (*add)(struct reader *, json_t *);
    } records[] = {{"case", add_case}, {"dropped", add_dropped}, {"done", add_done}, {"run", add_run}};
    const char *record = "";
    char origin[sizeof reader->error->text / 2];
    struct fp8r_json json;
    if (reader->line == 1 && strncmp(line, "fp8route-routes", strlen("fp8route-routes")) == 0)
        return fp8r_tool_error_set(reader->error, FP8R_EXIT_BAD_DATA,
                                   "%s is a route file, and samples are wanted: `fp8route tune` keeps them where --samples says; "
                                   "with --quick it keeps none", reader->path);
    snprintf(origin, sizeof origin, "%s, line %ld", reader->path, reader->line);
    int code = fp8r_json_open(line, strlen(line), origin, &json, reader->error);
    if (code != FP8R_EXIT_GOOD)
        return code;
    json_t *object = json.root;
    if (!fp8r_json_text(object, "record", &record))
        record = "";
    size_t i = 0;
    while (i < sizeof records / sizeof *records && strcmp(records[i].record, record) != 0)
        i++;
    if (i == sizeof records / sizeof *records)
        code = reject(reader, "a record of run, case, sample, dropped or done");
    else if (reader->run < 0 && records[i].add != add_run)
        code = reject(reader, "a run before anything else");
    else
        code = records[i].add(reader, object);
    fp8r_json_close(&json);
    return code;
}

static int read_lines(struct reader *reader, FILE *file)
{
    char *line = NULL;
    size_t size = 0;
    int code = FP8R_EXIT_GOOD;
    for (ssize_t length; code == FP8R_EXIT_GOOD && (length = getline(&line, &size, file)) > 0;) {
        reader->line++;
        if (line[length - 1] != '\n') /* torn: its process was killed */
            break;
        line[length - 1] = '\0';
        if (strlen(line) != (size_t)length - 1)
            code = reject(reader, "text without zero bytes");
        else if (strncmp(line, "{\"record\":\"sample\"", 18) == 0)
            code = add_sample(reader, line);
        else
            code = read_object(reader, line);
    }
    if (code == FP8R_EXIT_GOOD)
        code = fp8r_tool_input_ended(reader->path, file, reader->error);
    free(line);
    return code;
}

int samples_read_lines(struct samples *samples, const char *path, struct fp8r_tool_error *error)
{
    struct reader reader = {.samples = samples, .path = path, .run = -1, .error = error};
    FILE *file = NULL;
    int code = fp8r_tool_input_stream(path, &file, error);
    if (code != FP8R_EXIT_GOOD)
        return code;
    code = read_lines(&reader, file);
    fclose(file);
    free(reader.cases);
    return code;
}
