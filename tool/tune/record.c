/* Keeping file and memory together. SPDX-License-Identifier: Apache-2.0 */
#include "tune/record.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tune/samples_grow.h"

enum { FILES_MAX = 1000 };

/* The first name that no other process writes. */
static int open_own(struct record *record, const char *folder, const char *name, const struct fp8r_route_file *header,
                    uint64_t seed, double margin, struct fp8r_tool_error *error)
{
    int code = FP8R_EXIT_BAD_DATA;
    bool is_taken = true;
    for (int i = 1; i <= FILES_MAX && is_taken; i++) {
        char suffix[16] = "";
        if (i > 1)
            snprintf(suffix, sizeof suffix, "-%d", i);
        int length = snprintf(record->path, sizeof record->path, "%s/%s%s.jsonl", folder, name, suffix);
        if (length < 0 || (size_t)length >= sizeof record->path)
            return fp8r_tool_error_set(error, FP8R_EXIT_USAGE, "%s: the path is too long", folder);
        code = sample_writer_open(record->path, header, seed, margin, &record->writer, &is_taken, error);
    }
    if (code == FP8R_EXIT_GOOD)
        error->text[0] = '\0'; /* of names that were taken */
    return code;
}

static int find_own_run(struct record *record, struct fp8r_tool_error *error)
{
    for (int i = 0; i < record->samples.run_count; i++) {
        if (strcmp(record->samples.runs[i].id, sample_writer_run(record->writer)) == 0) {
            record->run = i;
            record->machine = record->samples.runs[i].machine;
            return FP8R_EXIT_GOOD;
        }
    }
    return fp8r_tool_error_set(error, FP8R_EXIT_INTERNAL, "%s does not hold the run that was just begun", record->path);
}

/* Without a file, the one run and its machine are made here. */
static int open_in_memory(struct record *record, const struct fp8r_route_file *header, uint64_t seed, double margin,
                          struct fp8r_tool_error *error)
{
    struct samples *samples = &record->samples;
    samples->machines = calloc(1, sizeof *samples->machines);
    samples->runs = calloc(1, sizeof *samples->runs);
    if (!samples->machines || !samples->runs) {
        samples_fini(samples);
        return fp8r_tool_error_memory(error, "the samples");
    }
    samples->machines[samples->machine_count] = *header;
    samples->machines[samples->machine_count++].table = (struct fp8r_table){0};
    samples->runs[samples->run_count++] = (struct sample_run){.seed = seed, .margin = margin};
    return FP8R_EXIT_GOOD;
}

static int make_one(const char *folder, struct fp8r_tool_error *error)
{
    struct stat facts;
    int reason = mkdir(folder, 0777) != 0 ? errno : 0;
    if (reason == 0 || reason == EEXIST || (stat(folder, &facts) == 0 && S_ISDIR(facts.st_mode)))
        return FP8R_EXIT_GOOD;
    return fp8r_tool_error_set(error, FP8R_EXIT_BAD_DATA, "%.300s cannot be made: %s", folder, strerror(reason));
}

/* With the folders above it: a new user has no cache yet. */
static int make_folder(const char *folder, struct fp8r_tool_error *error)
{
    int code = FP8R_EXIT_GOOD;
    char *path = strdup(folder);
    if (!path)
        return fp8r_tool_error_memory(error, "a path");
    for (char *slash = strchr(path + (*path == '/'), '/'); slash && code == FP8R_EXIT_GOOD; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        code = make_one(path, error);
        *slash = '/';
    }
    free(path);
    return code == FP8R_EXIT_GOOD ? make_one(folder, error) : code;
}

int record_open(struct record *record, const char *folder, const char *name, const struct fp8r_route_file *header,
                uint64_t seed, double margin, struct fp8r_tool_error *error)
{
    *record = (struct record){0};
    if (!folder)
        return open_in_memory(record, header, seed, margin, error);
    int code = make_folder(folder, error);
    if (code == FP8R_EXIT_GOOD)
        code = open_own(record, folder, name, header, seed, margin, error);
    if (code == FP8R_EXIT_GOOD)
        code = samples_read_path(&record->samples, folder, error);
    if (code == FP8R_EXIT_GOOD)
        code = find_own_run(record, error);
    if (code != FP8R_EXIT_GOOD)
        (void)record_close(record, NULL);
    return code;
}

int record_close(struct record *record, struct fp8r_tool_error *error)
{
    int code = sample_writer_close(record->writer, error);
    samples_fini(&record->samples);
    free(record->numbers);
    record->writer = NULL;
    record->numbers = NULL;
    return code;
}

