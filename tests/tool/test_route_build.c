/* Building from samples: the same bytes whatever the order of files, what is never pooled, and what is left out.
 * SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "sample_maker.h"
#include "scratch.h"
#include "tune/analysis.h"
#include "tune/route_build.h"

static const struct maker_machine two = {2, "openblas 0.3.21", "2026-11-29", NULL};
static struct fp8r_tool_error failure;
static struct fp8r_build_summary summary; /* of the last one built */

static int reset(void **state)
{
    (void)state;
    failure = (struct fp8r_tool_error){0};
    return 0;
}

static void expect_line(const char *text)
{
    if (!strstr(failure.text, text)) fail_msg("no \"%s\" in \"%s\"", text, failure.text);
}

/* Reads the files and builds; the exit code. *text is the caller's where it is 0. */
static int build(const char *const *paths, size_t count, int64_t wanted, char **text)
{
    struct samples samples = {0};
    struct fp8r_route_file file;
    int machine = -1, code = samples_read_paths(&samples, paths, count, &failure);
    if (code == 0) code = fp8r_build_choose(&samples, wanted, &machine, &failure);
    if (code == 0) code = fp8r_build_routes(&samples, machine, &file, &summary, &failure);
    if (code == 0) {
        assert_int_equal(fp8r_route_file_format(&file, text), FP8R_OK);
        fp8r_route_file_fini(&file);
    }
    samples_fini(&samples);
    return code;
}

static char *built(const char *const *paths, size_t count)
{
    char *text = NULL;
    if (build(paths, count, 0, &text) != 0) fail_msg("%s", failure.text);
    return text;
}

/* ---- One order ---- */

enum { FILES = 5, MS = 4 };
static const int ms[MS] = {1, 8, 64, 512};

/* One case of one run: cpu:two beats the default, cpu:one, at small M, blas:sgemm at large M; in between it is close. */
static void write_case(FILE *file, int number, int m, uint64_t *noise, int rounds, int first_round)
{
    const double times[3] = {100, m < 10 ? 70 : 99, m < 100 ? 200 : 60};
    char problem[64];
    (void)snprintf(problem, sizeof problem, "%dx256x128", m);
    maker_case(file, number, problem, 0);
    for (int round = 0; round < 12; round++)
        for (int i = 0; i < 3; i++)
            maker_sample(file, number, i, "grid", first_round + round, maker_noise(noise, times[i]));
    for (int round = 0; round < rounds; round++)
        for (int i = 0; i < 3; i++)
            if (i != (m < 100 ? 2 : 1))
                maker_sample(file, number, i, "confirm", first_round + round, maker_noise(noise, times[i]));
}

/* Runs whose ids do not ascend with the files' names, which measured some M together; the newest has another date, a
 * newer library and another margin, and finds noisy what an older one did not. */
static void write_runs(const char *names[FILES])
{
    static const char *const ids[FILES] = {"18c5-3", "18c5-1", "18c5-4", "18c5-0", "18c5-2"};
    uint64_t noise = 11;
    for (int i = 0; i < FILES; i++) {
        struct maker_machine machine = two;
        if (i == 2) machine = (struct maker_machine){2, "openblas 0.3.30", "2026-12-01", NULL};
        char name[32];
        (void)snprintf(name, sizeof name, "run-%d.jsonl", i);
        names[i] = scratch_path(name);
        FILE *file = maker_open(names[i]);
        maker_run(file, ids[i], &machine, i == 2 ? 0.03 : 0.02);
        for (int j = 0; j < MS; j++) {
            write_case(file, j, ms[j], &noise, 20, 0);
            if (i == 0) maker_dropped(file, j, 2, "9x behind");
            maker_done(file, j, i == 2 && ms[j] == 64);
        }
        (void)fclose(file);
    }
}

static void next_permutation(size_t order[FILES])
{
    size_t i = FILES - 1, j = FILES - 1, swap;
    while (i > 0 && order[i - 1] > order[i]) i--;
    if (i == 0) return;
    while (order[j] < order[i - 1]) j--;
    swap = order[i - 1], order[i - 1] = order[j], order[j] = swap;
    for (size_t a = i, b = FILES - 1; a < b; a++, b--) swap = order[a], order[a] = order[b], order[b] = swap;
}

