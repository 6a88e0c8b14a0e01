/* The cublaslt row without a GPU: what it refuses on devices made by hand, and how it tells a library of
 * products, with one that multiplies on the processor.
 * SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "backend/cublaslt/cublaslt_configs.h"
#include "base/reason.h"
#include "support/sample.h"
#include "support/problem_of.h"

extern const fp8r_backend fp8r_backend_cublaslt;

static const fp8r_device_facts hopper = {.struct_size = sizeof hopper,
                                         .kind = FP8R_DEVICE_CUDA,
                                         .index = 63,
                                         .arch = 90,
                                         .sm_count = 132,
                                         .driver = 13000};

static void rules_have_reasons(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int32_t arch, code;
    } lines[] = {
        {"1x4096x14336", 90, FP8R_REASON_NONE},
        {"8192x6144x4096:bias", 90, FP8R_REASON_NONE},
        {"33x24x32:a=e5m2:precise", 90, FP8R_REASON_NONE},
        {"33x12x32:fp32:bias=bf16", 90, FP8R_REASON_NONE},
        {"33x16x32:fp16:bias=fp16:lda=48:ldb=64:ldo=24", 90, FP8R_REASON_NONE},
        {"16*128x512x128:fp16:tensor", 90, FP8R_REASON_NONE},
        {"16*128x512x128:tensor", 89, FP8R_REASON_NONE},
        {"7x16x32:sa=none:sb=tensor", 90, FP8R_REASON_NONE},
        {"7x16x32", 89, FP8R_REASON_ARCH},
        {"7x16x32", 120, FP8R_REASON_ARCH},
        {"7x16x32:a=bf16", 90, FP8R_REASON_DTYPE},
        {"7x16x32:invariant", 90, FP8R_REASON_NUMERICS},
        {"7x16x32:bias=fp32", 90, FP8R_REASON_BIAS},
        {"7x16x32:bias=fp16", 90, FP8R_REASON_BIAS},
        {"7x16x32:fp16:bias=bf16", 90, FP8R_REASON_BIAS},
        {"7x16x32:sa=tensor:sb=row", 90, FP8R_REASON_SCALE_KIND},
        {"7x16x32:sa=row:sb=tensor", 90, FP8R_REASON_SCALE_KIND},
        {"7x16x32:sa=none:sb=row", 90, FP8R_REASON_SCALE_KIND},
        {"3*7x16x32:sa=batch:sb=tensor", 90, FP8R_REASON_SCALE_KIND},
        {"3*7x16x32:sa=tensor:sb=batch", 90, FP8R_REASON_SCALE_KIND},
        {"3*7x16x32", 90, FP8R_REASON_SCALE_KIND},
        {"7x16x32:ta", 90, FP8R_REASON_LAYOUT},
        {"7x16x32:tb", 90, FP8R_REASON_LAYOUT},
        {"7x16x32:lda=0", 90, FP8R_REASON_LAYOUT},
        {"7x16x40", 90, FP8R_REASON_SHAPE_MULTIPLE},
        {"7x20x32", 90, FP8R_REASON_SHAPE_MULTIPLE},
        {"7x20x32:fp32", 90, FP8R_REASON_NONE},
        {"7x18x32:fp32", 90, FP8R_REASON_SHAPE_MULTIPLE},
        {"3000000000x16x32", 90, FP8R_REASON_SHAPE_MAX},
        {"70000*7x16x32:tensor", 90, FP8R_REASON_SHAPE_MAX},
        {"7x16x32:align=8", 90, FP8R_REASON_ALIGNMENT},
        {"7x16x32:lda=40", 90, FP8R_REASON_ALIGNMENT},
        {"7x16x32:ldo=20", 90, FP8R_REASON_ALIGNMENT},
    };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        fp8r_device_facts device = hopper;
        fp8r_problem problem = problem_of(lines[i].text);
        fp8r_reason reason = {0};
        char sentence[256];
        device.arch = lines[i].arch;
        bool is_taken = fp8r_backend_cublaslt.supports(NULL, &device, &problem, FP8R_CONFIG_ANY, &reason);
        if (is_taken != (lines[i].code == FP8R_REASON_NONE) || (!is_taken && reason.code != lines[i].code))
            fail_msg("%s on sm_%d: %s, wanted %s", lines[i].text, (int)device.arch,
                     fp8r_reason_name(reason.code), fp8r_reason_name(lines[i].code));
        if (is_taken) continue;
        fp8r_reason_sentence(&reason, sentence, sizeof sentence);
        assert_true(strlen(sentence) > 10 && !strchr(sentence, '{'));
    }
}

/* A device without a handle is nobody's to prepare for; the rest answers and does not crash. */
static void devices_made_by_hand(void **state)
{
    (void)state;
    const fp8r_backend *row = &fp8r_backend_cublaslt;
    fp8r_device_facts far = hopper;
    void *prepared = NULL;
    for (int32_t index = -1; index <= 64; index += 65) {
        far.index = index;
        fp8r_problem problem = problem_of("64x4096x4096");
        fp8r_reason reason = {0};
        for (int i = 0; row->configs[i]; i++)
            assert_true(row->supports(NULL, &far, &problem, i, &reason));
        assert_int_equal(row->workspace(NULL, &far, &problem, 0), 0);
        assert_null(row->numerics(NULL, &far, &problem, 1));
        assert_int_equal(row->prepare(NULL, NULL, &far, &problem, 0, &prepared), FP8R_ERROR_UNSUPPORTED);
        assert_null(prepared);
        assert_non_null(strstr(fp8r_last_error(), "cublaslt:heuristic"));
    }
}

