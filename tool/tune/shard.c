/* Resolving shards. Two levels multiply: an array of jobs that know nothing of each other, and in each of them ranks that
 * were started together.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tune/shard.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct environment {
    fp8r_variable variable;
    void *user;
    struct fp8r_shard *shard; /* its source grows */
    struct fp8r_tool_error *error;
};

static const char *value_of(const struct environment *environment, const char *name)
{
    const char *value = environment->variable(environment->user, name);
    return value && *value ? value : NULL;
}

/* A whole number from 0 to most, and nothing behind it. */
static bool read_number(const char *text, int64_t most, int64_t *number)
{
    *number = 0;
    if (*text == '\0')
        return false;
    for (; *text >= '0' && *text <= '9'; text++) {
        *number = *number * 10 + (*text - '0');
        if (*number > most)
            return false;
    }
    return *text == '\0';
}

/* Of a variable that is set: its number, noted as a source. */
static int take(const struct environment *environment, const char *name, int64_t least, int64_t most, int64_t *number)
{
    const char *value = value_of(environment, name);
    if (!read_number(value, most, number) || *number < least)
        return fp8r_tool_error_set(environment->error, FP8R_EXIT_USAGE,
                                   "--shard auto: %s is \"%.40s\": expected a whole number from %lld to %lld", name, value,
                                   (long long)least, (long long)most);
    size_t used = strlen(environment->shard->source), size = sizeof environment->shard->source;
    snprintf(environment->shard->source + used, size - used, "%s%s=%lld", used > 0 ? " " : "", name, (long long)*number);
    return FP8R_EXIT_GOOD;
}

static int miss(const struct environment *environment, const char *there, const char *missing, const char *what)
{
    return fp8r_tool_error_set(environment->error, FP8R_EXIT_USAGE, "--shard auto: %s is set but %s is not: %s", there,
                               missing, what);
}

/* ---- The levels ---- */

struct part {
    int64_t index, count; /* index from 0 */
};

/* A job array counts in steps from any number. Where some of its tasks were left out, numbers and count do not match, and
 * nobody knows who has the rest. */
static int find_array(const struct environment *environment, struct part *part)
{
    int64_t id = 0, least = 0, most = 0, step = 1;
    static const char all[] = "submit the whole array, or say --shard I/N";
    if (!value_of(environment, "SLURM_ARRAY_TASK_ID"))
        return FP8R_EXIT_GOOD;
    if (!value_of(environment, "SLURM_ARRAY_TASK_COUNT"))
        return miss(environment, "SLURM_ARRAY_TASK_ID", "SLURM_ARRAY_TASK_COUNT", "say --shard I/N");
    int code = take(environment, "SLURM_ARRAY_TASK_ID", 0, INT32_MAX, &id);
    if (code == FP8R_EXIT_GOOD)
        code = take(environment, "SLURM_ARRAY_TASK_COUNT", 1, FP8R_SHARDS_MAX, &part->count);
    if (code == FP8R_EXIT_GOOD && !value_of(environment, "SLURM_ARRAY_TASK_MIN"))
        return miss(environment, "SLURM_ARRAY_TASK_ID", "SLURM_ARRAY_TASK_MIN", "say --shard I/N");
    if (code == FP8R_EXIT_GOOD)
        code = take(environment, "SLURM_ARRAY_TASK_MIN", 0, INT32_MAX, &least);
    if (code == FP8R_EXIT_GOOD && value_of(environment, "SLURM_ARRAY_TASK_STEP"))
        code = take(environment, "SLURM_ARRAY_TASK_STEP", 1, INT32_MAX, &step);
    most = least + (part->count - 1) * step;
    if (code == FP8R_EXIT_GOOD && value_of(environment, "SLURM_ARRAY_TASK_MAX"))
        code = take(environment, "SLURM_ARRAY_TASK_MAX", 0, INT32_MAX, &most);
    if (code != FP8R_EXIT_GOOD)
        return code;
    if (id < least || id > most || (id - least) % step != 0 || (most - least) / step + 1 != part->count)
        return fp8r_tool_error_set(environment->error, FP8R_EXIT_USAGE,
                                   "--shard auto: this job array has gaps (task %lld of %lld..%lld in steps of %lld, %lld "
                                   "in all): %s", (long long)id, (long long)least, (long long)most, (long long)step,
                                   (long long)part->count, all);
    part->index = (id - least) / step;
    return FP8R_EXIT_GOOD;
}

/* Pairs of variables: a rank from 0 and how many there are. The first pair whose rank is set holds: what is started last
 * (torchrun in a Slurm step) knows all ranks. */