static void every_order_gives_the_same_bytes(void **state)
{
    (void)state;
    const char *names[FILES], *permuted[2 * FILES];
    write_runs(names);
    char *wanted = built(names, FILES);
    assert_non_null(strstr(wanted, "openblas 0.3.30"));
    assert_non_null(strstr(wanted, "fact date \"2026-12-01\""));
    assert_non_null(strstr(wanted, "m=1..22 backend=cpu config=two rev=r1"));
    assert_non_null(strstr(wanted, "backend=blas config=sgemm rev=b7"));
    assert_non_null(strstr(wanted, "verdict=tie"));
    size_t order[FILES] = {0, 1, 2, 3, 4};
    for (int n = 0; n < 120; n++, next_permutation(order)) {
        for (int i = 0; i < FILES; i++) permuted[i] = names[order[i]];
        char *text = built(permuted, FILES);
        assert_string_equal(text, wanted);
        free(text);
    }
    for (int i = 0; i < 2 * FILES; i++) permuted[i] = names[i % FILES]; /* each one twice */
    char *text = built(permuted, 2 * FILES);
    assert_string_equal(text, wanted);
    free(text);
    free(wanted);
}

static void write_pairs(FILE *file, const char *id, double margin, const char *phase)
{
    maker_run(file, id, &two, margin);
    maker_case(file, 0, "4x256x128", 0);
    for (int round = 0; round < 60; round++)
        for (int i = 0; i < 2; i++) maker_sample(file, 0, i, phase, round, i ? 100 : 102.5 + 0.001 * (round % 7));
}

/* A gate that allows 3 % does not take back what a tune chose for 2.5, whichever came first. */
static void a_wider_margin_of_a_gate_decides_no_route(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        const char *paths[2] = {scratch_path("tune.jsonl"), scratch_path("gate.jsonl")};
        FILE *file = maker_open(paths[0]);
        write_pairs(file, i ? "b" : "a", 0.02, "grid");
        write_pairs(file, i ? "b" : "a", 0.02, "confirm");
        maker_done(file, 0, 0);
        (void)fclose(file);
        char *alone = built(paths, 1);
        assert_non_null(strstr(alone, "config=two"));
        file = maker_open(paths[1]);
        write_pairs(file, i ? "a" : "b", 0.03, "gate");
        (void)fclose(file);
        char *both = built(paths, 2);
        assert_non_null(strstr(both, "config=two"));
        free(alone);
        free(both);
    }
}

/* Every sample of the problems that count, whoever took it, is one of those that a route file is from; the gate's own
 * problems are counted apart, and those that a tune began and did not finish. */
static void counts_are_of_what_is_in_the_files(void **state)
{
    (void)state;
    static const char *const problems[] = {"4x256x128", "21x256x128", "512x256x128"};
    const char *paths[2] = {scratch_path("tune.jsonl"), scratch_path("gate.jsonl")};
    FILE *file = maker_open(paths[0]);
    uint64_t noise = 3;
    maker_run(file, "a", &two, 0.02);
    write_case(file, 0, 4, &noise, 30, 0);
    maker_dropped(file, 0, 2, "9x behind");
    maker_done(file, 0, 0);
    write_case(file, 1, 64, &noise, 30, 0);
    (void)fclose(file);
    file = maker_open(paths[1]);
    maker_run(file, "b", &two, 0.03);
    for (int i = 0; i < 3; i++) {
        maker_case(file, i, problems[i], 0);
        for (int round = 0; round < 40; round++)
            for (int j = 0; j < 2; j++) maker_sample(file, i, j, "gate", round, 100);
    }
    (void)fclose(file);
    free(built(paths, 2));
    assert_int_equal(summary.runs, 2);
    assert_int_equal(summary.cases, 1);
    assert_int_equal(summary.samples, 3 * 12 + 2 * 30 + 2 * 40);
    assert_int_equal(summary.unfinished, 1);
    assert_int_equal(summary.outside, 2);
}

