/* Shards from words and from schedulers' variables: each scheduler alone, two levels together, and what is missing or wrong.
 * SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tune/shard.h"

enum { VARIABLES = 10 };

/* "NAME=VALUE NAME=VALUE" */
static const char *look_up(void *user, const char *name)
{
    static char values[VARIABLES][64];
    static int next;
    size_t length = strlen(name);
    for (const char *at = user; *at; at += strcspn(at, " "), at += *at == ' ') {
        if (strncmp(at, name, length) != 0 || at[length] != '=') continue;
        char *value = values[next++ % VARIABLES];
        size_t size = strcspn(at + length + 1, " ");
        assert_true(size < sizeof values[0]);
        memcpy(value, at + length + 1, size);
        value[size] = '\0';
        return value;
    }
    return NULL;
}

static struct fp8r_shard shard;
static struct fp8r_tool_error failure;

static int parse(const char *text, const char *variables)
{
    shard = (struct fp8r_shard){.index = -1};
    failure = (struct fp8r_tool_error){0};
    return fp8r_shard_parse(text, look_up, (void *)(uintptr_t)variables, &shard, &failure);
}

static void words_are_read(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int index, count; /* 0: refused */
    } cases[] = {{"1/1", 1, 1},   {"3/8", 3, 8},      {"8/8", 8, 8},  {"100000/100000", 100000, 100000},
                 {"0/8", 0, 0},   {"9/8", 0, 0},      {"1/0", 0, 0},  {"1/100001", 0, 0},
                 {"", 0, 0},      {"3", 0, 0},        {"/8", 0, 0},   {"3/", 0, 0},
                 {"3/8 ", 0, 0},  {" 3/8", 0, 0},     {"+3/8", 0, 0}, {"3/8/1", 0, 0},
                 {"-1/8", 0, 0},  {"3/4294967304", 0, 0}, {"00000000000000000003/8", 0, 0}, {"Auto", 0, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int code = parse(cases[i].text, "SLURM_ARRAY_TASK_ID=1");
        assert_int_equal(code, cases[i].count ? FP8R_EXIT_GOOD : FP8R_EXIT_USAGE);
        if (code == FP8R_EXIT_GOOD) {
            assert_int_equal(shard.index, cases[i].index);
            assert_int_equal(shard.count, cases[i].count);
            assert_string_equal(shard.source, cases[i].text);
        } else {
            assert_int_equal(shard.index, -1); /* untouched */
            assert_non_null(strstr(failure.text, "it must be I/N with I from 1 to N"));
        }
    }
}

#define ARRAY(id, count, least, most) \
    "SLURM_ARRAY_TASK_ID=" id " SLURM_ARRAY_TASK_COUNT=" count " SLURM_ARRAY_TASK_MIN=" least " SLURM_ARRAY_TASK_MAX=" most

static void schedulers_are_known(void **state)
{
    (void)state;
    static const struct {
        const char *variables;
        int index, count;
    } cases[] = {
        {ARRAY("0", "8", "0", "7"), 1, 8},
        {ARRAY("7", "8", "0", "7"), 8, 8},
        {ARRAY("1", "8", "1", "8"), 1, 8},
        {ARRAY("12", "4", "10", "16") " SLURM_ARRAY_TASK_STEP=2", 2, 4},
        {"SLURM_ARRAY_TASK_ID=3 SLURM_ARRAY_TASK_COUNT=8 SLURM_ARRAY_TASK_MIN=1", 3, 8},
        {"SLURM_PROCID=0 SLURM_NTASKS=16", 1, 16},
        {"SLURM_PROCID=15 SLURM_NTASKS=16", 16, 16},
        {"RANK=2 WORLD_SIZE=4", 3, 4},
        {"JOB_COMPLETION_INDEX=0 FP8ROUTE_SHARDS=5", 1, 5},
        {"JOB_COMPLETION_INDEX=4 FP8ROUTE_SHARDS=5", 5, 5},
        /* torchrun inside a Slurm job, or inside a Kubernetes one: it knows all ranks */
        {"RANK=2 WORLD_SIZE=4 SLURM_PROCID=0 SLURM_NTASKS=1", 3, 4},
        {"RANK=2 WORLD_SIZE=4 JOB_COMPLETION_INDEX=1", 3, 4},
        /* an array of jobs with ranks in each */
        {ARRAY("2", "3", "1", "3") " SLURM_PROCID=1 SLURM_NTASKS=4", 6, 12},
        {ARRAY("3", "3", "1", "3") " SLURM_PROCID=3 SLURM_NTASKS=4", 12, 12},
        {ARRAY("2", "3", "1", "3") " RANK=0 WORLD_SIZE=2 SLURM_PROCID=0 SLURM_NTASKS=1", 3, 6},
        /* SLURM_PROCID is set in every job; without SLURM_NTASKS it is no second level */
        {ARRAY("2", "3", "1", "3") " SLURM_PROCID=0", 2, 3},
        /* an empty value is none */
        {"SLURM_ARRAY_TASK_ID= RANK= WORLD_SIZE= JOB_COMPLETION_INDEX=1 FP8ROUTE_SHARDS=2", 2, 2}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (parse("auto", cases[i].variables) != FP8R_EXIT_GOOD) fail_msg("%s: %s", cases[i].variables, failure.text);
        if (shard.index != cases[i].index || shard.count != cases[i].count)
            fail_msg("%s: %d/%d", cases[i].variables, shard.index, shard.count);
        assert_true(shard.source[0]);
    }
    assert_int_equal(parse("auto", ARRAY("2", "3", "1", "3")), 0);
    assert_string_equal(shard.source,
                        "SLURM_ARRAY_TASK_ID=2 SLURM_ARRAY_TASK_COUNT=3 SLURM_ARRAY_TASK_MIN=1 SLURM_ARRAY_TASK_MAX=3");
}

