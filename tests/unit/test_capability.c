/* Capability windows against devices made by hand: which rows each device gets, and why not the others (field report J1:
 * the same table answers the question and drives the call).
 * SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "backend/registry.h"
#include "base/reason.h"
#include "device/device.h"

enum { NEW_DRIVER = 13000, OLD_DRIVER = 12040 };

static fp8r_device_facts gpu(int32_t arch, int32_t driver)
{
    return (fp8r_device_facts){.struct_size = sizeof(fp8r_device_facts), .kind = FP8R_DEVICE_CUDA, .arch = arch,
                               .driver = driver, .sm_count = 100};
}

static fp8r_device_facts cpu(uint32_t features)
{
    return (fp8r_device_facts){.struct_size = sizeof(fp8r_device_facts), .kind = FP8R_DEVICE_CPU, .threads = 2,
                               .cpu_features = features};
}

/* The reason of a row on a device; NONE where it fits. */
static int32_t reason_on(const fp8r_device_facts *device, const char *name, const char *deny)
{
    static struct fp8r_registry registry;
    assert_int_equal(fp8r_registry_init(&registry, NULL, 0), FP8R_OK);
    fp8r_registry_gate(&registry, device, deny, false);
    const struct fp8r_row *row = &registry.rows[fp8r_registry_find(&registry, name, strlen(name))];
    assert_int_equal(row->fits, row->reason.code == FP8R_REASON_NONE);
    if (!row->fits) {
        char sentence[256];
        fp8r_reason_sentence(&row->reason, sentence, sizeof sentence);
        assert_true(strlen(sentence) > 10 && !strchr(sentence, '{'));
    }
    return row->reason.code;
}

/* A row whose window fits is in, or says that this build holds no code for it. */
static void check_gpu(int32_t arch, int32_t driver, int32_t sm90, int32_t cublaslt, int32_t cuda)
{
    const char *const names[] = {"sm90", "cublaslt", "cuda"};
    const int32_t wanted[] = {sm90, cublaslt, cuda};
    fp8r_device_facts device = gpu(arch, driver);
    for (int i = 0; i < 3; i++) {
        int32_t got = reason_on(&device, names[i], NULL);
        bool fits = got == FP8R_REASON_NONE || got == FP8R_REASON_NOT_BUILT;
        if (wanted[i] == FP8R_REASON_NONE ? !fits : got != wanted[i])
            fail_msg("%s on sm_%d, driver %d: %s, wanted %s", names[i], (int)arch, (int)driver, fp8r_reason_name(got),
                     fp8r_reason_name(wanted[i]));
    }
    assert_int_equal(reason_on(&device, "cpu", NULL), FP8R_REASON_DEVICE_KIND);
    assert_int_equal(reason_on(&device, "blas", NULL), FP8R_REASON_DEVICE_KIND);
    assert_int_equal(reason_on(&device, "reference", NULL), FP8R_REASON_DEVICE_KIND);
}

static void j1_every_gpu_gets_its_rows(void **state)
{
    const int32_t yes = FP8R_REASON_NONE, arch = FP8R_REASON_ARCH, driver = FP8R_REASON_DRIVER;
    (void)state;
    check_gpu(70, NEW_DRIVER, arch, arch, arch);
    check_gpu(75, NEW_DRIVER, arch, arch, arch); /* asynchronous copies start with sm_80 */
    check_gpu(80, NEW_DRIVER, arch, arch, yes);
    check_gpu(86, NEW_DRIVER, arch, arch, yes);
    check_gpu(89, NEW_DRIVER, arch, yes, yes);
    check_gpu(90, NEW_DRIVER, yes, yes, yes);
    check_gpu(100, NEW_DRIVER, arch, yes, yes); /* sm_90a code runs on exactly sm_90 */
    check_gpu(103, NEW_DRIVER, arch, yes, yes);
    check_gpu(120, NEW_DRIVER, arch, yes, yes);
    check_gpu(121, NEW_DRIVER, arch, yes, yes);
    check_gpu(90, OLD_DRIVER, driver, driver, driver);
    check_gpu(80, OLD_DRIVER, arch, arch, driver);
}

