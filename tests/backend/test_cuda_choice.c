/* What the portable CUDA row answers on GPUs made by hand: it takes every layout, its pick can run and holds
 * up to the horizon that it names, and a batch-invariant family has one class. Skipped in a build without
 * CUDA; nothing here runs a kernel. SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "backend/registry.h"
#include "support/problem_of.h"

static struct fp8r_registry registry;

static fp8r_device_facts gpu(int32_t arch, int32_t sm_count)
{
    return (fp8r_device_facts){.struct_size = sizeof(fp8r_device_facts),
                               .kind = FP8R_DEVICE_CUDA,
                               .arch = arch,
                               .sm_count = sm_count,
                               .driver = 13000};
}

static const fp8r_backend *cuda(void)
{
    assert_int_equal(fp8r_registry_init(&registry, NULL, 0), FP8R_OK);
    const struct fp8r_row *row = &registry.rows[fp8r_registry_find(&registry, "cuda", 4)];
    if (!row->is_built) skip();
    return &row->backend;
}

static const char *const families[] = {
    "1x4096x4096",
    "1x28672x4096",
    "1x4096x14336:static",
    "1x1x1",
    "1x16x512",
    "1x3420x3420",
    "1x4096x128",
    "1x4096x4095",
    "1x4096x4096:ta:tb:to",
    "1x777x999:ia=3",
    "128*1x512x128",
    "16*1x4096x4096",
    "1x8192x8192:invariant",
    "5000*1x64x1024:tensor",
    "1x999999x64",
    "1x4096x4096:lda=0",
};

static void takes_everything(void **state)
{
    const fp8r_backend *row = cuda();
    const fp8r_device_facts device = gpu(80, 108);
    fp8r_reason reason;
    (void)state;
    for (size_t i = 0; i < sizeof families / sizeof *families; i++) {
        const fp8r_problem problem = problem_of(families[i]);
        assert_true(row->supports(row->user, &device, &problem, FP8R_CONFIG_ANY, &reason));
        assert_true(row->supports(row->user, &device, &problem, 0, &reason));
        assert_true(row->supports(row->user, &device, &problem, 1, &reason));
    }
    const fp8r_problem half = problem_of("4x64x64:a=bf16");
    assert_false(row->supports(row->user, &device, &half, FP8R_CONFIG_ANY, &reason));
    assert_int_equal(reason.code, FP8R_REASON_DTYPE);
}

static void skinny_says_why(void **state)
{
    static const struct {
        const char *text;
        int32_t code;
    } cases[] = {{"4x64x64:ta", FP8R_REASON_LAYOUT},        {"4x64x64:tb", FP8R_REASON_LAYOUT},
                 {"4x64x65", FP8R_REASON_ALIGNMENT},        {"4x64x64:align=8", FP8R_REASON_ALIGNMENT},
                 {"4x64x64:ldb=72", FP8R_REASON_ALIGNMENT}, {"4x64x60:lda=64:ldb=64", FP8R_REASON_NONE}};
    const fp8r_backend *row = cuda();
    const fp8r_device_facts device = gpu(90, 132);
    (void)state;
    assert_string_equal(row->configs[2], "skinny_8x16");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const fp8r_problem problem = problem_of(cases[i].text);
        fp8r_reason reason = {.code = FP8R_REASON_NONE};
        const bool takes = row->supports(row->user, &device, &problem, 2, &reason);
        assert_int_equal(takes, cases[i].code == FP8R_REASON_NONE);
        assert_int_equal(reason.code, cases[i].code);
    }
}

/* Every m up to some thousands: what is picked can run, and changes only where the horizon said so. */
static void check_horizons(const fp8r_backend *row, const fp8r_device_facts *device, const char *text)
{
    fp8r_problem problem = problem_of(text);
    int64_t end = 0;
    int pick = -1;
    for (problem.m = 1; problem.m <= 5000; problem.m++) {
        fp8r_reason reason;
        const int now = row->pick(row->user, device, &problem);
        assert_true(row->supports(row->user, device, &problem, now, &reason));
        if (problem.m <= end)
            assert_int_equal(now, pick);
        else
            end = row->horizon(row->user, device, &problem);
        assert_true(end >= problem.m);
        pick = now;
    }
}

static void picks_hold(void **state)
{
    static const int32_t sms[] = {0, 1, 8, 46, 108, 132, 192};
    const fp8r_backend *row = cuda();
    (void)state;
    for (size_t s = 0; s < sizeof sms / sizeof *sms; s++)
        for (size_t i = 0; i < sizeof families / sizeof *families; i++) {
            const fp8r_device_facts device = gpu(89, sms[s]);
            check_horizons(row, &device, families[i]);
        }
}

static void invariant_families_have_one_class(void **state)
{
    const fp8r_backend *row = cuda();
    const fp8r_device_facts device = gpu(90, 132);
    fp8r_problem problem = problem_of("1x4096x4096:invariant");
    (void)state;
    const char *class = row->numerics(row->user, &device, &problem, row->pick(row->user, &device, &problem));
    for (problem.m = 2; problem.m <= 5000; problem.m++)
        assert_string_equal(
            row->numerics(row->user, &device, &problem, row->pick(row->user, &device, &problem)), class);
    fp8r_problem any = problem_of("1x4096x4096");
    assert_int_equal(row->pick(row->user, &device, &any),
                     2); /* one row is streamed where bits may depend on M */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(takes_everything),
        cmocka_unit_test(skinny_says_why),
        cmocka_unit_test(picks_hold),
        cmocka_unit_test(invariant_families_have_one_class),
    };
    return cmocka_run_group_tests_name("cuda choice", tests, NULL, NULL);
}
