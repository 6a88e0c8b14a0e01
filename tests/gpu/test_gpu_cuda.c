/* The portable CUDA row on a GPU: every configuration over the case lists, against the oracle, element by
 * element; bits of a numerics class; NaN and infinity; offsets and counts that need 64 bits.
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

#include "gpu_sample.h"
#include "support/gpu_memory.h"

extern const fp8r_backend fp8r_backend_cuda;

static fp8r_device_facts facts;
static long runs;

static bool takes(const fp8r_problem *problem, int config)
{
    fp8r_reason reason;
    return fp8r_backend_cuda.supports(NULL, &facts, problem, config, &reason);
}

static void judge(struct gpu_sample *gpu, int config, int64_t m, const char *name)
{
    char line[256];
    gpu_sample_run(gpu, &fp8r_backend_cuda, &facts, config, m);
    if (!sample_judge(gpu->sample, m, line, sizeof line))
        fail_msg("%s on %s, %lld rows: %s", name, fp8r_backend_cuda.configs[config], (long long)m, line);
    runs++;
}

/* All configurations, at M and at some smaller m; equal classes must give equal bytes. */
static void check_sample(struct sample *sample, const char *name)
{
    struct gpu_sample gpu;
    const struct sample_block *out = &sample->blocks[SAMPLE_OUT];
    unsigned char *first = malloc(out->size_bytes + 1);
    const char *class = NULL;
    assert_non_null(first);
    gpu_sample_init(&gpu, sample);
    for (int config = 0; fp8r_backend_cuda.configs[config]; config++) {
        if (!takes(&gpu.problem, config)) continue;
        if (gpu.problem.m > 1) judge(&gpu, config, gpu.problem.m / 2, name);
        judge(&gpu, config, gpu.problem.m, name);
        const char *its = fp8r_backend_cuda.numerics(NULL, &facts, &gpu.problem, config);
        if (class && strcmp(class, its) == 0 && memcmp(first, out->memory, out->size_bytes) != 0)
            fail_msg("%s: %s has other bits than the class's first configuration", name,
                     fp8r_backend_cuda.configs[config]);
        if (!class) memcpy(first, out->memory, out->size_bytes);
        class = class ? class : its;
    }
    assert_non_null(class);
    gpu_sample_fini(&gpu);
    free(first);
}

static void check(const char *text, enum sample_data data)
{
    struct sample sample;
    if (!sample_init(&sample, text, data, 7)) fail_msg("%s: cannot be made", text);
    const fp8r_matmul *it = &sample.matmul;
    const bool multiplies = it->out.batch > 0 && it->out.rows > 0 && it->out.cols > 0 && it->a.cols > 0;
    if (multiplies && (it->a.dtype == FP8R_DTYPE_E4M3 || it->a.dtype == FP8R_DTYPE_E5M2))
        check_sample(&sample, text);
    sample_fini(&sample);
}

static void run_list(const char *path)
{
    char line[256];
    const long before = runs;
    FILE *file = fopen(path, "r");
    if (!file) fail_msg("cannot open %s", path);
    while (fgets(line, sizeof line, file)) {
        line[strcspn(line, "# \n")] = '\0';
        if (!line[0]) continue;
        check(line, SAMPLE_EXACT);
        check(line, SAMPLE_RANDOM);
    }
    (void)fclose(file);
    assert_true(runs - before > 10);
    print_message("%s: %ld products\n", path, runs - before);
}

static void lists(void **state)
{
    (void)state;
    run_list(FP8R_SHAPES "/odd.txt");
    run_list(FP8R_SHAPES "/layouts.txt");
    run_list(FP8R_SHAPES "/types.txt");
}

/* Every way to load with every other, at sizes with whole and ragged tiles; every pairing of types. */
static void every_load_and_type(void **state)
{
    static const char *const layouts[] = {"",           ":align=4",       ":align=1",       ":ta",
                                          ":tb",        ":ta:tb",         ":ta:tb:align=4", ":ta:tb:align=1",
                                          ":ia=2:ib=3", ":lda=0",         ":ldb=0",         ":to",
                                          ":io=3",      ":ta:align=2:to", ":tb:lda=1003"};
    static const char *const shapes[] = {"130x70x100", "5x130x1003", "256x256x192", "2*70x33x65"};
    static const char *const types[] = {":fp32:bias=fp16", ":fp16:a=e5m2:bias=bf16:sa=tensor",
                                        ":bias=fp32:sb=tensor:precise", ":tensor:a=e5m2:fp32",
                                        ":fp16:sb=batch:sa=batch:bias=fp16"};
    char text[256];
    (void)state;
    for (size_t l = 0; l < sizeof layouts / sizeof *layouts; l++)
        for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
            for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
                fp8r_matmul matmul;
                (void)snprintf(text, sizeof text, "%s%s%s", shapes[s], layouts[l], types[t]);
                if (fp8r_matmul_parse(text, &matmul) == FP8R_OK) /* some pitches are for some shapes only */
                    check(text, (l + s + t) % 2 ? SAMPLE_EXACT : SAMPLE_RANDOM);
            }
}

