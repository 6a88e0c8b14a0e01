/* Records without a folder, and records that forget: what the gate and the audit measure with.
 * SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "scratch.h"
#include "tune/record.h"

static struct fp8r_tool_error failure;
static struct sample_candidate candidates[2] = {{.name = "cpu:one", .rev = "r1"},
                                                {.name = "blas:sgemm", .rev = "r2"}};
static const struct sample_case wanted = {
    .problem = "1x64x32", .weight = 1, .candidates = candidates, .count = 2, .fallback = 1};
static const struct fp8r_route_file header = {
    .identity = {.kind = FP8R_DEVICE_CPU, .threads = 2, .last_level_bytes = 1 << 20}, .is_cold = true};

static void measure(struct record *record, int rounds)
{
    size_t index = 7;
    assert_int_equal(record_case(record, &wanted, &index, &failure), FP8R_EXIT_GOOD);
    assert_int_equal(index, 0);
    int32_t first = record_next_round(record, index, SAMPLE_GATE);
    for (int round = 0; round < rounds; round++)
        for (int i = 0; i < 2; i++)
            assert_int_equal(
                record_sample(record, index, i,
                              &(struct sample){.us = 10 + i, .round = first + round, .phase = SAMPLE_GATE},
                              &failure),
                FP8R_EXIT_GOOD);
}

static size_t count_pairs(const struct record *record)
{
    double a[64], b[64];
    const struct sample_case *it = samples_find(&record->samples, record->machine, "1x64x32");
    assert_non_null(it);
    return sample_pairs(&it->candidates[0], &it->candidates[1], SAMPLE_GATE, a, b, 64);
}

static void needs_no_folder(void **state)
{
    (void)state;
    struct record record;
    assert_int_equal(record_open(&record, NULL, "", &header, 3, 0.02, &failure), FP8R_EXIT_GOOD);
    measure(&record, 4);
    assert_int_equal(record_dropped(&record, 0, 1, "wrong result", &failure), FP8R_EXIT_GOOD);
    measure(&record, 2);
    assert_int_equal(count_pairs(&record), 6);
    assert_string_equal(record.samples.cases[0].candidates[1].dropped, "wrong result");
    assert_int_equal(record_done(&record, 0, false, &failure), FP8R_EXIT_GOOD);
    assert_int_equal(record_close(&record, &failure), FP8R_EXIT_GOOD);
}

/* A gate in a folder of an earlier one: its verdict is of now, the old samples stay on disk. */
static void forgets_what_was_read(void **state)
{
    (void)state;
    struct record record;
    const char *folder = scratch_path("samples");
    assert_int_equal(record_open(&record, folder, "gate", &header, 3, 0.02, &failure), FP8R_EXIT_GOOD);
    measure(&record, 5);
    assert_int_equal(record_dropped(&record, 0, 0, "9x behind", &failure), FP8R_EXIT_GOOD);
    assert_int_equal(record_close(&record, &failure), FP8R_EXIT_GOOD);

    assert_int_equal(record_open(&record, folder, "gate", &header, 4, 0.02, &failure), FP8R_EXIT_GOOD);
    assert_int_equal(count_pairs(&record), 5);
    record_forget(&record);
    assert_int_equal(count_pairs(&record), 0);
    assert_string_equal(record.samples.cases[0].candidates[0].dropped, "");
    measure(&record, 3);
    assert_int_equal(count_pairs(&record), 3);
    candidates[0].rev[1] = '9'; /* what the folder holds must not be mixed with another revision's times */
    size_t index;
    assert_int_equal(record_case(&record, &wanted, &index, &failure), FP8R_EXIT_BAD_DATA);
    candidates[0].rev[1] = '1';
    assert_int_equal(record_close(&record, &failure), FP8R_EXIT_GOOD);

    struct samples samples = {0};
    assert_int_equal(samples_read_path(&samples, folder, &failure), FP8R_EXIT_GOOD);
    assert_int_equal(samples.cases[0].candidates[0].count, 8);
    samples_fini(&samples);
}

/* In the process that finished it as for whoever reads it: what the newest run says holds. */
static void a_case_knows_who_finished_it(void **state)
{
    (void)state;
    struct record record;
    const char *folder = scratch_path("finished");
    assert_int_equal(record_open(&record, folder, "gate", &header, 3, 0.5, &failure), FP8R_EXIT_GOOD);
    assert_int_equal(record_close(&record, &failure), FP8R_EXIT_GOOD);
    assert_int_equal(record_open(&record, folder, "all", &header, 3, 0.02, &failure), FP8R_EXIT_GOOD);
    measure(&record, 1);
    assert_int_equal(record_done(&record, 0, false, &failure), FP8R_EXIT_GOOD);
    assert_true(record.samples.runs[record.samples.cases[0].done_run].margin == 0.02);
    assert_int_equal(record_close(&record, &failure), FP8R_EXIT_GOOD);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(needs_no_folder),
                                       cmocka_unit_test(forgets_what_was_read),
                                       cmocka_unit_test(a_case_knows_who_finished_it)};
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
