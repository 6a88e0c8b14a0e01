/* Field reports D and H3 (docs/field-reports.md), the checks of fast accumulation and what promoted sums promise, on every row of
 * a GPU: NaN codes, overflow, the largest and smallest codes, long sums, stale memory, one rounding; and three planted faults,
 * which must be seen.
 * SPDX-License-Identifier: Apache-2.0 */
#include "gpu_rows.h"
#include "gpu_sample.h"
#include "support/gpu_memory.h"

extern const fp8r_backend fp8r_backend_sm90;

static struct gpu_rows rows;
static fp8r_device_facts facts;

static void make(struct sample *sample, const char *text, enum sample_data data)
{
    if (!sample_init(sample, text, data, 9)) fail_msg("%s: no sample", text);
}

static void solve_and_run(struct sample *sample, const char *name)
{
    assert_true(sample_solve(sample));
    gpu_rows_run(&rows, sample, name);
}

/* Fills a packed 8-bit operand whose K is contiguous. */
static void fill(fp8r_matrix *matrix, int64_t lines, int64_t k, uint8_t (*code)(int64_t line, int64_t at))
{
    for (int64_t line = 0; line < lines; line++)
        for (int64_t at = 0; at < k; at++)
            ((uint8_t *)matrix->data)[line * k + at] = code(line, at);
}

static uint8_t by_line(int64_t line, int64_t at)
{
    return at == 0 ? (uint8_t)line : 0;
}

static uint8_t one(int64_t line, int64_t at)
{
    (void)line, (void)at;
    return 0x38;
}

/* Each of the 256 codes times 1, as a row of a and as a column of b. K is 16, so that all rows take it. */
static void d2_all_codes_mean_the_same_everywhere(void **state)
{
    static const char *const texts[] = {"256x16x16:fp32:sa=none:sb=none", "256x16x16:a=e5m2:fp32:sa=none:sb=none",
                                        "16x256x16:fp32:sa=none:sb=none"};
    (void)state;
    for (int i = 0; i < 3; i++) {
        struct sample sample;
        make(&sample, texts[i], SAMPLE_EXACT);
        fill(&sample.matmul.a, sample.matmul.a.rows, 16, i < 2 ? by_line : one);
        fill(&sample.matmul.b, sample.matmul.b.cols, 16, i < 2 ? one : by_line);
        solve_and_run(&sample, texts[i]);
    }
}

static void d2_nan_stays_in_its_row_and_column(void **state)
{
    static const char *const texts[] = {"1x32x48", "5x48x64:fp32", "40x144x144:fp16:bias", "300x264x272"};
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        for (int where = 0; where < 2; where++) {
            struct sample sample;
            make(&sample, texts[i], SAMPLE_EXACT);
            const int64_t k = sample.matmul.a.cols, line = where ? 13 : sample.matmul.a.rows / 2;
            ((uint8_t *)(where ? &sample.matmul.b : &sample.matmul.a)->data)[line * k + k - 1] = 0xFF;
            solve_and_run(&sample, texts[i]);
        }
}

/* Dot products far beyond fp16 whose scaled values fit, and some that do not. */
static void d6_large_sums_with_small_scales(void **state)
{
    static const char *const outs[] = {"fp16", "bf16", "fp32"};
    (void)state;
    for (int out = 0; out < 3; out++)
        for (int scaled = 0; scaled < 2; scaled++) {
            struct sample sample;
            char text[64];
            (void)snprintf(text, sizeof text, "6x32x128:%s:tensor", outs[out]);
            make(&sample, text, SAMPLE_EXACT);
            memset(sample.matmul.a.data, 0x7E, 6 * 128);
            memset(sample.matmul.b.data, 0x7E, 32 * 128);
            *(float *)sample.matmul.scale_a.data = scaled ? 1e-3f : 1.0f;
            *(float *)sample.matmul.scale_b.data = scaled ? 1e-3f : 1.0f;
            solve_and_run(&sample, text);
        }
}

static uint8_t largest(int64_t line, int64_t at)
{
    return (line + at) % 3 ? 0x7E : 0xFE;
}

static uint8_t smallest(int64_t line, int64_t at)
{
    return (line + 2 * at) % 3 ? 0x01 : 0x81;
}