/* Whoever saw it wrong, after its pairs had won or with a default's own times: no route leads there. */
static void who_was_wrong_is_not_taken(void **state)
{
    (void)state;
    for (int wrong = 0; wrong < 2; wrong++) {
        const char *path = scratch_path("tune.jsonl");
        FILE *file = maker_open(path);
        write_pairs(file, "a", 0.02, "grid");
        if (wrong == 1) write_pairs(file, "a", 0.02, "confirm");
        maker_done(file, 0, 0);
        maker_dropped(file, 0, wrong, "wrong result");
        (void)fclose(file);
        char *text = built(&path, 1);
        assert_non_null(strstr(text, wrong ? "config=one" : "config=two"));
        assert_null(strstr(text, wrong ? "config=two" : "config=one"));
        free(text);
    }
    const char *path = scratch_path("tune.jsonl");
    char *text = NULL;
    FILE *file = maker_open(path);
    write_pairs(file, "a", 0.02, "grid");
    for (int i = 0; i < 2; i++) maker_dropped(file, 0, i, "wrong result");
    maker_done(file, 0, 0);
    (void)fclose(file);
    assert_int_equal(build(&path, 1, 0, &text), FP8R_EXIT_UNMEASURED);
}

/* The order matters where it should: other samples give another file. (Otherwise the test above would prove nothing.) */
static void every_run_counts(void **state)
{
    (void)state;
    const char *names[FILES];
    write_runs(names);
    char *all = built(names, FILES), *fewer = built(names, FILES - 1);
    assert_string_not_equal(all, fewer);
    free(all);
    free(fewer);
}

/* Cases and lines in another order within files: several runs in one file, one file after the other. */
static void one_file_is_as_good_as_many(void **state)
{
    (void)state;
    const char *names[FILES], *joined = scratch_path("joined.jsonl");
    write_runs(names);
    FILE *file = maker_open(joined);
    for (int i = FILES - 1; i >= 0; i--) {
        char line[512];
        FILE *part = fopen(names[i], "r");
        assert_non_null(part);
        while (fgets(line, sizeof line, part)) assert_true(fputs(line, file) >= 0);
        (void)fclose(part);
    }
    (void)fclose(file);
    char *many = built(names, FILES), *one = built(&joined, 1);
    assert_string_equal(many, one);
    free(many);
    free(one);
}

/* A copy that was made while the file grew adds nothing; one that says otherwise is an error. */
static void copies_are_known(void **state)
{
    (void)state;
    const char *paths[2] = {scratch_path("whole.jsonl"), scratch_path("copy.jsonl")};
    uint64_t noise = 5;
    FILE *file = maker_open(paths[0]);
    maker_run(file, "a", &two, 0.02);
    write_case(file, 0, 4, &noise, 30, 0);
    maker_done(file, 0, 0);
    (void)fclose(file);
    noise = 5;
    file = maker_open(paths[1]);
    maker_run(file, "a", &two, 0.02);
    write_case(file, 0, 4, &noise, 10, 0);
    (void)fclose(file);
    char *whole = built(paths, 1), *both = built(paths, 2), *text = NULL;
    assert_string_equal(whole, both);
    free(whole);
    free(both);
    file = fopen(paths[1], "a");
    assert_non_null(file);
    maker_sample(file, 0, 1, "confirm", 15, 3);
    (void)fclose(file);
    assert_int_equal(build(paths, 2, 0, &text), FP8R_EXIT_BAD_DATA);
    expect_line("run a has two times for cpu:two of 4x256x128 in round 15 of phase confirm");
    file = maker_open(paths[1]);
    maker_run(file, "a", &(struct maker_machine){4, "", "d", NULL}, 0.02);
    (void)fclose(file);
    assert_int_equal(build(paths, 2, 0, &text), FP8R_EXIT_BAD_DATA);
    expect_line("another run has this one's");
}

/* ---- Machines ---- */

static const char *write_one(const char *name, const char *id, const struct maker_machine *machine)
{
    const char *path = scratch_path(name);
    uint64_t noise = 3;
    FILE *file = maker_open(path);
    maker_run(file, id, machine, 0.02);
    write_case(file, 0, 4, &noise, 30, 0);
    maker_done(file, 0, 0);
    (void)fclose(file);
    return path;
}

