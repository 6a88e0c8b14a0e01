/* Samples: what is written reads back, torn and foreign lines, pairs, one writer a file.
 * SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/child.h"
#include "tune/samples.h"

static char path[] = "/tmp/fp8route-samples-XXXXXX";
static struct fp8r_tool_error failure;

static struct fp8r_route_file machine(int32_t threads)
{
    return (struct fp8r_route_file){
        .identity = {.kind = FP8R_DEVICE_CPU, .threads = threads, .last_level_bytes = 1 << 20}, .is_cold = true};
}

static struct sample_candidate candidates[2] = {{.name = "cpu:one", .rev = "r1"}, {.name = "blas:sgemm", .rev = "r2"}};
static struct sample_case one_case = {
    .problem = "1x64x32", .weight = 1, .candidates = candidates, .count = 2, .fallback = 1};

/* A run with `rounds` rounds of one case. */
static void write_run(const struct fp8r_route_file *header, int rounds, bool noisy)
{
    struct sample_writer *writer;
    int number;
    assert_int_equal(sample_writer_open(path, header, 7, 0.02, &writer, NULL, &failure), FP8R_EXIT_GOOD);
    assert_int_equal(sample_writer_case(writer, &one_case, &number, &failure), FP8R_EXIT_GOOD);
    for (int round = 0; round < rounds; round++)
        for (int i = 0; i < 2; i++)
            assert_int_equal(sample_writer_sample(writer, number, i,
                                                  &(struct sample){.us = 10.5 + round + 0.000001 * i,
                                                                   .round = round,
                                                                   .phase = SAMPLE_CONFIRM,
                                                                   .mhz = 2000,
                                                                   .watts = (int16_t)(i == 1 ? 350 : 0),
                                                                   .celsius = (int16_t)(i == 1 ? 41 : 0)},
                                                  &failure),
                             FP8R_EXIT_GOOD);
    assert_int_equal(sample_writer_dropped(writer, number, 1, "3.1x behind", &failure), FP8R_EXIT_GOOD);
    assert_int_equal(sample_writer_done(writer, number, noisy, &failure), FP8R_EXIT_GOOD);
    assert_int_equal(sample_writer_close(writer, &failure), FP8R_EXIT_GOOD);
}