static void d8_largest_and_smallest_codes(void **state)
{
    uint8_t (*const fills[])(int64_t, int64_t) = {largest, smallest};
    static const int ks[] = {16, 64};
    (void)state;
    for (int k = 0; k < 2; k++)
        for (int pair = 0; pair < 4; pair++) {
            struct sample sample;
            char text[64];
            (void)snprintf(text, sizeof text, "7x32x%d:fp32:sa=none:sb=none", ks[k]);
            make(&sample, text, SAMPLE_EXACT);
            fill(&sample.matmul.a, 7, ks[k], fills[pair & 1]);
            fill(&sample.matmul.b, 32, ks[k], fills[pair >> 1]);
            solve_and_run(&sample, text);
        }
}

/* 8192 * 3/32 is 768: exactly so where sums are promoted. */
static void d9_long_sums_do_not_stall(void **state)
{
    static const char *const texts[] = {"5x16x8192:fp32:sa=none:sb=none:precise", "40x16x8192:fp32:sa=none:sb=none:precise",
                                        "200x144x8192:fp32:sa=none:sb=none:precise"};
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct sample sample;
        make(&sample, texts[i], SAMPLE_EXACT);
        memset(sample.matmul.a.data, 0x10, (size_t)(sample.matmul.a.rows * 8192)); /* 2^-5 */
        memset(sample.matmul.b.data, 0x44, (size_t)(sample.matmul.b.cols * 8192)); /* 3 */
        assert_true(sample_solve(&sample));
        assert_true(sample.wanted[0] == 768.0f);
        gpu_rows_run(&rows, &sample, texts[i]);
    }
}

/* A call full of NaN, then clean ones with the same context, stream and workspace. */
static void d11_nothing_stale_is_read(void **state)
{
    static const char *const texts[] = {"16x64x96", "16x64x96:a=bf16", "2x64x96:a=fp16", "16x256x4096", "130x256x4096"};
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct gpu_product poison;
        gpu_product_init(&poison, texts[i], 1);
        CUDA(gpu_memory_set(poison.blocks[SAMPLE_A], 0x7F, poison.host.blocks[SAMPLE_A].size_bytes));
        for (int call = 0; call < 3; call++)
            assert_int_equal(fp8r_scaled_mm(rows.context, &poison.matmul, rows.stream), FP8R_OK);
        gpu_product_fini(&poison);
        gpu_rows_check_data(&rows, texts[i], SAMPLE_EXACT);
    }
}

/* Scale and bias before one rounding to bf16: 1.0078125 where two roundings give 1. */
static void d13_bias_is_added_before_rounding(void **state)
{
    struct sample sample;
    (void)state;
    make(&sample, "4x16x16:bias=fp32:tensor", SAMPLE_EXACT);
    static const uint8_t row[] = {0x7E, 0x7E, 0x70, 0x44}; /* 448, 448, 128, 3 */
    for (int i = 0; i < 4; i++) {
        memset((uint8_t *)sample.matmul.a.data + 16 * i, 0, 16);
        memcpy((uint8_t *)sample.matmul.a.data + 16 * i, row, sizeof row);
    }
    memset(sample.matmul.b.data, 0x38, 16 * 16);
    *(float *)sample.matmul.scale_a.data = 0x1p-10f;
    *(float *)sample.matmul.scale_b.data = 1.0f;
    for (int i = 0; i < 16; i++)
        ((float *)sample.matmul.bias.data)[i] = 3 * 0x1p-10f;
    assert_true(sample_solve(&sample));
    assert_true(sample.wanted[0] == 1.0078125f);
    gpu_rows_run(&rows, &sample, "one rounding");
}

/* Parts that a kernel makes of its work by the number of multiprocessors change nothing of the values. */
static void h3_other_numbers_of_multiprocessors(void **state)
{
    static const int counts[] = {8, 16, 26, 60, 114, 132};
    static const char *const texts[] = {"5x512x4096", "100x512x2048:bias", "300x1040x1152"};
    (void)state;
    if (facts.arch != 90) skip();
    for (size_t t = 0; t < sizeof texts / sizeof *texts; t++) {
        struct sample sample;
        struct gpu_sample gpu;
        make(&sample, texts[t], SAMPLE_EXACT);
        gpu_sample_init(&gpu, &sample);
        for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
            fp8r_device_facts device = facts;
            char line[160];
            device.sm_count = counts[i];
            const int config = fp8r_backend_sm90.pick(NULL, &device, &gpu.problem);
            gpu_sample_run(&gpu, &fp8r_backend_sm90, &device, config, gpu.problem.m);
            if (!sample_judge(&sample, gpu.problem.m, line, sizeof line))
                fail_msg("%s with %d multiprocessors on %s: %s", texts[t], counts[i], fp8r_backend_sm90.configs[config], line);
        }
        gpu_sample_fini(&gpu);
        sample_fini(&sample);
    }
}