static void long_sums(void **state)
{
    (void)state;
    check("33x100x16384", SAMPLE_RANDOM);
    check("9x64x28672:precise:fp32", SAMPLE_RANDOM);
    check("200x300x3420:bias", SAMPLE_RANDOM);
    check("384x520x4096", SAMPLE_EXACT);
    check("130x140x8192:ta:tb:fp32", SAMPLE_RANDOM);
}

/* The rows of a product have the bits they have in a larger one. */
static void rows_do_not_depend_on_m(void **state)
{
    static const int64_t some[] = {1, 2, 7, 8, 9, 16, 63, 64, 65, 127, 128, 129, 200, 299};
    struct sample sample;
    struct gpu_sample gpu;
    (void)state;
    assert_true(sample_init(&sample, "300x257x1008:fp32", SAMPLE_RANDOM, 3));
    gpu_sample_init(&gpu, &sample);
    const struct sample_block *out = &sample.blocks[SAMPLE_OUT];
    unsigned char *whole = malloc(out->size_bytes);
    assert_non_null(whole);
    for (int config = 0; fp8r_backend_cuda.configs[config]; config++) {
        judge(&gpu, config, 300, "300x257x1008");
        memcpy(whole, out->memory, out->size_bytes);
        for (size_t i = 0; i < sizeof some / sizeof *some; i++) {
            gpu_sample_run(&gpu, &fp8r_backend_cuda, &facts, config, some[i]);
            assert_memory_equal(whole + out->offset_bytes, out->memory + out->offset_bytes,
                                (size_t)some[i] * 257 * 4);
        }
    }
    free(whole);
    gpu_sample_fini(&gpu);
    sample_fini(&sample);
}

/* A code in a's row 3 and one in b's column 5, at an element that all layouts below have. */
static void check_planted(const char *text, uint8_t code_a, uint8_t code_b)
{
    struct sample sample;
    if (!sample_init(&sample, text, SAMPLE_EXACT, 5)) fail_msg("%s: cannot be made", text);
    const fp8r_matrix *a = &sample.matmul.a, *b = &sample.matmul.b;
    ((uint8_t *)a->data)[3 * a->row_stride + 17 * a->col_stride] = code_a;
    ((uint8_t *)b->data)[40 * b->row_stride + 5 * b->col_stride] = code_b;
    assert_true(sample_solve(&sample));
    check_sample(&sample, text);
    sample_fini(&sample);
}

static void nan_and_infinity(void **state)
{
    static const char *const layouts[] = {"", ":ta:tb", ":align=1", ":ta:tb:align=1", ":align=4"};
    char text[128];
    (void)state;
    for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++) {
        (void)snprintf(text, sizeof text, "70x80x96:fp32:bias=fp32%s", layouts[i]);
        check_planted(text, 0x7F, 0xFF);
        check_planted(text, 0xFF, 0x7E);
        (void)snprintf(text, sizeof text, "70x80x96:fp32:a=e5m2%s", layouts[i]);
        check_planted(text, 0x7C, 0x7F);
        check_planted(text, 0xFD, 0x80);
    }
}

/* Offsets of more than 32 bits in a and b. */
static void far_inputs(void **state)
{
    (void)state;
    check("1100x24x72:lda=4194304", SAMPLE_RANDOM);
    check("24x1100x72:ldb=4194304", SAMPLE_RANDOM);
}