void record_forget(struct record *record)
{
    for (size_t i = 0; i < record->samples.case_count; i++) {
        for (int j = 0; j < record->samples.cases[i].count; j++) {
            record->samples.cases[i].candidates[j].count = 0;
            record->samples.cases[i].candidates[j].dropped[0] = '\0';
        }
    }
}

/* Copies the list of candidates, without samples. */
static int add_case(struct record *record, const struct sample_case *wanted, struct fp8r_tool_error *error)
{
    struct sample_case made = *wanted;
    made.machine = record->machine;
    made.candidates = calloc((size_t)wanted->count, sizeof *made.candidates);
    if (!made.candidates)
        return fp8r_tool_error_memory(error, "a case");
    for (int i = 0; i < wanted->count; i++) {
        memcpy(made.candidates[i].name, wanted->candidates[i].name, sizeof made.candidates[i].name);
        memcpy(made.candidates[i].rev, wanted->candidates[i].rev, sizeof made.candidates[i].rev);
    }
    if (samples_add_case(&record->samples, &made))
        return FP8R_EXIT_GOOD;
    free(made.candidates);
    return fp8r_tool_error_memory(error, "a case");
}

/* numbers[] reaches at least up to the case. */
static bool extend_numbers(struct record *record, size_t index)
{
    if (index < record->number_capacity)
        return true;
    size_t capacity = 2 * index + 64;
    int *numbers = realloc(record->numbers, capacity * sizeof *numbers);
    if (!numbers)
        return false;
    for (size_t i = record->number_capacity; i < capacity; i++)
        numbers[i] = -1;
    record->numbers = numbers;
    record->number_capacity = capacity;
    return true;
}

int record_case(struct record *record, const struct sample_case *wanted, size_t *index, struct fp8r_tool_error *error)
{
    struct sample_case *known = samples_find(&record->samples, record->machine, wanted->problem);
    if (known && !sample_case_same_list(known, wanted))
        return fp8r_tool_error_set(error, FP8R_EXIT_BAD_DATA,
                                   "%s was measured with other backends or revisions in this folder: --samples names a "
                                   "new one", wanted->problem);
    int code = known ? FP8R_EXIT_GOOD : add_case(record, wanted, error);
    if (code != FP8R_EXIT_GOOD)
        return code;
    known = samples_find(&record->samples, record->machine, wanted->problem);
    sample_case_join(known, wanted);
    *index = (size_t)(known - record->samples.cases);
    if (!extend_numbers(record, *index))
        return fp8r_tool_error_memory(error, "a case");
    return !record->writer || record->numbers[*index] >= 0
               ? FP8R_EXIT_GOOD
               : sample_writer_case(record->writer, known, &record->numbers[*index], error);
}

int32_t record_next_round(const struct record *record, size_t index, int phase)
{
    const struct sample_case *it = &record->samples.cases[index];
    int32_t next = 0;
    for (int i = 0; i < it->count; i++)
        for (size_t j = 0; j < it->candidates[i].count; j++) {
            const struct sample *sample = &it->candidates[i].samples[j];
            if (sample->run == record->run && sample->phase == phase && sample->round >= next)
                next = sample->round + 1;
        }
    return next;
}

int record_sample(struct record *record, size_t index, int candidate, const struct sample *sample,
                  struct fp8r_tool_error *error)
{
    struct sample_candidate *it = &record->samples.cases[index].candidates[candidate];
    if (!samples_grow(&it->samples, it->count, &it->capacity))
        return fp8r_tool_error_memory(error, "a sample");
    it->samples[it->count] = *sample;
    it->samples[it->count++].run = record->run;
    return record->writer ? sample_writer_sample(record->writer, record->numbers[index], candidate, sample, error)
                          : FP8R_EXIT_GOOD;
}

int record_dropped(struct record *record, size_t index, int candidate, const char *why, struct fp8r_tool_error *error)
{
    struct sample_candidate *it = &record->samples.cases[index].candidates[candidate];
    snprintf(it->dropped, sizeof it->dropped, "%s", why);
    return record->writer
               ? sample_writer_dropped(record->writer, record->numbers[index], candidate, it->dropped, error)
               : FP8R_EXIT_GOOD;
}

int record_done(struct record *record, size_t index, bool noisy, struct fp8r_tool_error *error)
{
    record->samples.cases[index].is_done = true;
    record->samples.cases[index].is_noisy = noisy;
    record->samples.cases[index].done_run = record->run;
    return record->writer ? sample_writer_done(record->writer, record->numbers[index], noisy, error) : FP8R_EXIT_GOOD;
}

int record_flush(struct record *record, struct fp8r_tool_error *error)
{
    return record->writer ? sample_writer_flush(record->writer, error) : FP8R_EXIT_GOOD;
}