static void machines_are_never_pooled(void **state)
{
    (void)state;
    const char *paths[2] = {write_one("two.jsonl", "a", &two),
                            write_one("four.jsonl", "b", &(struct maker_machine){4, "openblas 0.3.21", "d", NULL})};
    const char *turned[2] = {paths[1], paths[0]};
    char *text = NULL, *other = NULL;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(build(i ? turned : paths, 2, 0, &text), FP8R_EXIT_BAD_DATA);
        expect_line("of 2 machines");
        expect_line("1: cpu features=avx2+fma threads=2");
        expect_line("2: cpu features=avx2+fma threads=4");
    }
    for (int64_t wanted = 1; wanted <= 2; wanted++) {
        assert_int_equal(build(paths, 2, wanted, &text), 0);
        assert_int_equal(build(turned, 2, wanted, &other), 0);
        assert_string_equal(text, other);
        assert_non_null(strstr(text, wanted == 1 ? "threads=2" : "threads=4"));
        free(text);
        free(other);
    }
    assert_int_equal(build(paths, 2, 3, &text), FP8R_EXIT_USAGE);
    expect_line("--machine is 3: these samples are of 2 machines");
}

/* Another library, its absence, or another protocol is another machine; a minor version is not. */
static void what_tells_machines_apart(void **state)
{
    (void)state;
    const struct {
        struct maker_machine machine;
        int code;
    } cases[] = {{{2, "openblas 0.3.30", "e", NULL}, 0},
                 {{2, "openblas 1.0", "e", NULL}, FP8R_EXIT_BAD_DATA},
                 {{2, "", "e", NULL}, FP8R_EXIT_BAD_DATA},
                 {{2, "openblas 0.3.21", "e", "quick"}, FP8R_EXIT_BAD_DATA}};
    const char *paths[2] = {write_one("one.jsonl", "a", &two)};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *text = NULL;
        paths[1] = write_one("other.jsonl", "b", &cases[i].machine);
        assert_int_equal(build(paths, 2, 0, &text), cases[i].code);
        free(text);
    }
}

/* ---- What is left out ---- */

static void unfinished_and_foreign_cases_are_left_out(void **state)
{
    (void)state;
    const char *path = scratch_path("parts.jsonl");
    uint64_t noise = 1;
    char *text = NULL;
    FILE *file = maker_open(path);
    maker_run(file, "a", &two, 0.02);
    write_case(file, 0, 4, &noise, 30, 0); /* not finished */
    maker_case(file, 1, "4x512x128", 0);   /* a gate's */
    for (int round = 0; round < 30; round++)
        for (int i = 0; i < 2; i++) maker_sample(file, 1, i, "gate", round, 10 + i);
    (void)fflush(file);
    assert_int_equal(build(&path, 1, 0, &text), FP8R_EXIT_UNMEASURED);
    maker_done(file, 1, 0);
    (void)fflush(file);
    assert_int_equal(build(&path, 1, 0, &text), FP8R_EXIT_UNMEASURED);
    maker_done(file, 0, 0);
    (void)fclose(file);
    text = built(&path, 1);
    assert_non_null(strstr(text, "entry Mx256x128\n"));
    assert_null(strstr(text, "Mx512x128"));
    free(text);
}

/* Two pitches are one family and one M: a point, not two. */
static void problems_of_one_key_are_one_point(void **state)
{
    (void)state;
    const char *path = scratch_path("pitch.jsonl");
    static const char *const problems[] = {"4x256x128:lda=160", "4x256x128:lda=144", "9x256x128:lda=160"};
    FILE *file = maker_open(path);
    maker_run(file, "a", &two, 0.02);
    for (int j = 0; j < 3; j++) {
        maker_case(file, j, problems[j], 0);
        for (int round = 0; round < 10; round++)
            for (int i = 0; i < 3; i++) maker_sample(file, j, i, "grid", round, 10 + i + 5 * j);
        maker_done(file, j, 0);
    }
    (void)fclose(file);
    char *text = built(&path, 1);
    /* at M=4 the one of pitch 144: 15 us; at 9: 20 us */
    assert_non_null(strstr(text, "entry Mx256x128:lda=pad\n  m=4..9 backend=cpu config=one rev=r1 median_us=17.3205 "));
    free(text);
}

/* A default that could not run: the fastest is all there is, and no gain is claimed. */
static void without_a_default_the_fastest_is_taken(void **state)
{
    (void)state;
    const char *path = scratch_path("refused.jsonl");
    FILE *file = maker_open(path);
    maker_run(file, "a", &two, 0.02);
    maker_case(file, 0, "4x256x128", 0);
    maker_dropped(file, 0, 0, "refused: too large");
    for (int round = 0; round < 10; round++)
        for (int i = 1; i < 3; i++) maker_sample(file, 0, i, "grid", round, 10 - i);
    maker_done(file, 0, 0);
    (void)fclose(file);
    char *text = built(&path, 1);
    assert_non_null(strstr(text, "m=4..4 backend=blas config=sgemm rev=b7 median_us=8 runner_up=cpu:two runner_up_us=9 "
                                 "verdict=tie\n"));
    free(text);
}

