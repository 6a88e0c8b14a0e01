/* Values of every configuration of the cpu backend that this machine can run: shapes, types, layouts, NaN,
 * and the promise that an element's bits depend on nothing but its row, its column and the numerics class.
 * SPDX-License-Identifier: Apache-2.0 */
#include "backend/cpu_case.h"

/* For every configuration that takes the case. */
#define EACH_CONFIG(it, config)                                                                              \
    for (int config = 0; fp8r_backend_cpu.configs[config]; config++)                                         \
        if (case_supported(it, config))

static const char *name_of(int config)
{
    return fp8r_backend_cpu.configs[config];
}

/* Small integers: every partial sum is exact, so every path must give the very bits of the definition. */
static void check_exact(const struct cpu_case *it, const double *sums, int64_t m, const char *name)
{
    const fp8r_problem *p = &it->problem;
    for (int64_t i = 0; i < m * p->n; i++) {
        float scale_a = element(&it->scale_a, &p->scale_a, 0, i / p->n, 0);
        float scale_b = element(&it->scale_b, &p->scale_b, 0, 0, i % p->n), want = 0;
        fp8r_store(&want, 0, p->out.dtype, fp8r_epilogue((float)sums[i], scale_b, scale_a, NULL));
        float got = element(&it->out, &p->out, 0, i / p->n, i % p->n);
        if (fp8r_float_bits(got) != fp8r_float_bits(fp8r_load(&want, 0, p->out.dtype)))
            fail_msg("%s %lldx%lldx%lld: element %lld is %g, its sum %g", name, (long long)m, (long long)p->n,
                     (long long)p->k, (long long)i, (double)got, sums[i]);
    }
}

static void integer_codes(struct guarded *memory, uint32_t seed)
{
    for (size_t i = 0; i < memory->bytes; i++)
        memory->data[i] = fp8r_to_e4m3((float)((int)(draw(&seed) % 9) - 4));
}

static void exact_shape(int64_t n, int64_t k)
{
    enum { ROWS = 33 };
    struct cpu_case it;
    case_make(&it, ROWS, n, k, &(struct cpu_wish){.out_dtype = FP8R_DTYPE_FP32, .pad = 3});
    integer_codes(&it.a, 1);
    integer_codes(&it.b, 2);
    double *sums = calloc((size_t)(ROWS * n), sizeof *sums);
    assert_non_null(sums);
    for (int64_t i = 0; i < ROWS * n; i++)
        for (int64_t j = 0; j < k; j++)
            sums[i] += (double)element(&it.a, &it.problem.a, 0, i / n, j) *
                       (double)element(&it.b, &it.problem.b, 0, j, i % n);
    EACH_CONFIG(&it, config)
    for (int64_t m = 1; m <= ROWS; m += n * k > 20000 ? 4 : 1) {
        case_run(&it, config, m, 1);
        check_exact(&it, sums, m, name_of(config));
        case_check_padding(&it, m, name_of(config));
    }
    free(sums);
    case_drop(&it);
}

static void test_exact_integers(void **unused)
{
    (void)unused;
    static const int64_t sizes[] = {1, 3, 7, 15, 16, 17, 31, 33, 40, 64, 100, 257};
    enum { COUNT = sizeof sizes / sizeof *sizes };
    for (int i = 0; i < COUNT; i++)
        for (int j = 0; j < COUNT; j++)
            exact_shape(sizes[i], sizes[j]);
}

/* K beyond one chunk, N beyond one tile, rows beyond one slab. */
static void test_exact_beyond_blocks(void **unused)
{
    (void)unused;
    exact_shape(130, 2047);
    exact_shape(65, 5000);
}