/* And in out: the same rows as when it is packed. */
static void far_out(void **state)
{
    enum { ROWS = 1100, COLS = 24, PITCH = 2097152 };
    static uint16_t got[ROWS][COLS];
    struct sample sample;
    struct gpu_sample gpu;
    void *packed;
    (void)state;
    assert_true(sample_init(&sample, "1100x24x80", SAMPLE_RANDOM, 9));
    gpu_sample_init(&gpu, &sample);
    packed = gpu.memory[SAMPLE_OUT];
    for (int config = 0; fp8r_backend_cuda.configs[config]; config++) {
        const unsigned char *wanted =
            sample.blocks[SAMPLE_OUT].memory + sample.blocks[SAMPLE_OUT].offset_bytes;
        judge(&gpu, config, ROWS, "1100x24x80");
        gpu_check("cudaMalloc", cudaMalloc(&gpu.memory[SAMPLE_OUT], (size_t)ROWS * PITCH * 2 + 4096));
        fp8r_problem far = gpu.problem;
        far.out.row_stride = PITCH;
        const fp8r_pointers pointers = {.struct_size = sizeof pointers,
                                        .m = ROWS,
                                        .a = gpu.memory[SAMPLE_A],
                                        .b = gpu.memory[SAMPLE_B],
                                        .out = gpu.memory[SAMPLE_OUT],
                                        .scale_a = gpu.memory[SAMPLE_SCALE_A],
                                        .scale_b = gpu.memory[SAMPLE_SCALE_B]};
        assert_int_equal(fp8r_backend_cuda.run(NULL, NULL, NULL, &far, config, &pointers, NULL, 0, NULL),
                         FP8R_OK);
        gpu_check("cudaMemcpy2D", cudaMemcpy2D(got, sizeof *got, gpu.memory[SAMPLE_OUT], (size_t)PITCH * 2,
                                               sizeof *got, ROWS, cudaMemcpyDeviceToHost));
        assert_memory_equal(got, wanted, sizeof got);
        gpu_check("cudaFree", cudaFree(gpu.memory[SAMPLE_OUT]));
        gpu.memory[SAMPLE_OUT] = packed;
    }
    gpu_sample_fini(&gpu);
    sample_fini(&sample);
}

/* More rows than 32 bits count: all of them are one row of a. */
static void many_rows(void **state)
{
    const int64_t m = ((int64_t)1 << 31) + 5, n = 1, k = 16;
    const fp8r_matmul matmul = {.struct_size = sizeof matmul,
                                .a = {NULL, FP8R_DTYPE_E4M3, 0, 1, m, k, 0, 0, 1},
                                .b = {NULL, FP8R_DTYPE_E4M3, 0, 1, k, n, 0, 1, k},
                                .out = {NULL, FP8R_DTYPE_BF16, 0, 1, m, n, 0, n, 1}};
    struct fp8r_product product;
    void *codes, *out;
    (void)state;
    assert_int_equal(fp8r_product_init(&matmul, FP8R_DATA_IGNORED, &product), FP8R_OK);
    uint16_t *got = malloc((size_t)m * 2);
    assert_non_null(got);
    gpu_check("cudaMalloc", cudaMalloc(&codes, 16));
    gpu_check("cudaMalloc", cudaMalloc(&out, (size_t)m * 2));
    gpu_check("gpu_memory_set", gpu_memory_set(codes, 0x38, 16)); /* 1.0: every sum is 16 */
    for (int config = 0; fp8r_backend_cuda.configs[config]; config++) {
        const fp8r_pointers pointers = {
            .struct_size = sizeof pointers, .m = m, .a = codes, .b = codes, .out = out};
        assert_int_equal(fp8r_backend_cuda.prepare(NULL, NULL, &facts, &product.problem, config, NULL),
                         FP8R_OK);
        gpu_check("gpu_memory_set", gpu_memory_set(out, 0xFF, (size_t)m * 2));
        assert_int_equal(
            fp8r_backend_cuda.run(NULL, NULL, NULL, &product.problem, config, &pointers, NULL, 0, NULL),
            FP8R_OK);
        gpu_check("cudaMemcpy", cudaMemcpy(got, out, (size_t)m * 2, cudaMemcpyDeviceToHost));
        int64_t wrong = 0;
        for (int64_t i = 0; i < m; i++)
            wrong += got[i] != 0x4180; /* 16 as bf16 */
        assert_int_equal(wrong, 0);
    }
    gpu_check("cudaFree", cudaFree(codes));
    gpu_check("cudaFree", cudaFree(out));
    free(got);
}

/* An argument selects tests by name, with * and ?. */
int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nan_and_infinity),
        cmocka_unit_test(every_load_and_type),
        cmocka_unit_test(lists),
        cmocka_unit_test(long_sums),
        cmocka_unit_test(rows_do_not_depend_on_m),
        cmocka_unit_test(far_inputs),
        cmocka_unit_test(far_out),
        cmocka_unit_test(many_rows),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    facts = gpu_facts();
    const int failed = cmocka_run_group_tests_name("gpu cuda", tests, NULL, NULL);
    printf("%ld products\n", runs);
    return failed;
}
