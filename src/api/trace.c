/* Counting problems. Each line is one write to a file opened for appending: several processes may share the file.
 *     {"problem": "1x4096x14336", "count": 4, "captured": false, "process": 4711, "context": 1}
 * The count is the process's so far in that context; of several lines of one problem the largest holds.
 * SPDX-License-Identifier: Apache-2.0 */
#include "api/trace.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fork.h"
#include "base/status.h"
#include "problem/grammar.h"
#include "problem/key.h"

/* Problems beyond this many are not told apart any more: memory stays bounded. */
enum { SLOTS = 1 << 16, PROBLEMS_MAX = SLOTS / 2 };

struct met {
    char text[FP8R_TEXT_BYTES];
    bool is_captured;
    uint64_t count, written;
};

struct fp8r_trace {
    int file;
    int context;
    struct fp8r_lock lock; /* guards what follows */
    int problems;
    struct met *slots[SLOTS];
};

/* A file, a terminal or /dev/null. At a pipe or socket the open, or a later line, would wait for whoever reads it: a
 * product must not. */
static fp8r_status open_file(const char *path, int *file)
{
    struct stat facts;
    if (stat(path, &facts) == 0 && !S_ISREG(facts.st_mode) && !S_ISCHR(facts.st_mode))
        return fp8r_fail(FP8R_ERROR_IO, "FP8ROUTE_TRACE=%.300s is not a regular file: nothing is traced", path);
    *file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK, 0644);
    if (*file < 0)
        return fp8r_fail(FP8R_ERROR_IO, "FP8ROUTE_TRACE=%.300s cannot be opened: %s", path, strerror(errno));
    return FP8R_OK;
}

fp8r_status fp8r_trace_create(const char *path, struct fp8r_trace **result)
{
    static _Atomic int contexts;
    struct fp8r_trace *trace = calloc(1, sizeof *trace);
    if (!trace)
        return fp8r_fail_memory("the trace");
    fp8r_status status = open_file(path, &trace->file);
    if (status != FP8R_OK) {
        free(trace);
        return status;
    }
    trace->context = atomic_fetch_add(&contexts, 1) + 1;
    fp8r_lock_init(&trace->lock);
    *result = trace;
    return FP8R_OK;
}

/* A file that cannot take the line loses it: tracing never makes a product fail. */
static void write_line(const struct fp8r_trace *trace, struct met *met)
{
    char line[FP8R_TEXT_BYTES + 160];
    int length = snprintf(line, sizeof line,
                          "{\"problem\": \"%s\", \"count\": %llu, \"captured\": %s, \"process\": %ld, \"context\": %d}\n",
                          met->text, (unsigned long long)met->count, met->is_captured ? "true" : "false",
                          (long)getpid(), trace->context);
    if (write(trace->file, line, (size_t)length) == length)
        met->written = met->count;
}

/* The problem's counter, made where there is none; NULL when there are too many or memory is out. */
static struct met *find(struct fp8r_trace *trace, const char *text, uint64_t hash, bool is_captured)
{
    for (uint64_t at = hash;; at++) {
        struct met **slot = &trace->slots[at % SLOTS];
        if (*slot && (*slot)->is_captured == is_captured && strcmp((*slot)->text, text) == 0)
            return *slot;
        if (*slot)
            continue;
        if (trace->problems == PROBLEMS_MAX)
            return NULL;
        *slot = calloc(1, sizeof **slot);
        if (!*slot)
            return NULL;
        snprintf((*slot)->text, sizeof (*slot)->text, "%s", text);
        (*slot)->is_captured = is_captured;
        trace->problems++;
        return *slot;
    }
}

void fp8r_trace_count(struct fp8r_trace *trace, const fp8r_problem *problem, bool is_captured)
{
    char text[FP8R_TEXT_BYTES] = "";
    if (fp8r_problem_format(problem, text, sizeof text) != FP8R_OK)
        return;
    uint64_t hash = fp8r_hash_words(text, sizeof text);
    fp8r_lock_take(&trace->lock);
    struct met *met = find(trace, text, hash, is_captured);
    if (met) {
        met->count++;
        if ((met->count & (met->count - 1)) == 0) /* a power of two */
            write_line(trace, met);
    }
    fp8r_lock_give(&trace->lock);
}

void fp8r_trace_destroy(struct fp8r_trace *trace)
{
    if (!trace)
        return;
    for (int i = 0; i < SLOTS; i++) {
        if (trace->slots[i] && trace->slots[i]->written < trace->slots[i]->count)
            write_line(trace, trace->slots[i]);
        free(trace->slots[i]);
    }
    close(trace->file);
    fp8r_lock_fini(&trace->lock);
    free(trace);
}