static void test_random_bound(void **unused)
{
    (void)unused;
    static const struct cpu_wish wishes[] = {
        {.largest_code = 0x7E, .out_dtype = FP8R_DTYPE_FP32, .pad = 5},
        {.largest_code = 0x7E, .bias_dtype = FP8R_DTYPE_BF16},
        {.out_dtype = FP8R_DTYPE_FP16, .largest_code = 0x38, .bias_dtype = FP8R_DTYPE_FP16, .pad = 1},
        {.out_dtype = FP8R_DTYPE_FP16, .largest_code = 0x30, .bias_dtype = FP8R_DTYPE_FP32},
        {.a_dtype = FP8R_DTYPE_E5M2, .out_dtype = FP8R_DTYPE_FP32, .bias_dtype = FP8R_DTYPE_BF16},
        {.a_dtype = FP8R_DTYPE_BF16, .bias_dtype = FP8R_DTYPE_FP32, .pad = 7},
        {.a_dtype = FP8R_DTYPE_FP16, .out_dtype = FP8R_DTYPE_FP32, .no_scales = true},
        {.batch = 3, .bias_dtype = FP8R_DTYPE_FP16, .pad = 2},
        {.outer_a = true, .out_dtype = FP8R_DTYPE_FP32},
        {.a_dtype = FP8R_DTYPE_BF16, .outer_a = true, .outer_out = true},
        {.outer_b = true, .pad = 9, .bias_dtype = FP8R_DTYPE_BF16},
        {.outer_a = true, .outer_b = true, .outer_out = true, .batch = 2, .pad = 1},
    };
    static const int64_t shapes[][3] = {
        {1, 1, 1}, {1, 70, 129}, {5, 33, 1000}, {19, 130, 600}, {37, 65, 1030}};
    for (size_t w = 0; w < sizeof wishes / sizeof *wishes; w++)
        for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
            struct cpu_case it;
            case_make(&it, shapes[s][0], shapes[s][1], shapes[s][2], &wishes[w]);
            EACH_CONFIG(&it, config)
            {
                case_run(&it, config, it.problem.m, 2);
                case_check(&it, name_of(config));
            }
            case_drop(&it);
        }
}

/* Slabs: more rows than one holds, more batch items than one holds. */
static void test_slabs(void **unused)
{
    (void)unused;
    struct cpu_case it;
    case_make(&it, 1100, 9, 40, &(struct cpu_wish){.out_dtype = FP8R_DTYPE_FP32});
    EACH_CONFIG(&it, config)
    {
        case_run(&it, config, 1100, 3);
        case_check(&it, name_of(config));
    }
    case_drop(&it);
    case_make(&it, 3, 5, 33, &(struct cpu_wish){.batch = 500});
    EACH_CONFIG(&it, config)
    {
        case_run(&it, config, 3, 3);
        case_check(&it, name_of(config));
    }
    case_drop(&it);
}

static bool same(float got, float want)
{
    return isnan(want) ? isnan(got) : fp8r_float_bits(got) == fp8r_float_bits(want);
}

/* All 256 codes of a against all of b, alone (K = 1) and in the last place of a ragged K. */
static void all_codes(int32_t a_dtype, int64_t k)
{
    struct cpu_case it;
    case_make(&it, 256, 256, k,
              &(struct cpu_wish){.a_dtype = a_dtype, .out_dtype = FP8R_DTYPE_FP32, .no_scales = true});
    memset(it.a.data, 0, it.a.bytes);
    memset(it.b.data, 0, it.b.bytes);
    for (int64_t i = 0; i < 256; i++)
        it.a.data[i * k + k - 1] = it.b.data[i * k + k - 1] = (unsigned char)i;
    EACH_CONFIG(&it, config)
    {
        case_run(&it, config, 256, 1);
        for (int64_t i = 0; i < 256 * 256; i++) {
            float a = fp8r_load(it.a.data, i / 256 * k + k - 1, a_dtype);
            float want = a * fp8r_from_e4m3((uint8_t)(i % 256)) + 0.0f; /* a sum starts at +0 */
            float got = ((float *)(void *)it.out.data)[i];
            if (!same(got, want))
                fail_msg("%s, K = %lld: code %02llx x %02llx is %g, should be %g", name_of(config),
                         (long long)k, (unsigned long long)(i / 256), (unsigned long long)(i % 256),
                         (double)got, (double)want);
        }
    }
    case_drop(&it);
}

static void test_all_codes(void **unused)
{
    (void)unused;
    static const int64_t ks[] = {1, 33, 64, 127};
    for (size_t i = 0; i < sizeof ks / sizeof *ks; i++) {
        all_codes(FP8R_DTYPE_E4M3, ks[i]);
        all_codes(FP8R_DTYPE_E5M2, ks[i]);
    }
}

/* A NaN code makes exactly its row or column NaN; one in the padding between rows makes nothing NaN. */
static void test_nan_stays_in_its_row_and_column(void **unused)
{
    (void)unused;
    struct cpu_case it;
    case_make(&it, 21, 70, 530,
              &(struct cpu_wish){.out_dtype = FP8R_DTYPE_FP16, .largest_code = 0x30, .pad = 6});
    for (int64_t i = 0; i < 20; i++)
        memset(it.a.data + i * 536 + 530, 0x7F, 6);
    for (int64_t i = 0; i < 69; i++)
        memset(it.b.data + i * 536 + 530, 0xFF, 6);
    it.a.data[3 * 536 + 77] = 0x7F;
    it.a.data[20 * 536 + 529] = 0xFF;
    it.b.data[33 * 536 + 528] = 0x7F;
    it.b.data[69 * 536] = 0xFF;
    EACH_CONFIG(&it, config)
    {
        case_run(&it, config, 21, 2);
        for (int64_t i = 0; i < 21 * 70; i++) {
            int64_t m = i / 70, n = i % 70;
            bool want = m == 3 || m == 20 || n == 33 || n == 69;
            if (want != (isnan(element(&it.out, &it.problem.out, 0, m, n)) != 0))
                fail_msg("%s: out[%lld,%lld] should%s be NaN", name_of(config), (long long)m, (long long)n,
                         want ? "" : " not");
        }
    }
    case_drop(&it);
}