/* Every shard of a job has an index of its own, and all of them are there. */
static void two_levels_make_every_index_once(void **state)
{
    (void)state;
    bool seen[3 * 4 + 1] = {false};
    for (int job = 0; job < 3; job++)
        for (int rank = 0; rank < 4; rank++) {
            char variables[256];
            (void)snprintf(variables, sizeof variables,
                           "SLURM_ARRAY_TASK_ID=%d SLURM_ARRAY_TASK_COUNT=3 SLURM_ARRAY_TASK_MIN=5 RANK=%d WORLD_SIZE=4",
                           5 + job, rank);
            assert_int_equal(parse("auto", variables), 0);
            assert_int_equal(shard.count, 12);
            assert_in_range(shard.index, 1, 12);
            assert_false(seen[shard.index]);
            seen[shard.index] = true;
        }
}

static void what_is_missing_is_named(void **state)
{
    (void)state;
    static const struct {
        const char *variables, *message;
    } cases[] = {
        {"", "--shard auto finds no scheduler: none of SLURM_ARRAY_TASK_ID, RANK, SLURM_PROCID and JOB_COMPLETION_INDEX"},
        {"WORLD_SIZE=4 SLURM_NTASKS=4 FP8ROUTE_SHARDS=4", "finds no scheduler"},
        {"SLURM_ARRAY_TASK_ID=1", "SLURM_ARRAY_TASK_ID is set but SLURM_ARRAY_TASK_COUNT is not: say --shard I/N"},
        {"SLURM_ARRAY_TASK_ID=1 SLURM_ARRAY_TASK_COUNT=2", "SLURM_ARRAY_TASK_ID is set but SLURM_ARRAY_TASK_MIN is not"},
        {"RANK=0", "RANK is set but WORLD_SIZE is not: torchrun sets both"},
        {"SLURM_PROCID=0", "SLURM_PROCID is set but SLURM_NTASKS is not: start it with srun"},
        {"JOB_COMPLETION_INDEX=0", "JOB_COMPLETION_INDEX is set but FP8ROUTE_SHARDS is not: set it to the job's completions"},
        {"RANK=x WORLD_SIZE=4", "RANK is \"x\": expected a whole number from 0 to 99999"},
        {"RANK=-1 WORLD_SIZE=4", "RANK is \"-1\""},
        {"RANK=1 WORLD_SIZE=0", "WORLD_SIZE is \"0\": expected a whole number from 1 to 100000"},
        {"RANK=4 WORLD_SIZE=4", "RANK is 4: it must be below WORLD_SIZE, which is 4"},
        {"RANK=99999999999999999999 WORLD_SIZE=4", "RANK is \"99999999999999999999\""},
        /* only some tasks of an array were submitted anew: --array=3, --array=1,2,7 */
        {ARRAY("2", "3", "1", "7"), "this job array has gaps (task 2 of 1..7 in steps of 1, 3 in all)"},
        {ARRAY("11", "4", "10", "16") " SLURM_ARRAY_TASK_STEP=2", "this job array has gaps"},
        {ARRAY("9", "8", "0", "7"), "this job array has gaps"},
        {ARRAY("0", "50000", "0", "49999") " RANK=0 WORLD_SIZE=3", "50000 jobs of 3 ranks are more than 100000 shards"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(parse("auto", cases[i].variables), FP8R_EXIT_USAGE);
        if (!strstr(failure.text, cases[i].message)) fail_msg("no \"%s\" in \"%s\"", cases[i].message, failure.text);
        assert_int_equal(shard.index, -1);
    }
}

static void the_environment_is_asked(void **state)
{
    (void)state;
    static const char *const names[] = {"SLURM_ARRAY_TASK_ID", "RANK", "SLURM_PROCID"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) assert_int_equal(unsetenv(names[i]), 0);
    assert_int_equal(setenv("JOB_COMPLETION_INDEX", "1", 1), 0);
    assert_int_equal(setenv("FP8ROUTE_SHARDS", "3", 1), 0);
    assert_int_equal(fp8r_shard_here("auto", &shard, &failure), 0);
    assert_true(shard.index == 2 && shard.count == 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_are_read),
        cmocka_unit_test(schedulers_are_known),
        cmocka_unit_test(two_levels_make_every_index_once),
        cmocka_unit_test(what_is_missing_is_named),
        cmocka_unit_test(the_environment_is_asked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