/* ---- Planted faults ---- */

enum fault { NO_FAULT, STEP_DROPPED, SCALES_SWAPPED, TILE_MISSING, FAULTS };

/* Which two of a's scales differ most: of values drawn at random, neighbours may be all but equal. */
static void farthest_scales(const struct sample *host, int64_t found[2])
{
    const float *scales = host->matmul.scale_a.data;
    found[0] = found[1] = 0;
    for (int64_t i = 1; i < host->matmul.a.rows; i++) {
        if (scales[i] < scales[found[0]]) found[0] = i;
        if (scales[i] > scales[found[1]]) found[1] = i;
    }
}

/* Of random values a step of the mainloop weighs less than what fast accumulation may lose over thousands of K (its bound
 * grows with K); four blocks of K do not. */
static size_t dropped_bytes(enum sample_data data)
{
    return data == SAMPLE_EXACT ? 32 : 512;
}

static void plant_in_operands(struct gpu_product *it, enum sample_data data, enum fault fault)
{
    const fp8r_matmul *matmul = &it->matmul;
    int64_t which[2];
    if (fault == STEP_DROPPED)
        CUDA(gpu_memory_set((char *)matmul->a.data + 5 * matmul->a.row_stride + 64, 0, dropped_bytes(data)));
    if (fault != SCALES_SWAPPED) return;
    farthest_scales(&it->host, which);
    for (int i = 0; i < 2; i++)
        CUDA(gpu_memory_put((float *)matmul->scale_a.data + which[i], (float *)it->host.matmul.scale_a.data + which[1 - i],
                        sizeof(float)));
}

/* A tile of 8 x 64 keeps zeros. */
static void plant_in_out(struct gpu_product *it, enum fault fault)
{
    const fp8r_matrix *out = &it->matmul.out;
    if (fault == TILE_MISSING)
        CUDA(gpu_memory_settle(cudaMemset2D((char *)out->data + 64 * 4, (size_t)out->row_stride * 4, 0, 64 * 4, 8)));
}

static void check_fault(const char *text, enum sample_data data, enum fault fault)
{
    struct gpu_product it;
    char line[160];
    gpu_product_init_data(&it, text, data, 4);
    gpu_rows_widen(&it.host);
    gpu_product_clear(&it, rows.stream);
    plant_in_operands(&it, data, fault);
    assert_int_equal(fp8r_scaled_mm(rows.context, &it.matmul, rows.stream), FP8R_OK);
    CUDA(cudaStreamSynchronize(rows.stream));
    plant_in_out(&it, fault);
    const int is_right = gpu_product_is_right(&it, rows.stream, line);
    if (is_right != (fault == NO_FAULT)) fail_msg("%s, data %d, fault %d: %s", text, (int)data, (int)fault, is_right ? "unseen" : line);
    gpu_product_fini(&it);
}

static void planted_faults_are_seen(void **state)
{
    static const char *const texts[] = {"33x136x2064:fp32", "33x136x4096:fp32:static", "33x136x2064:fp32:precise",
                                        "200x264x4096:fp32"};
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        for (int data = SAMPLE_EXACT; data <= SAMPLE_RANDOM; data++)
            for (int fault = NO_FAULT; fault < FAULTS; fault++)
                check_fault(texts[i], (enum sample_data)data, (enum fault)fault);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(d2_all_codes_mean_the_same_everywhere),
                                       cmocka_unit_test(d2_nan_stays_in_its_row_and_column),
                                       cmocka_unit_test(d6_large_sums_with_small_scales),
                                       cmocka_unit_test(d8_largest_and_smallest_codes),
                                       cmocka_unit_test(d9_long_sums_do_not_stall),
                                       cmocka_unit_test(d11_nothing_stale_is_read),
                                       cmocka_unit_test(d13_bias_is_added_before_rounding),
                                       cmocka_unit_test(h3_other_numbers_of_multiprocessors),
                                       cmocka_unit_test(planted_faults_are_seen)};
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    facts = gpu_facts();
    gpu_rows_init(&rows, gpu_routed_context());
    const int failed = cmocka_run_group_tests_name("values on a GPU", tests, NULL, NULL);
    gpu_rows_fini(&rows);
    return failed;
}
