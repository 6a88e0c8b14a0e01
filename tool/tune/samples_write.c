/* Appending samples. A file belongs to one process at a time (an advisory lock says so); a case is flushed to disk when
 * it is done, and after every round, so that a killed process loses at most the round in flight.
 * SPDX-License-Identifier: Apache-2.0 */
#define _DEFAULT_SOURCE /* flock */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include <jansson.h>

#include <fp8route/fp8route.h>

#include "tune/samples.h"

struct sample_writer {
    FILE *file;
    char path[4096], run[40];
    int cases;
};

static int fail_io(const struct sample_writer *writer, const char *what, struct fp8r_tool_error *error)
{
    return fp8r_tool_error_set(error, FP8R_EXIT_BAD_DATA, "%s: %s: %s", writer->path, what, strerror(errno));
}

/* One JSON object as one line, keys in the order they were set. */
static int write_object(struct sample_writer *writer, json_t *object, struct fp8r_tool_error *error)
{
    char *line = object ? json_dumps(object, JSON_COMPACT) : NULL;
    json_decref(object);
    if (!line)
        return fp8r_tool_error_memory(error, "a line of samples");
    bool written = fprintf(writer->file, "%s\n", line) > 0;
    free(line);
    return written ? FP8R_EXIT_GOOD : fail_io(writer, "cannot be written", error);
}

/* What a killed process left of its last line would spoil the next one. */
static bool cut_torn_line(int file)
{
    off_t end = lseek(file, 0, SEEK_END);
    char last = '\n';
    while (end > 0 && pread(file, &last, 1, end - 1) == 1 && last != '\n')
        end--;
    return end >= 0 && ftruncate(file, end) == 0;
}

static int lock(int file, const char *path, struct fp8r_tool_error *error)
{
    /* Not fcntl: its locks end when the process closes any descriptor of the file, and readers do. */
    if (flock(file, LOCK_EX | LOCK_NB) == 0)
        return FP8R_EXIT_GOOD;
    return fp8r_tool_error_set(error, FP8R_EXIT_BAD_DATA,
                               "%s is being written by another process: give each tuner a file of its own", path);
}

static int write_run(struct sample_writer *writer, const struct fp8r_route_file *header, uint64_t seed, double margin,
                     struct fp8r_tool_error *error)
{
    struct timespec now;
    char *text = NULL;
    clock_gettime(CLOCK_REALTIME, &now);
    snprintf(writer->run, sizeof writer->run, "%llx-%lx", (unsigned long long)now.tv_sec * 1000000000u + (unsigned long long)now.tv_nsec,
             (long)getpid());
    if (fp8r_route_file_format(header, &text) != FP8R_OK)
        return fp8r_tool_error_set(error, FP8R_EXIT_INTERNAL, "%s", fp8r_last_error());
    json_t *object = json_pack("{s:s, s:s, s:s, s:I, s:f, s:s}", "record", "run", "schema", "fp8route.samples/1", "run",
                               writer->run, "seed", (json_int_t)seed, "margin", margin, "machine", text);
    free(text);
    int code = write_object(writer, object, error);
    return code == FP8R_EXIT_GOOD ? sample_writer_flush(writer, error) : code;
}

static int open_file(const char *path, struct sample_writer *writer, bool *is_taken, struct fp8r_tool_error *error)
{
    int file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (file < 0)
        return fail_io(writer, "cannot be opened", error);
    int code = lock(file, path, error);
    *is_taken = code != FP8R_EXIT_GOOD;
    if (code == FP8R_EXIT_GOOD && !cut_torn_line(file))
        code = fail_io(writer, "cannot be cut to whole lines", error);
    writer->file = code == FP8R_EXIT_GOOD ? fdopen(file, "a") : NULL;
    if (code == FP8R_EXIT_GOOD && !writer->file)
        code = fail_io(writer, "cannot be appended to", error);
    if (!writer->file)
        close(file);
    return code;
}