/* A folder stands for its *.jsonl; an empty one holds nothing. */
static void folders_stand_for_their_files(void **state)
{
    (void)state;
    const char *names[FILES], *folder = scratch_path("folder");
    char *text = NULL, *many, *one;
    assert_int_equal(mkdir(folder, 0755), 0);
    assert_int_equal(build(&folder, 1, 0, &text), FP8R_EXIT_UNMEASURED);
    write_runs(names);
    for (int i = 0; i < FILES; i++) {
        char path[64];
        (void)snprintf(path, sizeof path, "folder/%c.jsonl", 'a' + (i + 2) % FILES);
        assert_int_equal(link(names[i], scratch_path(path)), 0);
    }
    scratch_write(scratch_path("folder/notes.txt"), "{", 1);
    many = built(names, FILES);
    one = built(&folder, 1);
    assert_string_equal(many, one);
    free(many);
    free(one);
    folder = scratch_path("nothing");
    assert_int_equal(build(&folder, 1, 0, &text), FP8R_EXIT_BAD_DATA);
    expect_line("cannot be opened");
}

/* Pairs are found in whatever order both lists are, and in long ones that share nothing without comparing all with all. */
static void pairs_are_found(void **state)
{
    (void)state;
    enum { COUNT = 200000 };
    struct sample *a = calloc(COUNT, sizeof *a), *b = calloc(COUNT, sizeof *b);
    double *a_us = calloc(COUNT, sizeof *a_us), *b_us = calloc(COUNT, sizeof *b_us);
    assert_true(a && b && a_us && b_us);
    for (int i = 0; i < COUNT; i++) {
        a[i] = (struct sample){.us = i, .run = 0, .round = 2 * i};
        b[i] = (struct sample){.us = i, .run = 0, .round = 2 * i + 1};
    }
    const struct sample_candidate one = {.samples = a, .count = COUNT}, other = {.samples = b, .count = COUNT};
    assert_int_equal(sample_pairs(&one, &other, SAMPLE_PHASES, a_us, b_us, COUNT), 0);
    for (int i = 0; i < 4; i++) b[i].round = 2 * (3 - i); /* 6, 4, 2, 0 */
    const struct sample_candidate few = {.samples = a, .count = 4}, turned = {.samples = b, .count = 4};
    assert_int_equal(sample_pairs(&few, &turned, SAMPLE_PHASES, a_us, b_us, COUNT), 4);
    for (int i = 0; i < 4; i++) assert_true(a_us[i] == i && b_us[i] == 3 - i);
    assert_int_equal(sample_pairs(&few, &turned, SAMPLE_GRID, a_us, b_us, 3), 3);
    assert_int_equal(sample_pairs(&few, &turned, SAMPLE_CONFIRM, a_us, b_us, COUNT), 0);
    free(a);
    free(b);
    free(a_us);
    free(b_us);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(every_order_gives_the_same_bytes, reset),
        cmocka_unit_test_setup(every_run_counts, reset),
        cmocka_unit_test_setup(who_was_wrong_is_not_taken, reset),
        cmocka_unit_test_setup(a_wider_margin_of_a_gate_decides_no_route, reset),
        cmocka_unit_test_setup(counts_are_of_what_is_in_the_files, reset),
        cmocka_unit_test_setup(one_file_is_as_good_as_many, reset),
        cmocka_unit_test_setup(copies_are_known, reset),
        cmocka_unit_test_setup(machines_are_never_pooled, reset),
        cmocka_unit_test_setup(what_tells_machines_apart, reset),
        cmocka_unit_test_setup(unfinished_and_foreign_cases_are_left_out, reset),
        cmocka_unit_test_setup(problems_of_one_key_are_one_point, reset),
        cmocka_unit_test_setup(without_a_default_the_fastest_is_taken, reset),
        cmocka_unit_test_setup(folders_stand_for_their_files, reset),
        cmocka_unit_test_setup(pairs_are_found, reset),
    };
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
