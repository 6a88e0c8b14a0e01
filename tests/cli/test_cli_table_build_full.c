/* fp8route table build on a million samples: under five seconds.
 * SPDX-License-Identifier: Apache-2.0 */
#include <sys/resource.h>
#include <time.h>

#include "program.h"
#include "scratch.h"
#include "tool/sample_maker.h"

/* 25 families at 40 M, 4 runs of 250 rounds in files of their own, 3 candidates: a million times and more. */
enum { FAMILIES = 25, MS = 40, RUNS = 4, GRID = 40, CONFIRM = 45 };

static long write_run_of(int run, uint64_t *noise)
{
    static const char *const names[RUNS] = {"m/c.jsonl", "m/a.jsonl", "m/d.jsonl", "m/b.jsonl"};
    const struct maker_machine machine = {2, "openblas 0.3.21", "2026-11-29", NULL};
    long samples = 0;
    char text[64];
    FILE *file = maker_open(scratch_path(names[run]));
    (void)snprintf(text, sizeof text, "18c5%d", run);
    maker_run(file, text, &machine, 0.02);
    for (int i = 0; i < FAMILIES * MS; i++) {
        (void)snprintf(text, sizeof text, "%dx%dx256", 1 + i % MS, 64 * (1 + i / MS));
        maker_case(file, i, text, 0);
        for (int round = 0; round < GRID + CONFIRM; round++)
            for (int j = 0; j < 3; j++, samples++)
                maker_sample(file, i, j, round < GRID ? "grid" : "confirm", round, maker_noise(noise, 100 - 5 * j));
        maker_done(file, i, 0);
    }
    (void)fclose(file);
    return samples;
}

static void a_million_samples(void **state)
{
    (void)state;
    uint64_t noise = 1;
    long samples = 0;
    struct timespec begin, end;
    struct rusage usage;
    assert_int_equal(mkdir(scratch_path("m"), 0755), 0);
    for (int run = 0; run < RUNS; run++) samples += write_run_of(run, &noise);
    assert_true(samples >= 1000000);
    clock_gettime(CLOCK_MONOTONIC, &begin);
    struct program run =
        program_run((const char *const[]){"table", "build", scratch_path("m"), "--out", scratch_path("m.routes"), NULL});
    clock_gettime(CLOCK_MONOTONIC, &end);
    double seconds = (double)(end.tv_sec - begin.tv_sec) + 1e-9 * (double)(end.tv_nsec - begin.tv_nsec);
    assert_int_equal(getrusage(RUSAGE_CHILDREN, &usage), 0);
    print_message("%ld samples in %.2f s; at most %ld MiB of memory\n", samples, seconds, usage.ru_maxrss / 1024);
    if (run.exit_code != 0) fail_msg("%s", run.errors);
    assert_non_null(strstr(run.output, "25 families"));
    assert_true(seconds < 5);
    program_fini(&run);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_million_samples)};
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