static void every_cpu_gets_its_rows(void **state)
{
    static const uint32_t features[] = {
        0, FP8R_CPU_NEON, FP8R_CPU_AVX2, FP8R_CPU_AVX2 | FP8R_CPU_FMA | FP8R_CPU_F16C,
        FP8R_CPU_AVX2 | FP8R_CPU_FMA | FP8R_CPU_F16C | FP8R_CPU_AVX512, UINT32_MAX};
    const char *const rows[] = {"cpu", "blas", "reference"}, *const gpu_rows[] = {"sm90", "cublaslt", "cuda"};
    (void)state;
    for (size_t f = 0; f < sizeof features / sizeof *features; f++) {
        fp8r_device_facts device = cpu(features[f]);
        for (int i = 0; i < 3; i++) {
            int32_t code = reason_on(&device, rows[i], NULL);
            assert_true(code == FP8R_REASON_NONE || code == FP8R_REASON_NOT_BUILT);
            assert_int_equal(reason_on(&device, gpu_rows[i], NULL), FP8R_REASON_DEVICE_KIND);
        }
    }
}

static void denied_rows_say_so(void **state)
{
    fp8r_device_facts device = cpu(0);
    (void)state;
    assert_int_equal(reason_on(&device, "reference", "cpu,reference"), FP8R_REASON_DENIED);
    assert_int_equal(reason_on(&device, "reference", "reference"), FP8R_REASON_DENIED);
    assert_int_equal(reason_on(&device, "reference", "refer,referenced,,x"), FP8R_REASON_NONE);
    assert_int_equal(reason_on(&device, "blas", ",blas,"), FP8R_REASON_DENIED);
}

/* The reason of the window that came furthest, with the numbers that failed. */
static void several_windows_tell_the_nearest_miss(void **state)
{
    static const fp8r_capability windows[] = {
        {.kind = FP8R_DEVICE_CPU, .cpu_features = FP8R_CPU_AVX512 | FP8R_CPU_AMX_BF16},
        {.kind = FP8R_DEVICE_CUDA, .arch_min = 80, .arch_max = 89, .driver_min = 12000},
        {.kind = FP8R_DEVICE_CUDA, .arch_min = 100, .arch_max = 9999, .driver_min = 14000}};
    fp8r_reason reason;
    fp8r_device_facts device = gpu(86, 12000);
    (void)state;
    assert_true(fp8r_capabilities_fit(windows, 3, &device, &reason));
    device = gpu(86, 11080);
    assert_false(fp8r_capabilities_fit(windows, 3, &device, &reason));
    assert_true(reason.code == FP8R_REASON_DRIVER && reason.have == 11080 && reason.need == 12000);
    device = gpu(90, 13000);
    assert_false(fp8r_capabilities_fit(windows, 3, &device, &reason));
    assert_true(reason.code == FP8R_REASON_ARCH && reason.have == 90);
    device = cpu(FP8R_CPU_AVX512);
    assert_false(fp8r_capabilities_fit(windows, 3, &device, &reason));
    assert_int_equal(reason.code, FP8R_REASON_CPU_FEATURE);
    device = cpu(FP8R_CPU_AVX512 | FP8R_CPU_AMX_BF16 | FP8R_CPU_AVX2);
    assert_true(fp8r_capabilities_fit(windows, 3, &device, &reason));
}

static void feature_sets_have_a_text(void **state)
{
    (void)state;
    for (uint32_t features = 0; features < 256; features++) {
        char text[96];
        uint32_t again = ~features;
        fp8r_cpu_features_format(features, text, sizeof text);
        assert_true(fp8r_cpu_features_parse(text, &again));
        assert_int_equal(features, again);
    }
    uint32_t ignored;
    assert_false(fp8r_cpu_features_parse("avx2+", &ignored) || fp8r_cpu_features_parse("", &ignored) ||
                 fp8r_cpu_features_parse("avx", &ignored) || fp8r_cpu_features_parse("avx2,fma", &ignored));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(j1_every_gpu_gets_its_rows),
        cmocka_unit_test(every_cpu_gets_its_rows),
        cmocka_unit_test(denied_rows_say_so),
        cmocka_unit_test(several_windows_tell_the_nearest_miss),
        cmocka_unit_test(feature_sets_have_a_text),
    };
    return cmocka_run_group_tests_name("capability", tests, NULL, NULL);
}
