/* Reading traces: lines are collected first, then added up.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tune/trace_read.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/dtype.h"
#include "tool_input.h"
#include "tool_json.h"
#include "tune/samples_grow.h"

/* One line: a process's count so far of one problem. */
struct fp8r_trace_count {
    size_t problem, file, line;
    int64_t process, context, count;
    bool is_captured;
};

/* One file under way. */
struct reader {
    struct fp8r_traced *traced;
    const char *path;
    size_t file, line;
    struct fp8r_tool_error *error;
};

void fp8r_traced_fini(struct fp8r_traced *traced)
{
    free(traced->problems);
    free(traced->index);
    free(traced->counts);
    *traced = (struct fp8r_traced){0};
}

static int no_memory(const struct reader *reader)
{
    return fp8r_tool_error_memory(reader->error, "the trace");
}

/* ---- Problems ---- */

static size_t *find_slot(const struct fp8r_traced *traced, const char *text)
{
    uint64_t hash = 0xCBF29CE484222325u; /* FNV-1a */
    for (const char *at = text; *at; at++)
        hash = (hash ^ (unsigned char)*at) * 0x100000001B3u;
    for (hash ^= hash >> 32;; hash++) {
        size_t *slot = &traced->index[hash & (traced->index_size - 1)];
        if (*slot == 0 || strcmp(traced->problems[*slot - 1].text, text) == 0)
            return slot;
    }
}

static bool reindex(struct fp8r_traced *traced)
{
    size_t size = traced->index_size > 0 ? 2 * traced->index_size : 64;
    size_t *index = calloc(size, sizeof *index);
    if (!index)
        return false;
    free(traced->index);
    traced->index = index;
    traced->index_size = size;
    for (size_t i = 0; i < traced->count; i++)
        *find_slot(traced, traced->problems[i].text) = i + 1;
    return true;
}

/* As many bytes as operands and result have, or as many operations as take that long where a byte takes as long as 256:
 * between a CPU (dozens) and a GPU (some hundred). Only ratios of these are ever used. */
static double cost_of(const fp8r_problem *problem)
{
    const double operations_per_byte = 256;
    double batch = (double)problem->batch, m = (double)problem->m, n = (double)problem->n, k = (double)problem->k;
    double bytes = batch * (m * k * (double)fp8r_dtype_bytes(problem->a.dtype) + n * k +
                            m * n * (double)fp8r_dtype_bytes(problem->out.dtype));
    double operations = 2 * batch * m * n * k / operations_per_byte;
    return bytes > operations ? bytes : operations;
}

static int make_problem(const struct reader *reader, const char *text, struct fp8r_trace_problem *made)
{
    fp8r_matmul matmul;
    struct fp8r_product product;
    fp8r_status status = fp8r_matmul_parse(text, &matmul);
    if (status == FP8R_OK)
        status = fp8r_product_init(&matmul, FP8R_DATA_IGNORED, &product);
    if (status != FP8R_OK)
        return fp8r_tool_error_set(reader->error,
                                   status == FP8R_ERROR_OUT_OF_MEMORY ? FP8R_EXIT_INTERNAL : FP8R_EXIT_BAD_DATA,
                                   "%s, line %zu: %s", reader->path, reader->line, fp8r_last_error());
    *made = (struct fp8r_trace_problem){.m = product.problem.m, .cost = cost_of(&product.problem)};
    snprintf(made->text, sizeof made->text, "%s", text);
    fp8r_key_init(&product.problem, FP8R_MODE_EAGER, &made->key);
    return FP8R_EXIT_GOOD;
}

static int find_problem(const struct reader *reader, const char *text, size_t *number)
{
    struct fp8r_traced *traced = reader->traced;
    struct fp8r_trace_problem made;
    if (2 * (traced->count + 1) > traced->index_size && !reindex(traced))
        return no_memory(reader);
    size_t *slot = find_slot(traced, text);
    if (*slot > 0) {
        *number = *slot - 1;
        return FP8R_EXIT_GOOD;
    }
    int code = make_problem(reader, text, &made);
    if (code == FP8R_EXIT_GOOD && !samples_grow(&traced->problems, traced->count, &traced->capacity))
        code = no_memory(reader);
    if (code != FP8R_EXIT_GOOD)
        return code;
    *number = traced->count++;
    traced->problems[*number] = made;
    *slot = traced->count;
    return FP8R_EXIT_GOOD;
}

/* ---- Lines ---- */

static int add_line(const struct reader *reader, const json_t *object)
{
    struct fp8r_traced *traced = reader->traced;
    struct fp8r_trace_count it = {.file = reader->file, .line = reader->line};
    const char *text;
    if (!fp8r_json_text(object, "problem", &text) || !fp8r_json_integer(object, "count", &it.count) ||
        !fp8r_json_boolean(object, "captured", &it.is_captured) ||
        !fp8r_json_integer(object, "process", &it.process) || !fp8r_json_integer(object, "context", &it.context) ||
        it.count < 1 || strlen(text) >= FP8R_TEXT_BYTES)
        return fp8r_tool_error_set(reader->error, FP8R_EXIT_BAD_DATA,
                                   "%s, line %zu: expected problem, count (at least 1), captured, process and context",
                                   reader->path, reader->line);
    int code = find_problem(reader, text, &it.problem);
    if (code == FP8R_EXIT_GOOD && !samples_grow(&traced->counts, traced->count_count, &traced->count_capacity))
        code = no_memory(reader);
    if (code == FP8R_EXIT_GOOD)
        traced->counts[traced->count_count++] = it;
    return code;
}