static void append(const char *text)
{
    FILE *file = fopen(path, "a");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static int empty(void **state)
{
    (void)state;
    return truncate(path, 0);
}

static void reads_back(void **state)
{
    (void)state;
    struct samples samples = {0};
    struct fp8r_route_file two = machine(2);
    double a[8], b[8];
    write_run(&two, 3, false);
    write_run(&two, 2, true);
    assert_int_equal(samples_read(&samples, path, &failure), FP8R_EXIT_GOOD);
    assert_int_equal(samples.machine_count, 1);
    assert_int_equal(samples.run_count, 2);
    for (int i = 0; i < 2; i++) {
        const struct sample *sample = &samples.cases[0].candidates[i].samples[0];
        assert_int_equal(sample->mhz, 2000);
        assert_int_equal(sample->watts, i == 1 ? 350 : 0);
        assert_int_equal(sample->celsius, i == 1 ? 41 : 0);
    }
    assert_int_equal(samples.case_count, 1);
    const struct sample_case *it = samples_find(&samples, 0, "1x64x32");
    assert_non_null(it);
    assert_int_equal(it->candidates[0].count, 5);
    assert_true(it->candidates[1].samples[2].us == 12.500001);
    assert_string_equal(it->candidates[1].dropped, "3.1x behind");
    assert_true(it->is_done && it->is_noisy);
    assert_int_equal(it->m, 1);
    assert_int_equal(sample_pairs(&it->candidates[0], &it->candidates[1], SAMPLE_CONFIRM, a, b, 8), 5);
    assert_true(a[3] == 10.5 && b[3] == 10.500001);
    assert_int_equal(sample_pairs(&it->candidates[0], &it->candidates[1], SAMPLE_GRID, a, b, 8), 0);
    samples_fini(&samples);
}

/* Up to which M the default is the same: a file need not say it, and of two runs the one that says less holds. */
static void the_reach_of_the_default_reads_back(void **state)
{
    (void)state;
    static const int64_t said[][3] = {{0, 0, 0}, {24, 0, 24}, {0, 24, 24}, {24, 30, 24}, {30, 24, 24}};
    struct fp8r_route_file two = machine(2);
    for (size_t i = 0; i < sizeof said / sizeof *said; i++) {
        struct samples samples = {0};
        assert_int_equal(truncate(path, 0), 0);
        for (int run = 0; run < 2; run++) {
            one_case.default_last = said[i][run];
            write_run(&two, 1, false);
        }
        one_case.default_last = 0;
        assert_int_equal(samples_read(&samples, path, &failure), FP8R_EXIT_GOOD);
        assert_int_equal(samples.cases[0].default_last, said[i][2]);
        samples_fini(&samples);
    }
}

static void machines_stay_apart(void **state)
{
    (void)state;
    struct samples samples = {0};
    struct fp8r_route_file two = machine(2), four = machine(4);
    write_run(&two, 1, false);
    write_run(&four, 1, false);
    assert_int_equal(samples_read(&samples, path, &failure), FP8R_EXIT_GOOD);
    assert_int_equal(samples.machine_count, 2);
    assert_int_equal(samples.case_count, 2);
    samples_fini(&samples);
}

/* Where half of the calls stood behind another kernel, times are others. A file that does not say so is of before. */
static void protocols_stay_apart(void **state)
{
    (void)state;
    struct samples samples = {0};
    struct fp8r_route_file itself = machine(2), both = machine(2);
    both.is_behind_both = true;
    write_run(&itself, 1, false);
    write_run(&both, 2, false);
    write_run(&itself, 1, false);
    assert_int_equal(samples_read(&samples, path, &failure), FP8R_EXIT_GOOD);
    assert_int_equal(samples.machine_count, 2);
    assert_false(samples.machines[0].is_behind_both);
    assert_true(samples.machines[1].is_behind_both);
    assert_int_equal(samples.case_count, 2);
    assert_int_equal(samples.cases[0].candidates[0].count, 2);
    assert_int_equal(samples.cases[1].candidates[0].count, 2);
    samples_fini(&samples);
}

/* Whatever byte a killed writer stopped at: the whole lines before it are read, and the next writer goes on. */
static void torn_line_is_cut(void **state)
{
    (void)state;
    static const char torn[] = "{\"record\":\"sample\",\"case\":0,\"candidate\":0,\"phase\":\"grid\",\"round\":0,\"us\":1.0";
    struct fp8r_route_file two = machine(2);
    for (size_t length = 1; length < sizeof torn; length++) {
        struct samples samples = {0};
        char part[sizeof torn];
        snprintf(part, length + 1, "%s", torn);
        assert_int_equal(truncate(path, 0), 0);
        write_run(&two, 2, false);
        append(part);
        assert_int_equal(samples_read(&samples, path, &failure), FP8R_EXIT_GOOD);
        assert_int_equal(samples.cases[0].candidates[0].count, 2);
        samples_fini(&samples);
        write_run(&two, 1, false);
        assert_int_equal(samples_read(&samples, path, &failure), FP8R_EXIT_GOOD);
        assert_int_equal(samples.cases[0].candidates[0].count, 3);
        samples_fini(&samples);
    }
}

#define CASE(problem, weight, name, rev)                                                                                    \
    "{\"record\":\"case\",\"case\":1,\"problem\":\"" problem "\",\"weight\":" weight                                         \
    ",\"default\":0,\"candidates\":[{\"name\":\"" name "\",\"rev\":\"" rev "\"}]}\n"
#define LAST(last)                                                                                                         \
    "{\"record\":\"case\",\"case\":1,\"problem\":\"7x2x3\",\"weight\":1.0,\"default\":0,\"candidates\":[{\"name\":\"a:b\",\"rev\":\"r\"}]"  \
    ",\"default_last\":" last "}\n"
#define RUN(margin)                                                                                                        \
    "{\"record\":\"run\",\"schema\":\"fp8route.samples/1\",\"run\":\"x\",\"seed\":1,\"margin\":" margin                      \
    ",\"machine\":\"\"}\n"

#define SAMPLE(us)                                                                                                         \
    "{\"record\":\"sample\",\"case\":0,\"candidate\":0,\"phase\":\"grid\",\"round\":9,\"us\":" us ",\"mhz\":0}\n"

/* The limits themselves are good. */
static void extremes_are_read(void **state)
{
    (void)state;
    static const char *const good[] = {
        CASE("1x1x1", "1e18", "a:b", "r"), CASE("1x1x1", "0.001", "A.b=c-d_9:0", ""),
        LAST("7"), LAST("9223372036854775807"), SAMPLE("0.001000"), SAMPLE("400000000000.000000")};
    struct fp8r_route_file two = machine(2);
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        struct samples samples = {0};
        assert_int_equal(truncate(path, 0), 0);
        write_run(&two, 1, false);
        append(good[i]);
        assert_int_equal(samples_read(&samples, path, &failure), FP8R_EXIT_GOOD);
        samples_fini(&samples);
    }
}