struct ranks {
    const char *rank, *size, *what;
    bool is_weak; /* set in every job of the scheduler: alone, beside an array, it says nothing */
};

static const struct ranks known[] = {
    {"RANK", "WORLD_SIZE", "torchrun sets both", false},
    {"SLURM_PROCID", "SLURM_NTASKS", "start it with srun and --ntasks", true},
    {"JOB_COMPLETION_INDEX", "FP8ROUTE_SHARDS", "set it to the job's completions", false}};

static int find_ranks(const struct environment *environment, bool has_array, struct part *part)
{
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        const struct ranks *it = &known[i];
        bool has_rank = value_of(environment, it->rank) != NULL, has_size = value_of(environment, it->size) != NULL;
        if (!has_rank || (!has_size && it->is_weak && has_array))
            continue;
        if (!has_size)
            return miss(environment, it->rank, it->size, it->what);
        int code = take(environment, it->rank, 0, FP8R_SHARDS_MAX - 1, &part->index);
        if (code == FP8R_EXIT_GOOD)
            code = take(environment, it->size, 1, FP8R_SHARDS_MAX, &part->count);
        if (code == FP8R_EXIT_GOOD && part->index >= part->count)
            return fp8r_tool_error_set(environment->error, FP8R_EXIT_USAGE,
                                       "--shard auto: %s is %lld: it must be below %s, which is %lld", it->rank,
                                       (long long)part->index, it->size, (long long)part->count);
        return code;
    }
    return FP8R_EXIT_GOOD;
}

static int resolve(const struct environment *environment)
{
    struct part array = {0, 0}, rank = {0, 0};
    int code = find_array(environment, &array);
    if (code == FP8R_EXIT_GOOD)
        code = find_ranks(environment, array.count > 0, &rank);
    if (code != FP8R_EXIT_GOOD)
        return code;
    if (array.count == 0 && rank.count == 0)
        return fp8r_tool_error_set(environment->error, FP8R_EXIT_USAGE,
                                   "--shard auto finds no scheduler: none of SLURM_ARRAY_TASK_ID, RANK, SLURM_PROCID and "
                                   "JOB_COMPLETION_INDEX is set; say --shard I/N");
    array.count = array.count > 0 ? array.count : 1;
    rank.count = rank.count > 0 ? rank.count : 1;
    if (array.count * rank.count > FP8R_SHARDS_MAX)
        return fp8r_tool_error_set(environment->error, FP8R_EXIT_USAGE,
                                   "--shard auto: %lld jobs of %lld ranks are more than %d shards", (long long)array.count,
                                   (long long)rank.count, FP8R_SHARDS_MAX);
    environment->shard->count = (int)(array.count * rank.count);
    environment->shard->index = (int)(array.index * rank.count + rank.index) + 1;
    return FP8R_EXIT_GOOD;
}

/* ---- The words ---- */

static bool read_pair(const char *text, struct fp8r_shard *shard)
{
    char first[16];
    int64_t index, count;
    const char *slash = strchr(text, '/');
    if (!slash || slash - text >= (ptrdiff_t)sizeof first)
        return false;
    snprintf(first, sizeof first, "%.*s", (int)(slash - text), text);
    if (!read_number(first, FP8R_SHARDS_MAX, &index) || !read_number(slash + 1, FP8R_SHARDS_MAX, &count) || index < 1 ||
        index > count)
        return false;
    shard->index = (int)index;
    shard->count = (int)count;
    snprintf(shard->source, sizeof shard->source, "%d/%d", shard->index, shard->count);
    return true;
}

int fp8r_shard_parse(const char *text, fp8r_variable variable, void *user, struct fp8r_shard *shard,
                     struct fp8r_tool_error *error)
{
    struct fp8r_shard found = {0};
    const struct environment environment = {.variable = variable, .user = user, .shard = &found, .error = error};
    int code = FP8R_EXIT_GOOD;
    if (strcmp(text, "auto") == 0)
        code = resolve(&environment);
    else if (!read_pair(text, &found))
        code = fp8r_tool_error_set(error, FP8R_EXIT_USAGE,
                                   "--shard is \"%.40s\": it must be I/N with I from 1 to N (at most %d), or auto", text,
                                   FP8R_SHARDS_MAX);
    if (code == FP8R_EXIT_GOOD)
        *shard = found;
    return code;
}

static const char *environment_variable(void *user, const char *name)
{
    (void)user;
    return getenv(name);
}

int fp8r_shard_here(const char *text, struct fp8r_shard *shard, struct fp8r_tool_error *error)
{
    return fp8r_shard_parse(text, environment_variable, NULL, shard, error);
}
