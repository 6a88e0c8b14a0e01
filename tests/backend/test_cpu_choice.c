/* Which configuration the cpu backend picks, which it refuses and why, on processors made by hand: nothing
 * here runs a kernel.
 * SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>
#include <stdio.h>

#include <fp8route/backend.h>

#include "backend/cpu/kernel.h"
#include "base/compiler.h"
#include "support/problem_of.h"

extern const fp8r_backend fp8r_backend_cpu;

enum {
    AVX2 = FP8R_CPU_AVX2 | FP8R_CPU_FMA | FP8R_CPU_F16C,
    AVX512 = AVX2 | FP8R_CPU_AVX512,
    BF16 = AVX512 | FP8R_CPU_AVX512_VBMI | FP8R_CPU_AVX512_BF16,
    AMX = BF16 | FP8R_CPU_AMX_BF16
};

static fp8r_device_facts processor(uint32_t features)
{
    return (fp8r_device_facts){.struct_size = sizeof(fp8r_device_facts),
                               .kind = FP8R_DEVICE_CPU,
                               .threads = 4,
                               .cpu_features = features,
                               .l2_bytes = 1 << 20,
                               .last_level_bytes = 32 << 20};
}

static const char *picked(uint32_t features, const char *text)
{
    fp8r_device_facts facts = processor(features);
    fp8r_problem problem = problem_of(text);
    fp8r_reason reason;
    assert_true(fp8r_backend_cpu.supports(NULL, &facts, &problem, FP8R_CONFIG_ANY, &reason));
    return fp8r_backend_cpu.configs[fp8r_backend_cpu.pick(NULL, &facts, &problem)];
}

static int config_of(const char *name)
{
    int i = 0;
    while (fp8r_backend_cpu.configs[i] && strcmp(fp8r_backend_cpu.configs[i], name) != 0)
        i++;
    assert_non_null(fp8r_backend_cpu.configs[i]);
    return i;
}

static int32_t refusal(uint32_t features, const char *text, const char *config)
{
    fp8r_device_facts facts = processor(features);
    fp8r_problem problem = problem_of(text);
    fp8r_reason reason = {0};
    return fp8r_backend_cpu.supports(NULL, &facts, &problem, config_of(config), &reason) ? FP8R_REASON_NONE
                                                                                         : reason.code;
}

static void test_features_decide(void **unused)
{
    (void)unused;
    assert_string_equal(picked(0, "1x4096x4096"), "portable_skinny");
    assert_string_equal(picked(FP8R_CPU_NEON, "512x4096x4096"), "portable_packed");
    assert_string_equal(picked(FP8R_CPU_AVX2 | FP8R_CPU_FMA, "1x4096x4096"), "portable_skinny");
    if (!FP8R_X86_64) return;
    assert_string_equal(picked(AVX2, "1x4096x4096"), "avx2_skinny");
    assert_string_equal(picked(AVX2, "512x4096x4096"), "avx2_packed");
    assert_string_equal(picked(AVX512, "1x4096x4096"), "avx512_skinny");
    assert_string_equal(picked(AVX512, "512x4096x4096"), "avx512_packed");
    assert_string_equal(picked(BF16, "512x4096x4096"), "avx512_packed");
}

/* What was measured (docs/worklog.md): few rows in bf16 pairs, one full tile before the skinny kernel's third turn. */
static void test_rows_decide(void **unused)
{
    static const struct {
        int64_t m;
        const char *config;
    } wanted[] = {{1, "avx512bf16_skinny"}, {2, "avx512bf16_skinny"}, {3, "avx512_skinny"},  {12, "avx512_skinny"},
                  {13, "avx512_packed"},    {14, "avx512_packed"},    {15, "avx512_skinny"}, {24, "avx512_skinny"},
                  {25, "avx512_packed"},    {4096, "avx512_packed"}};
    (void)unused;
    if (!FP8R_X86_64) return;
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        char text[64];
        (void)snprintf(text, sizeof text, "%lldx4096x4096", (long long)wanted[i].m);
        assert_string_equal(picked(BF16, text), wanted[i].config);
    }
    assert_string_equal(picked(AVX512, "2x4096x4096"), "avx512_skinny");
    assert_string_equal(picked(BF16, "7x4096x30000"), "avx512_skinny"); /* its rows crowd level 2 from 8 on */
    assert_string_equal(picked(BF16, "8x4096x30000"), "avx512bf16_skinny");
    assert_string_equal(picked(BF16, "18x4096x30000"), "avx512_packed");
    assert_string_equal(picked(BF16, "2x4096x4096:invariant"), "avx512_packed");
}

/* b with N contiguous has no codes side by side along K for a skinny kernel to stream. */
static void test_layout_decides(void **unused)
{
    (void)unused;
    assert_string_equal(picked(0, "1x4096x4096:tb"), "portable_packed");
    assert_int_equal(refusal(0, "1x4096x4096:tb", "portable_skinny"), FP8R_REASON_LAYOUT);
    assert_int_equal(refusal(0, "1x4096x4096:tb", "portable_packed"), FP8R_REASON_NONE);
    assert_int_equal(refusal(0, "64x4096x4096:ta", "portable_skinny"), FP8R_REASON_NONE);
}