static void bad_lines_are_named(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "\n", "nonsense\n", "[]\n", "{\"record\":\"other\"}\n", "{\"record\":\"done\",\"case\":9,\"noisy\":false}\n",
        "{\"record\":\"run\",\"schema\":\"fp8route.samples/2\",\"run\":\"x\",\"seed\":1,\"margin\":0.02,\"machine\":\"\"}\n",
        "{\"record\":\"sample\",\"case\":0,\"candidate\":2,\"phase\":\"grid\",\"round\":0,\"us\":1.000000,\"mhz\":0}\n",
        "{\"record\":\"sample\",\"case\":0,\"candidate\":0,\"phase\":\"grid\",\"round\":0,\"us\":1.000000,\"mhz\":0,\"watts\":1}\n",
        "{\"record\":\"sample\",\"case\":0,\"candidate\":0,\"phase\":\"grid\",\"round\":0,\"us\":0.000000,\"mhz\":0}\n",
        "{\"record\":\"sample\",\"case\":0,\"candidate\":0,\"phase\":\"grid\",\"round\":0,\"us\":nan,\"mhz\":0}\n",
        "{\"record\":\"sample\",\"case\":0,\"candidate\":0,\"phase\":\"odd\",\"round\":0,\"us\":1.000000,\"mhz\":0}\n",
        "{\"record\":\"case\",\"case\":1,\"problem\":\"1x2\",\"weight\":1.0,\"default\":0,\"candidates\":[{\"name\":\"a:b\",\"rev\":\"\"}]}\n",
        "{\"record\":\"case\",\"case\":1,\"problem\":\"1x2x3\",\"weight\":1.0,\"default\":1,\"candidates\":[{\"name\":\"a:b\",\"rev\":\"\"}]}\n",
        /* what nobody measures, and no route file could hold */
        SAMPLE("0.000999"), SAMPLE("999999999999.000000"),
        CASE("1x2x3", "0", "a:b", "r"), CASE("1x2x3", "-1", "a:b", "r"), CASE("1x2x3", "1e19", "a:b", "r"),
        CASE("1x2x3", "1e308", "a:b", "r"), CASE("0x0x0", "1", "a:b", "r"), CASE("0x1x1", "1", "a:b", "r"),
        CASE("1x0x1", "1", "a:b", "r"), CASE("1x1x0", "1", "a:b", "r"), CASE("0*1x1x1", "1", "a:b", "r"),
        CASE("1x2x3", "1", "", "r"), CASE("1x2x3", "1", "a", "r"), CASE("1x2x3", "1", "a:", "r"),
        CASE("1x2x3", "1", ":b", "r"), CASE("1x2x3", "1", "a:b:c", "r"), CASE("1x2x3", "1", "a b:c", "r"),
        CASE("1x2x3", "1", "<script>:b", "r"), CASE("1x2x3", "1", "a:b\\u0007", "r"), CASE("1x2x3", "1", "a:\xC3\xA9", "r"),
        CASE("1x2x3", "1", "a:b", "r\\u001b"),
        LAST("6"), LAST("-1"), LAST("7.5"), LAST("\"7\""), LAST("null"),
        RUN("-1"), RUN("0"), RUN("1"), RUN("5"), RUN("1e308"),
    };
    struct fp8r_route_file two = machine(2);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct samples samples = {0};
        assert_int_equal(truncate(path, 0), 0);
        write_run(&two, 1, false);
        append(bad[i]);
        assert_int_equal(samples_read(&samples, path, &failure), FP8R_EXIT_BAD_DATA);
        assert_non_null(strstr(failure.text, "line 7"));
        samples_fini(&samples);
    }
}

static void one_writer_a_file(void **state)
{
    (void)state;
    struct fp8r_route_file two = machine(2);
    struct sample_writer *writer;
    assert_int_equal(sample_writer_open(path, &two, 7, 0.02, &writer, NULL, &failure), FP8R_EXIT_GOOD);
    pid_t child = child_begin(60);
    if (child == 0) {
        struct sample_writer *other;
        _exit(sample_writer_open(path, &two, 7, 0.02, &other, NULL, &failure) == FP8R_EXIT_BAD_DATA ? 0 : 1);
    }
    assert_int_equal(child_end(child), 0);
    assert_int_equal(sample_writer_close(writer, &failure), FP8R_EXIT_GOOD);
}

int main(void)
{
    int file = mkstemp(path);
    if (file < 0)
        return 1;
    close(file);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(reads_back, empty),       cmocka_unit_test_setup(machines_stay_apart, empty),
        cmocka_unit_test_setup(the_reach_of_the_default_reads_back, empty),
        cmocka_unit_test_setup(protocols_stay_apart, empty),
        cmocka_unit_test_setup(torn_line_is_cut, empty), cmocka_unit_test_setup(bad_lines_are_named, empty),
        cmocka_unit_test_setup(one_writer_a_file, empty), cmocka_unit_test_setup(extremes_are_read, empty),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    unlink(path);
    return failed;
}