static int64_t horizon_at(const char *text, int64_t m)
{
    fp8r_problem problem = problem_of(text);
    problem.m = m;
    return fp8r_backend_cublaslt.horizon(NULL, &hopper, &problem);
}

/* Up to the horizon the row picks the same, and wide tiles take over from narrow ones as M grows. */
static void picks_by_m(void **state)
{
    (void)state;
    const fp8r_backend *row = &fp8r_backend_cublaslt;
    static const char *const texts[] = {"2x4096x14336", "2x28672x5376", "2x512x512", "2x4096x14336:precise",
                                        "2x4096x4096:tensor"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        fp8r_problem problem = problem_of(texts[i]);
        int64_t last = 0;
        int config = 0;
        for (problem.m = 1; problem.m <= 5000; problem.m++) {
            if (problem.m > last) {
                config = row->pick(NULL, &hopper, &problem);
                last = problem.m == 1 ? 1 : row->horizon(NULL, &hopper, &problem);
            }
            assert_int_equal(row->pick(NULL, &hopper, &problem), config);
        }
    }
    fp8r_problem problem = problem_of("1x4096x14336");
    assert_string_equal(row->configs[row->pick(NULL, &hopper, &problem)], "t64x8_c1x1_o1");
    problem = problem_of("8192x28672x5376");
    assert_string_equal(row->configs[row->pick(NULL, &hopper, &problem)], "t128x128_c1x2_o2");
    problem = problem_of("64x4096x14336:precise");
    assert_string_equal(row->configs[row->pick(NULL, &hopper, &problem)], "heuristic");
}

static void horizons_end_where_answers_change(void **state)
{
    (void)state;
    assert_int_equal(horizon_at("1x4096x4096", 1), 1); /* whatever the stride of the one scale is */
    assert_int_equal(horizon_at("64x4096x4096", 1), 8);
    assert_int_equal(horizon_at("64x4096x4096", 9), 16);
    assert_int_equal(horizon_at("64x4096x4096", 33), 48);
    assert_int_equal(horizon_at("64x4096x4096:tensor", 65), 65536);
    assert_int_equal(horizon_at("64x4096x4096:tensor", 70000), 131072);
    assert_int_equal(horizon_at("64x4096x4096:tensor", INT32_MAX), INT32_MAX);
    assert_int_equal(horizon_at("64x4096x4096:tensor", (int64_t)INT32_MAX + 1), INT64_MAX);
}

static struct fp8r_cublaslt library;
static cublasLtHandle_t handle;

static int open_library(void **state)
{
    (void)state;
    assert_int_equal(fp8r_cublaslt_open(FP8R_FAKE_CUBLASLT "good.so", false, &library), FP8R_CUBLASLT_GOOD);
    assert_int_equal(library.create(&handle), CUBLAS_STATUS_SUCCESS);
    return 0;
}

static void compute(const char *text)
{
    struct sample sample;
    struct fp8r_product ours;
    struct fp8r_cublaslt_product product;
    struct fp8r_cublaslt_choice choice;
    fp8r_reason reason = {0};
    char line[160];
    assert_true(sample_init(&sample, text, SAMPLE_EXACT, 11));
    assert_int_equal(fp8r_product_init(&sample.matmul, FP8R_DATA_USED, &ours), FP8R_OK);
    if (!fp8r_cublaslt_takes(&hopper, &ours.problem, &reason))
        fail_msg("%s is refused: %s", text, fp8r_reason_name(reason.code));
    int64_t m = ours.problem.m;
    for (int half = 0; half < 2; half++) {
        assert_true(fp8r_cublaslt_product_init(&library, &ours.problem, &product));
        assert_true(fp8r_cublaslt_ask(&library, handle, &ours.problem, FP8R_CUBLASLT_HEURISTIC, 64, &product,
                                      &choice, &reason));
        sample_clear(&sample);
        fp8r_problem smaller = ours.problem;
        smaller.m = half ? (m + 1) / 2 : m;
        fp8r_pointers pointers = sample_pointers(&sample, smaller.m);
        assert_int_equal(fp8r_cublaslt_multiply(&library, handle, &product, &smaller, &pointers, &choice.algo,
                                                NULL, 0, NULL),
                         FP8R_OK);
        if (!sample_judge(&sample, smaller.m, line, sizeof line)) fail_msg("%s: %s", text, line);
    }
    sample_fini(&sample);
}

