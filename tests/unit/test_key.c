/* The key: every field counts for equality, hash and order, and every field that a problem sets reaches it.
 * SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "problem/grammar.h"
#include "support/problem_of.h"

static struct fp8r_key key_of(const char *text)
{
    const fp8r_problem problem = problem_of(text);
    struct fp8r_key key;
    fp8r_key_init(&problem, FP8R_MODE_EAGER, &key);
    return key;
}

static void must_differ(const struct fp8r_key *a, const struct fp8r_key *b, const char *what)
{
    if (fp8r_key_equal(a, b) || fp8r_key_hash(a) == fp8r_key_hash(b) || fp8r_key_compare(a, b) == 0)
        fail_msg("%s does not change the key", what);
    assert_true((fp8r_key_compare(a, b) > 0) == (fp8r_key_compare(b, a) < 0));
}

static void every_byte_counts(void **state)
{
    (void)state;
    struct fp8r_key key = key_of("5x64x128:bias"), other;
    for (size_t i = 0; i < sizeof key; i++) {
        other = key;
        ((unsigned char *)&other)[i] ^= 1;
        must_differ(&key, &other, "a byte");
    }
    other = key;
    assert_true(fp8r_key_equal(&key, &other) && fp8r_key_hash(&key) == fp8r_key_hash(&other) &&
                fp8r_key_compare(&key, &other) == 0);
}

static void every_property_of_a_problem_counts(void **state)
{
    static const char *const others[] = {
        "2*5x64x128", "5x65x128", "5x64x129", "5x64x128:a=e5m2", "5x64x128:fp16", "5x64x128:fp32", "5x64x128:bias",
        "5x64x128:bias=fp32", "5x64x128:sa=tensor", "5x64x128:sb=tensor", "5x64x128:tensor", "5x64x128:sa=none",
        "5x64x128:lda=144", "5x64x128:ldb=144", "5x64x128:ldo=80", "5x64x128:ta", "5x64x128:tb", "5x64x128:to",
        "5x64x128:ia=2", "5x64x128:align=8", "5x64x128:align=1", "5x64x128:precise", "5x64x128:invariant",
        "5x64x128:static", "2*5x64x128:sa=batch", "5x64x128:a=bf16"};
    enum { COUNT = sizeof others / sizeof *others };
    struct fp8r_key keys[COUNT + 2];
    (void)state;
    for (int i = 0; i < COUNT; i++)
        keys[i] = key_of(others[i]);
    keys[COUNT] = key_of("5x64x128");
    keys[COUNT + 1] = keys[COUNT];
    keys[COUNT + 1].mode = FP8R_MODE_GRAPH;
    for (int i = 0; i < COUNT + 2; i++)
        for (int j = 0; j < i; j++)
            must_differ(&keys[i], &keys[j], i < COUNT ? others[i] : "mode");
}

/* Neither M, nor alignment beyond 16 bytes, nor how far a pitch is padded. */
static void what_does_not_matter_does_not_count(void **state)
{
    static const char *const pairs[][2] = {{"5x64x128", "6x64x128"},           {"5x64x128", "5x64x128:align=16"},
                                           {"5x64x128:align=32", "5x64x128"},  {"5x64x128:lda=144", "5x64x128:lda=256"},
                                           {"1x64x128", "1x64x128:lda=4096"},  {"2*5x64x128:ba=4096", "2*5x64x128"}};
    (void)state;
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        struct fp8r_key a = key_of(pairs[i][0]), b = key_of(pairs[i][1]);
        if (!fp8r_key_equal(&a, &b))
            fail_msg("%s and %s have different keys", pairs[i][0], pairs[i][1]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_byte_counts),
        cmocka_unit_test(every_property_of_a_problem_counts),
        cmocka_unit_test(what_does_not_matter_does_not_count),
    };
    return cmocka_run_group_tests_name("key", tests, NULL, NULL);
}
