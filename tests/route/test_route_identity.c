/* What routes are tied to: made from facts, hashed, and compared part by part.
 * SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "route_sample.h"

static struct fp8r_identity cuda_identity(void)
{
    struct fp8r_identity identity = {
        .kind = FP8R_DEVICE_CUDA, .arch = 90, .sm_count = 132, .bandwidth_class = 5000};
    return identity;
}

static void expect_misfit(struct fp8r_identity of, struct fp8r_identity here, const char *message)
{
    char line[256] = "";
    assert_false(fp8r_identity_fits(&of, &here, line, sizeof line));
    if (!strstr(line, message))
        fail_msg("\"%s\" does not say \"%s\"", line, message);
}

static void equal_machines_share(void **state)
{
    (void)state;
    char line[256], one[17], other[17];
    struct fp8r_identity cpu = sample_identity(), cuda = cuda_identity(), same = sample_identity();
    assert_true(fp8r_identity_fits(&cpu, &cpu, line, sizeof line));
    assert_true(fp8r_identity_fits(&cuda, &cuda, line, sizeof line));
    fp8r_identity_hash(&cpu, one);
    fp8r_identity_hash(&same, other);
    assert_string_equal(one, other);
    assert_int_equal(strspn(one, "0123456789abcdef"), 16);
    assert_int_equal(one[16], '\0');
    same.library_count = 0; /* a library comes and goes without another file name */
    fp8r_identity_hash(&same, other);
    assert_string_equal(one, other);
}

/* The file name of a machine must not change from one version to the next. */
static void hashes_stay(void **state)
{
    (void)state;
    char hash[17], text[FP8R_IDENTITY_BYTES];
    struct fp8r_identity cpu = sample_identity(), cuda = cuda_identity();
    fp8r_identity_format(&cpu, text);
    assert_string_equal(text, "features=avx2+fma+f16c+avx512 threads=2 llc_bytes=272629760");
    fp8r_identity_format(&cuda, text);
    assert_string_equal(text, "arch=90 sm_count=132 bandwidth_gbs=5000");
    fp8r_identity_hash(&cpu, hash);
    assert_string_equal(hash, "7028d3aa79178785");
    fp8r_identity_hash(&cuda, hash);
    assert_string_equal(hash, "796d26507464ef3e");
}

static void each_part_matters(void **state)
{
    (void)state;
    struct fp8r_identity cpu = sample_identity(), cuda = cuda_identity(), changed[7];
    static const char *const messages[7] = {
        "with other processor features: avx2+fma+f16c+avx512, here avx2+fma+f16c+avx512+neon",
        "with threads=2, here it is 3",
        "with llc_bytes=272629760, here it is 1",
        "with arch=90, here it is 100",
        "with sm_count=132, here it is 114",
        "with bandwidth_gbs=5000, here it is 3500",
        "on another kind of device: cuda, here cpu"};
    for (int i = 0; i < 7; i++)
        changed[i] = i < 3 ? cpu : cuda;
    changed[0].cpu_features |= FP8R_CPU_NEON;
    changed[1].threads = 3;
    changed[2].last_level_bytes = 1;
    changed[3].arch = 100;
    changed[4].sm_count = 114;
    changed[5].bandwidth_class = 3500;
    changed[6].kind = FP8R_DEVICE_CPU;
    for (int i = 0; i < 7; i++) {
        char one[17], other[17];
        expect_misfit(i < 3 ? cpu : cuda, changed[i], messages[i]);
        fp8r_identity_hash(i < 3 ? &cpu : &cuda, one);
        fp8r_identity_hash(&changed[i], other);
        assert_string_not_equal(one, other);
    }
}

