/* The bits of every numerics class on a GPU, held against those that are committed (tests/data/gpu_bits.txt): a kernel that
 * computes something else says so here, and its author writes the file anew on purpose. All configurations of a class give them.
 *
 *     test_gpu_bits [FILE]      writes FILE instead of comparing
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <cuda_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/context.h"
#include "backend/row.h"
#include "base/sha256.h"
#include "gpu_sample.h"
#include "gpu_whole.h"
#include "problem/problem.h"

enum { LINES_MOST = 512, DIGITS = 16 };

static const char *const texts[] = {
    "1x512x4096",         "16x256x8192:static", "33x384x2064:fp32",     "100x512x4096:fp16", "300x520x1280",
    "257x512x4096:fp32",  "96x384x3088:precise", "300x256x2048:precise:fp32", "5*40x128x512:tensor", "40x96x1003:fp32",
    "17x256x2048:a=e5m2", "130x144x640:invariant"};

/* "PROBLEM CLASS DIGEST", one a class. */
struct bits {
    char lines[LINES_MOST][192];
    int count;
};

static fp8r_context *context;
static struct bits committed, seen;
static const char *to_write;

static void digest(struct gpu_whole *it, char text[DIGITS + 1])
{
    struct fp8r_sha256 hash;
    uint8_t sum[32], *out = malloc(it->out_bytes);
    assert_non_null(out);
    gpu_check("cudaStreamSynchronize", cudaStreamSynchronize(it->stream));
    gpu_check("cudaMemcpy", cudaMemcpy(out, it->matmul.out.data, it->out_bytes, cudaMemcpyDeviceToHost));
    fp8r_sha256_init(&hash);
    fp8r_sha256_add(&hash, out, it->out_bytes);
    fp8r_sha256_finish(&hash, sum);
    free(out);
    for (int i = 0; i < DIGITS / 2; i++)
        (void)snprintf(text + 2 * i, 3, "%02x", sum[i]);
}

/* The line of this problem and class; NULL where there is none. */
static const char *find(const struct bits *bits, const char *line)
{
    const size_t length = (size_t)(strrchr(line, ' ') - line) + 1;
    for (int i = 0; i < bits->count; i++)
        if (strncmp(bits->lines[i], line, length) == 0) return bits->lines[i];
    return NULL;
}

static void note(const char *label, const char *line)
{
    const char *first = find(&seen, line), *wanted = find(&committed, line);
    if (first && strcmp(first, line) != 0) fail_msg("%s: %s, but another configuration of the class gave %s", label, line, first);
    if (first) return;
    assert_true(seen.count < LINES_MOST);
    (void)snprintf(seen.lines[seen.count++], sizeof seen.lines[0], "%s", line);
    if (!to_write && !wanted) fail_msg("%s: %s is not in tests/data/gpu_bits.txt", label, line);
    if (!to_write && strcmp(wanted, line) != 0) fail_msg("%s: %s, committed is %s", label, line, wanted);
}

static void run_row(struct gpu_whole *it, const char *text, const fp8r_problem *problem, const struct fp8r_row *row)
{
    for (int i = 0; row->backend.configs[i]; i++) {
        char label[160], line[192], sum[DIGITS + 1];
        const char *class = fp8r_row_numerics(row, &context->device, problem, i);
        (void)snprintf(label, sizeof label, "%.60s:%.60s", row->backend.name, row->backend.configs[i]);
        fp8r_plan *plan = class ? gpu_whole_plan(it, context, label) : NULL;
        if (!plan) continue;
        gpu_whole_poison(it, it->matmul.out.data);
        gpu_whole_run(it, plan, 0, it->matmul.a.rows, it->matmul.out.data);
        digest(it, sum);
        (void)snprintf(line, sizeof line, "%.60s %.80s %s", text, class, sum);
        note(label, line);
        fp8r_plan_destroy(plan);
    }
}

static void bits_are_those_of_the_file(void **state)
{
    (void)state;
    for (size_t t = 0; t < sizeof texts / sizeof *texts; t++) {
        struct gpu_whole it;
        struct fp8r_product product;
        gpu_whole_init(&it, texts[t], !strstr(texts[t], "e5m2"), 1000 + t); /* some of its codes are infinite */
        assert_int_equal(fp8r_product_init(&it.matmul, FP8R_DATA_IGNORED, &product), FP8R_OK);
        for (int i = 0; i < context->registry.count; i++) {
            const struct fp8r_row *row = &context->registry.rows[i];
            if (row->fits && !row->backend.library) run_row(&it, texts[t], &product.problem, row);
        }
        gpu_whole_fini(&it);
    }
    assert_true(seen.count > 0);
    print_message("%d classes\n", seen.count);
}

static void read_file(void)
{
    FILE *file = fopen(FP8R_TEST_DATA "/gpu_bits.txt", "r");
    while (file && committed.count < LINES_MOST &&
           fgets(committed.lines[committed.count], sizeof committed.lines[0], file)) {
        char *line = committed.lines[committed.count];
        line[strcspn(line, "\n")] = '\0';
        committed.count += *line && *line != '#';
    }
    if (file) (void)fclose(file);
}

static int write_file(const char *path)
{
    FILE *file = fopen(path, "w");
    if (!file) return EXIT_FAILURE;
    (void)fprintf(file, "# Problem, numerics class, the first digits of SHA-256 over out. Written by test_gpu_bits FILE on a GPU.\n");
    for (int i = 0; i < seen.count; i++)
        (void)fprintf(file, "%s\n", seen.lines[i]);
    return fclose(file);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(bits_are_those_of_the_file)};
    const fp8r_device_facts facts = gpu_facts();
    to_write = argc > 1 ? argv[1] : NULL;
    if (facts.arch != 90) {
        puts("skipped: the committed bits are those of compute capability 9.0");
        return 77;
    }
    read_file();
    context = gpu_routed_context();
    int failed = cmocka_run_group_tests_name("bits on a GPU", tests, NULL, NULL);
    if (to_write && failed == 0) failed = write_file(to_write);
    fp8r_context_destroy(context);
    return failed;
}