int sample_writer_open(const char *path, const struct fp8r_route_file *header, uint64_t seed, double margin,
                       struct sample_writer **result, bool *is_taken, struct fp8r_tool_error *error)
{
    bool taken = false;
    struct sample_writer *writer = calloc(1, sizeof *writer);
    if (!writer)
        return fp8r_tool_error_memory(error, "the writer of samples");
    if ((size_t)snprintf(writer->path, sizeof writer->path, "%s", path) >= sizeof writer->path) {
        free(writer);
        return fp8r_tool_error_set(error, FP8R_EXIT_USAGE, "the path of the samples is longer than 4095 bytes");
    }
    int code = open_file(path, writer, &taken, error);
    if (is_taken)
        *is_taken = taken;
    if (code == FP8R_EXIT_GOOD)
        code = write_run(writer, header, seed, margin, error);
    if (code != FP8R_EXIT_GOOD) {
        if (writer->file)
            fclose(writer->file);
        free(writer);
        return code;
    }
    *result = writer;
    return FP8R_EXIT_GOOD;
}

const char *sample_writer_run(const struct sample_writer *writer)
{
    return writer->run;
}

int sample_writer_case(struct sample_writer *writer, const struct sample_case *it, int *number,
                       struct fp8r_tool_error *error)
{
    json_t *candidates = json_array();
    for (int i = 0; candidates && i < it->count; i++)
        json_array_append_new(candidates,
                              json_pack("{s:s, s:s}", "name", it->candidates[i].name, "rev", it->candidates[i].rev));
    *number = writer->cases++;
    json_t *object = json_pack("{s:s, s:i, s:s, s:f, s:i, s:o}", "record", "case", "case", *number, "problem",
                               it->problem, "weight", it->weight, "default", it->fallback, "candidates", candidates);
    if (object && it->default_last > 0)
        json_object_set_new(object, "default_last", json_integer(it->default_last));
    return write_object(writer, object, error);
}

int sample_writer_sample(struct sample_writer *writer, int number, int candidate, const struct sample *sample,
                         struct fp8r_tool_error *error)
{
    /* Written by hand: there are millions of these, and the reader knows this exact form. */
    long long picoseconds = (long long)(sample->us * 1e6 + 0.5);
    char state[48] = ""; /* what only a GPU tells */
    if (sample->watts > 0 || sample->celsius > 0)
        snprintf(state, sizeof state, ",\"watts\":%d,\"celsius\":%d", (int)sample->watts, (int)sample->celsius);
    int written = fprintf(writer->file,
                          "{\"record\":\"sample\",\"case\":%d,\"candidate\":%d,\"phase\":\"%s\",\"round\":%d,\"us\":%lld.%06lld,"
                          "\"mhz\":%d%s}\n",
                          number, candidate, sample_phase_name(sample->phase), (int)sample->round,
                          picoseconds / 1000000, picoseconds % 1000000, (int)sample->mhz, state);
    return written > 0 ? FP8R_EXIT_GOOD : fail_io(writer, "cannot be written", error);
}

int sample_writer_dropped(struct sample_writer *writer, int number, int candidate, const char *why,
                          struct fp8r_tool_error *error)
{
    return write_object(writer,
                        json_pack("{s:s, s:i, s:i, s:s}", "record", "dropped", "case", number, "candidate", candidate,
                                  "why", why),
                        error);
}

int sample_writer_flush(struct sample_writer *writer, struct fp8r_tool_error *error)
{
    return fflush(writer->file) == 0 ? FP8R_EXIT_GOOD : fail_io(writer, "cannot be written", error);
}

int sample_writer_done(struct sample_writer *writer, int number, bool noisy, struct fp8r_tool_error *error)
{
    int code = write_object(writer, json_pack("{s:s, s:i, s:b}", "record", "done", "case", number, "noisy", (int)noisy),
                            error);
    return code == FP8R_EXIT_GOOD ? sample_writer_flush(writer, error) : code;
}

int sample_writer_close(struct sample_writer *writer, struct fp8r_tool_error *error)
{
    int code = FP8R_EXIT_GOOD;
    if (!writer)
        return code;
    if (fclose(writer->file) != 0)
        code = fail_io(writer, "cannot be written", error);
    free(writer);
    return code;
}