static void test_threads_do_not_change_bits(void **unused)
{
    (void)unused;
    static const int32_t threads[] = {2, 3, 5, 16};
    static const int64_t shapes[][3] = {{3, 300, 777}, {45, 33, 1300}, {200, 17, 64}};
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
        struct cpu_case it;
        case_make(&it, shapes[s][0], shapes[s][1], shapes[s][2],
                  &(struct cpu_wish){.out_dtype = FP8R_DTYPE_FP32});
        void *want = malloc(it.out.bytes);
        assert_non_null(want);
        EACH_CONFIG(&it, config)
        {
            case_run(&it, config, it.problem.m, 1);
            memcpy(want, it.out.data, it.out.bytes);
            for (size_t i = 0; i < sizeof threads / sizeof *threads; i++) {
                case_run(&it, config, it.problem.m, threads[i]);
                assert_memory_equal(it.out.data, want, it.out.bytes);
            }
        }
        free(want);
        case_drop(&it);
    }
}

/* Within a numerics class, whatever the configuration and M: the same bits of a row. Wide sums make
 * differences likely. */
static void test_class_is_batch_invariant(void **unused)
{
    (void)unused;
    static const int64_t ms[] = {257, 1, 2, 16, 31, 32, 33, 64, 128};
    struct cpu_case it;
    case_make(&it, 257, 67, 1234, &(struct cpu_wish){.out_dtype = FP8R_DTYPE_FP32, .largest_code = 0x7E});
    fp8r_device_facts facts = case_facts(1);
    size_t row_bytes = (size_t)it.problem.n * sizeof(float);
    void *want = malloc(it.out.bytes);
    assert_non_null(want);
    EACH_CONFIG(&it, first)
    {
        const char *class_of_first = fp8r_backend_cpu.numerics(NULL, &facts, &it.problem, first);
        case_run(&it, first, 257, 1);
        memcpy(want, it.out.data, it.out.bytes);
        EACH_CONFIG(&it, second)
        {
            if (strcmp(class_of_first, fp8r_backend_cpu.numerics(NULL, &facts, &it.problem, second)) != 0)
                continue;
            for (size_t i = 0; i < sizeof ms / sizeof *ms; i++) {
                case_run(&it, second, ms[i], 2);
                if (memcmp(it.out.data, want, (size_t)ms[i] * row_bytes) != 0)
                    fail_msg("%s and %s are of class %s and differ at M = %lld", name_of(first),
                             name_of(second), class_of_first, (long long)ms[i]);
            }
        }
    }
    free(want);
    case_drop(&it);
}

/* Where a column stands must not matter either: the same column of b everywhere gives the same bits
 * everywhere. */
static void test_place_does_not_change_bits(void **unused)
{
    (void)unused;
    struct cpu_case it;
    case_make(&it, 29, 151, 901,
              &(struct cpu_wish){.out_dtype = FP8R_DTYPE_FP32, .no_scales = true, .largest_code = 0x7E});
    for (int64_t n = 1; n < 151; n++)
        memcpy(it.b.data + n * 901, it.b.data, 901);
    for (int64_t m = 1; m < 29; m++)
        memcpy(it.a.data + m * 901, it.a.data, 901);
    EACH_CONFIG(&it, config)
    {
        case_run(&it, config, 29, 1);
        for (size_t i = 1; i < 29 * 151; i++)
            assert_memory_equal(it.out.data + i * sizeof(float), it.out.data, sizeof(float));
    }
    case_drop(&it);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exact_integers),
        cmocka_unit_test(test_exact_beyond_blocks),
        cmocka_unit_test(test_random_bound),
        cmocka_unit_test(test_slabs),
        cmocka_unit_test(test_all_codes),
        cmocka_unit_test(test_nan_stays_in_its_row_and_column),
        cmocka_unit_test(test_threads_do_not_change_bits),
        cmocka_unit_test(test_class_is_batch_invariant),
        cmocka_unit_test(test_place_does_not_change_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