static void test_missing_features_are_named(void **unused)
{
    (void)unused;
    if (!FP8R_X86_64) {
        assert_int_equal(refusal(0, "1x16x16", "avx2_skinny"), FP8R_REASON_NOT_BUILT);
        return;
    }
    assert_int_equal(refusal(0, "1x16x16", "avx2_skinny"), FP8R_REASON_CPU_FEATURE);
    assert_int_equal(refusal(AVX2 & ~(uint32_t)FP8R_CPU_F16C, "1x16x16", "avx2_packed"),
                     FP8R_REASON_CPU_FEATURE);
    assert_int_equal(refusal(AVX2, "1x16x16", "avx512_packed"), FP8R_REASON_CPU_FEATURE);
    assert_int_equal(refusal(AVX512, "1x16x16", "avx512bf16_skinny"), FP8R_REASON_CPU_FEATURE);
    assert_int_equal(refusal(BF16, "1x16x16", "avx512bf16_skinny"), FP8R_REASON_NONE);
}

/* Tiles need the processor and the system's grant, which only a machine with tiles gives. */
static void test_tiles_need_a_grant(void **unused)
{
    (void)unused;
    if (!FP8R_X86_64) return;
    assert_int_equal(refusal(BF16, "512x64x64", "amx_packed"), FP8R_REASON_CPU_FEATURE);
    bool granted = fp8r_cpu_amx_granted();
    assert_int_equal(refusal(AMX, "512x64x64", "amx_packed"),
                     granted ? FP8R_REASON_NONE : FP8R_REASON_CPU_FEATURE);
    assert_string_equal(picked(AMX, "512x4096x4096"), granted ? "amx_packed" : "avx512_packed");
}

/* Up to the horizon the pick stays, right behind it (where there is one) it changes. */
static void test_horizon_is_where_the_pick_changes(void **unused)
{
    (void)unused;
    static const uint32_t features[] = {0, AVX2, AVX512, BF16, AMX};
    static const char *const texts[] = {"1x4096x4096", "1x4096x4096:tb", "1x64x128:invariant", "1x64x30000"};
    for (size_t f = 0; f < sizeof features / sizeof *features; f++)
        for (size_t t = 0; t < sizeof texts / sizeof *texts; t++) {
            fp8r_device_facts facts = processor(FP8R_X86_64 ? features[f] : 0);
            fp8r_problem problem = problem_of(texts[t]);
            for (int64_t m = 1, next; m < 100; m = next) {
                problem.m = m;
                int picked_here = fp8r_backend_cpu.pick(NULL, &facts, &problem);
                int64_t horizon = fp8r_backend_cpu.horizon(NULL, &facts, &problem);
                assert_true(horizon >= m);
                next = horizon < 100 ? horizon + 1 : 100;
                for (problem.m = m; problem.m < next; problem.m++) {
                    assert_int_equal(fp8r_backend_cpu.pick(NULL, &facts, &problem), picked_here);
                    assert_int_equal(fp8r_backend_cpu.horizon(NULL, &facts, &problem), horizon);
                }
                if (horizon < 100) assert_int_not_equal(fp8r_backend_cpu.pick(NULL, &facts, &problem), picked_here);
            }
        }
}

static void test_invariant_keeps_one_class(void **unused)
{
    (void)unused;
    fp8r_device_facts facts = processor(FP8R_X86_64 ? BF16 : 0);
    fp8r_problem problem = problem_of("1x4096x4096:invariant");
    const char *class =
        fp8r_backend_cpu.numerics(NULL, &facts, &problem, fp8r_backend_cpu.pick(NULL, &facts, &problem));
    assert_non_null(class);
    for (int64_t m = 1; m < 3000; m = m * 3 / 2 + 1) {
        problem.m = m;
        int config = fp8r_backend_cpu.pick(NULL, &facts, &problem);
        assert_string_equal(fp8r_backend_cpu.numerics(NULL, &facts, &problem, config), class);
    }
}

static void test_workspace_never_shrinks(void **unused)
{
    (void)unused;
    static const char *const texts[] = {"1x4096x4096", "300*1x64x128:a=bf16", "7*1x100x5000:tb", "1x3x1"};
    fp8r_device_facts facts = processor(FP8R_X86_64 ? BF16 : 0);
    for (size_t t = 0; t < sizeof texts / sizeof *texts; t++)
        for (int config = 0; fp8r_backend_cpu.configs[config]; config++) {
            fp8r_problem problem = problem_of(texts[t]);
            fp8r_reason reason;
            if (!fp8r_backend_cpu.supports(NULL, &facts, &problem, config, &reason)) continue;
            size_t before = 0;
            for (problem.m = 1; problem.m < 5000; problem.m += problem.m < 200 ? 1 : 97) {
                size_t bytes = fp8r_backend_cpu.workspace(NULL, &facts, &problem, config);
                assert_true(bytes >= before);
                before = bytes;
            }
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_features_decide),
        cmocka_unit_test(test_rows_decide),
        cmocka_unit_test(test_layout_decides),
        cmocka_unit_test(test_missing_features_are_named),
        cmocka_unit_test(test_tiles_need_a_grant),
        cmocka_unit_test(test_horizon_is_where_the_pick_changes),
        cmocka_unit_test(test_invariant_keeps_one_class),
        cmocka_unit_test(test_workspace_never_shrinks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