static void tells_products_right(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "1x16x16",
        "7x24x32",
        "33x16x48:bias",
        "5x12x16:fp32:bias=bf16",
        "9x40x64:fp16:bias=fp16",
        "7x16x32:a=e5m2",
        "7x16x32:tensor",
        "7x16x32:sa=none:sb=tensor",
        "7x16x32:sa=tensor:sb=none",
        "7x16x32:sa=none:sb=none",
        "9x16x32:lda=48:ldb=64:ldo=24:bias",
        "3*5x16x32:tensor",
        "4*7x24x48:sa=none:sb=none:fp32",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        compute(texts[i]);
}

static void asks_with_what_the_problem_has(void **state)
{
    (void)state;
    fp8r_problem problem = problem_of("64x4096x4080");
    struct fp8r_cublaslt_product product;
    struct fp8r_cublaslt_choice choice;
    fp8r_reason reason = {0};
    assert_true(fp8r_cublaslt_product_init(&library, &problem, &product));
    assert_false(fp8r_cublaslt_ask(&library, handle, &problem, FP8R_CUBLASLT_HEURISTIC, 64, &product, &choice,
                                   &reason));
    assert_int_equal(reason.code, FP8R_REASON_OTHER);
    assert_non_null(strstr(reason.subject, "no algorithm"));
    problem = problem_of("64x4096x4096:align=32");
    assert_true(fp8r_cublaslt_product_init(&library, &problem, &product));
    assert_true(fp8r_cublaslt_ask(&library, handle, &problem, FP8R_CUBLASLT_HEURISTIC, 80, &product, &choice,
                                  &reason));
    assert_int_equal(choice.workspace_bytes, 80);
    const int32_t *told =
        (const int32_t *)(const void *)&choice.algo; /* the fake's: id, then the alignments */
    for (int i = 1; i <= 4; i++)
        assert_int_equal(told[i], 32);
}

static void names_algorithms_by_attributes(void **state)
{
    (void)state;
    fp8r_problem problem = problem_of("64x4096x4096");
    struct fp8r_cublaslt_product product;
    struct fp8r_cublaslt_choice choice;
    fp8r_reason reason = {0};
    assert_true(fp8r_cublaslt_product_init(&library, &problem, &product));
    assert_true(fp8r_cublaslt_ask(&library, handle, &problem, FP8R_CUBLASLT_T128x128_C2x1_O1, 64, &product,
                                  &choice, &reason));
    assert_string_equal(fp8r_cublaslt_config_names[FP8R_CUBLASLT_T128x128_C2x1_O1], "t128x128_c2x1_o1");
    const int32_t *told = (const int32_t *)(const void *)&choice.algo;
    assert_int_equal(told[0], 66);
    assert_int_equal(told[1 + CUBLASLT_ALGO_CONFIG_TILE_ID], CUBLASLT_MATMUL_TILE_128x128);
    assert_int_equal(told[1 + CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID], CUBLASLT_CLUSTER_SHAPE_2x1x1);
    assert_int_equal(told[1 + CUBLASLT_ALGO_CONFIG_CUSTOM_OPTION], 1);
    assert_int_equal(told[1 + CUBLASLT_ALGO_CONFIG_SPLITK_NUM], 1);
    assert_int_equal(choice.workspace_bytes, 4);
    assert_false(fp8r_cublaslt_ask(&library, handle, &problem, FP8R_CUBLASLT_T128x32_C1x1_O5, 64, &product,
                                   &choice, &reason));
    assert_non_null(strstr(reason.subject, "this algorithm"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rules_have_reasons),
        cmocka_unit_test(devices_made_by_hand),
        cmocka_unit_test(picks_by_m),
        cmocka_unit_test(horizons_end_where_answers_change),
        cmocka_unit_test(tells_products_right),
        cmocka_unit_test(asks_with_what_the_problem_has),
        cmocka_unit_test(names_algorithms_by_attributes),
    };
    return cmocka_run_group_tests(tests, open_library, NULL);
}