static int read_line(const struct reader *reader, const char *line, size_t length)
{
    char origin[sizeof reader->error->text / 2];
    struct fp8r_json json;
    snprintf(origin, sizeof origin, "%s, line %zu", reader->path, reader->line);
    int code = fp8r_json_open(line, length, origin, &json, reader->error);
    if (code != FP8R_EXIT_GOOD)
        return code;
    code = add_line(reader, json.root);
    fp8r_json_close(&json);
    return code;
}

static int read_file(struct reader *reader)
{
    char *line = NULL;
    size_t size = 0;
    int code = FP8R_EXIT_GOOD;
    FILE *file = NULL;
    if (fp8r_tool_input_stream(reader->path, &file, reader->error) != FP8R_EXIT_GOOD)
        return reader->error->exit_code;
    for (ssize_t length; code == FP8R_EXIT_GOOD && (length = getline(&line, &size, file)) > 0;) {
        reader->line++;
        if (line[length - 1] != '\n') { /* its process was killed, or is writing it */
            reader->traced->torn++;
            break;
        }
        code = read_line(reader, line, (size_t)length);
        reader->traced->lines++;
    }
    if (code == FP8R_EXIT_GOOD)
        code = fp8r_tool_input_ended(reader->path, file, reader->error);
    free(line);
    fclose(file);
    return code;
}

/* ---- Adding up ---- */

static int order(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

static int compare_counts(const void *a, const void *b)
{
    const struct fp8r_trace_count *x = a, *y = b;
    const int orders[] = {order((int64_t)x->file, (int64_t)y->file),       order(x->process, y->process),
                          order(x->context, y->context),                   order((int64_t)x->problem, (int64_t)y->problem),
                          order(x->is_captured, y->is_captured),           order((int64_t)x->line, (int64_t)y->line)};
    for (size_t i = 0; i < sizeof orders / sizeof *orders; i++)
        if (orders[i] != 0)
            return orders[i];
    return 0;
}

void fp8r_trace_add(int64_t *sum, int64_t count)
{
    *sum = count > INT64_MAX - *sum ? INT64_MAX : *sum + count;
}

/* A process counts upwards, so that its last line holds them all; where a count does not grow, another process with the
 * number of one that ended began anew. */
static void add_up(struct fp8r_traced *traced)
{
    const struct fp8r_trace_count *last = NULL;
    if (traced->count_count > 0)
        qsort(traced->counts, traced->count_count, sizeof *traced->counts, compare_counts);
    for (size_t i = 0; i < traced->count_count; last = &traced->counts[i++]) {
        const struct fp8r_trace_count *it = &traced->counts[i];
        struct fp8r_trace_problem *problem = &traced->problems[it->problem];
        bool is_process = last && last->file == it->file && last->process == it->process;
        bool goes_on = is_process && last->context == it->context && last->problem == it->problem &&
                       last->is_captured == it->is_captured && last->count < it->count;
        int64_t more = goes_on ? it->count - last->count : it->count;
        traced->processes += !is_process;
        fp8r_trace_add(&problem->calls, more);
        fp8r_trace_add(&traced->calls, more);
        if (it->is_captured) {
            fp8r_trace_add(&problem->captured, more);
            fp8r_trace_add(&traced->captured, more);
        }
    }
    for (size_t i = 0; i < traced->count; i++)
        traced->cost += fp8r_trace_weight(&traced->problems[i]);
}

int fp8r_trace_read(struct fp8r_traced *traced, const char *const *paths, size_t path_count, struct fp8r_tool_error *error)
{
    int code = FP8R_EXIT_GOOD;
    for (size_t i = 0; i < path_count && code == FP8R_EXIT_GOOD; i++) {
        struct reader reader = {.traced = traced, .path = paths[i], .file = i, .error = error};
        code = read_file(&reader);
    }
    if (code == FP8R_EXIT_GOOD)
        add_up(traced);
    free(traced->counts);
    traced->counts = NULL;
    traced->count_count = traced->count_capacity = 0;
    return code;
}

double fp8r_trace_weight(const struct fp8r_trace_problem *problem)
{
    return (double)problem->calls * problem->cost;
}

int64_t fp8r_trace_calls(const struct fp8r_traced *traced, const struct fp8r_key *key, int64_t m)
{
    struct fp8r_key wanted = *key;
    int64_t calls = 0; /* of all problems that differ in what a key does not hold */
    wanted.mode = FP8R_MODE_EAGER;
    for (size_t i = 0; i < traced->count; i++)
        if (traced->problems[i].m == m && fp8r_key_equal(&traced->problems[i].key, &wanted))
            fp8r_trace_add(&calls, traced->problems[i].calls);
    return calls;
}