static void libraries_differ_by_name_and_major(void **state)
{
    (void)state;
    static const struct {
        const char *of, *here;
        bool fits;
    } cases[] = {{"openblas 0.3.21", "openblas 0.3.21", true}, {"openblas 0.3.21", "openblas 0.4.0", true},
                 {"openblas 0.3.21", "openblas 0", true},      {"openblas 0.3.21", "openblas 1.3.21", false},
                 {"openblas 0.3.21", "mkl 0.3.21", false},     {"mkl 2024.2", "mkl 2025.2", false},
                 {"cublaslt 13.1", "cublaslt 1.1", false},     {"cublaslt 13.1", "cublaslt 130.1", false},
                 {"arm perf 24.1", "arm perf 24.9", true},     {"arm perf 24.1", "arm fast 24.1", false},
                 {"netlib", "netlib", true},                   {"netlib", "netlib 3.10", false},
                 {"3.10", "3.11", true}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct fp8r_identity of = sample_identity(), here = sample_identity();
        char line[256] = "";
        (void)snprintf(of.libraries[0].version, FP8R_NAME_BYTES, "%s", cases[i].of);
        (void)snprintf(here.libraries[0].version, FP8R_NAME_BYTES, "%s", cases[i].here);
        if (fp8r_identity_fits(&of, &here, line, sizeof line) != cases[i].fits)
            fail_msg("%s here %s: %s", cases[i].of, cases[i].here, line);
        if (!cases[i].fits)
            assert_non_null(strstr(line, cases[i].here));
        (void)snprintf(here.libraries[0].backend, FP8R_NAME_BYTES, "other"); /* not loaded here: nothing to compare */
        assert_true(fp8r_identity_fits(&of, &here, line, sizeof line));
        here.library_count = 0;
        assert_true(fp8r_identity_fits(&of, &here, line, sizeof line));
    }
}

static const char *library_name(void *user)
{
    return user;
}

static void machines_are_described(void **state)
{
    (void)state;
    static struct fp8r_registry registry;
    fp8r_device_facts facts = {.kind = FP8R_DEVICE_CPU, .threads = 8, .cpu_features = FP8R_CPU_NEON,
                               .last_level_bytes = 1 << 20, .bandwidth_gbs = 77, .arch = 3};
    struct fp8r_identity identity;
    static char version[] = "openblas 0.3.21", nothing[] = "";
    registry.count = 4;
    for (int i = 0; i < 4; i++)
        registry.rows[i].backend = (fp8r_backend){.name = &"abcd"[i], .library = library_name, .user = version};
    registry.rows[0].fits = registry.rows[2].fits = registry.rows[3].fits = true;
    registry.rows[2].backend.library = NULL;
    registry.rows[3].backend.user = nothing;
    fp8r_identity_init(&facts, &registry, &identity);
    assert_int_equal(identity.threads, 8);
    assert_int_equal(identity.cpu_features, FP8R_CPU_NEON);
    assert_int_equal(identity.last_level_bytes, 1 << 20);
    assert_true(identity.arch == 0 && identity.sm_count == 0 && identity.bandwidth_class == 0);
    assert_int_equal(identity.library_count, 1);
    assert_string_equal(identity.libraries[0].backend, "abcd");
    assert_string_equal(identity.libraries[0].version, "openblas 0.3.21");
}

static void bandwidth_is_a_class(void **state)
{
    (void)state;
    static struct fp8r_registry registry;
    static const int64_t cases[][2] = {{0, 0}, {249, 0}, {250, 500}, {749, 500}, {4800, 5000}, {4915, 5000}, {3352, 3500}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        fp8r_device_facts facts = {.kind = FP8R_DEVICE_CUDA, .arch = 90, .sm_count = 132, .threads = 5,
                                   .bandwidth_gbs = cases[i][0], .last_level_bytes = 9};
        struct fp8r_identity identity;
        fp8r_identity_init(&facts, &registry, &identity);
        assert_int_equal(identity.bandwidth_class, cases[i][1]);
        assert_true(identity.threads == 0 && identity.last_level_bytes == 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_machines_share),
        cmocka_unit_test(hashes_stay),
        cmocka_unit_test(each_part_matters),
        cmocka_unit_test(libraries_differ_by_name_and_major),
        cmocka_unit_test(machines_are_described),
        cmocka_unit_test(bandwidth_is_a_class),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
