/* Problems: text both ways, validation, keys. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "problem/grammar.h"

static const char *const texts[] = {
    "1x4096x14336", "16*128x512x128:fp16:tensor", "8192x6144x4096:bias", "1x1x1", "7x5x3:ta:tb", "4x3420x17",
    "7x5x3:lda=5:ldb=9:ldo=6", "4x17x3420:a=bf16:bias=fp32", "4x5x6:sa=none", "4x5x6:ia=2", "4x5x64:align=8",
    "0x5x6", "3*4x5x6:sa=batch:ba=0", "4x5x6:lda=0", "4x5x6:to:ldo=7", "300x5x64:precise:invariant:static:ta",
    "2*3x4x5:sb=tensor:bb=0", "5x6x7:a=e5m2:fp32:bias=bf16", "16x16x0", "4x5x6:io=3:ldo=20",
    "5*1x1x16:tensor",
};

static void text_reads_back(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        fp8r_matmul matmul;
        char text[FP8R_TEXT_BYTES];
        assert_int_equal(fp8r_matmul_parse(texts[i], &matmul), FP8R_OK);
        assert_int_equal(fp8r_matmul_format(&matmul, text, sizeof text), FP8R_OK);
        assert_string_equal(text, texts[i]);
    }
}

/* Empty products whose packed inputs no memory holds: nothing is touched, so they are right, and have a text. */
static void empty_products_may_be_of_any_size(void **state)
{
    (void)state;
    static const char *const huge[] = {"65536*1x0x4611686018427387904", "0x4611686018427387904x4611686018427387904",
                                       "0*9x9223372036854775807x9223372036854775807:fp32:bias", "4x0x9223372036854775807:a=bf16"};
    for (size_t i = 0; i < sizeof huge / sizeof *huge; i++) {
        fp8r_matmul matmul;
        char text[FP8R_TEXT_BYTES];
        assert_int_equal(fp8r_matmul_parse(huge[i], &matmul), FP8R_OK);
        assert_int_equal(fp8r_matmul_format(&matmul, text, sizeof text), FP8R_OK);
        assert_string_equal(text, huge[i]);
    }
}

static void family_keeps_the_key(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        fp8r_matmul matmul;
        struct fp8r_product product;
        struct fp8r_key key, again;
        char family[FP8R_TEXT_BYTES];
        assert_int_equal(fp8r_matmul_parse(texts[i], &matmul), FP8R_OK);
        assert_int_equal(fp8r_product_init(&matmul, FP8R_DATA_IGNORED, &product), FP8R_OK);
        fp8r_key_init(&product.problem, FP8R_MODE_EAGER, &key);
        assert_int_equal(fp8r_family_format(&key, family, sizeof family), FP8R_OK);
        assert_int_equal(fp8r_family_parse(family, FP8R_MODE_EAGER, &again), FP8R_OK);
        assert_true(fp8r_key_equal(&key, &again));
    }
}

/* One family has one key, whatever M is. */
static void key_does_not_depend_on_m(void **state)
{
    (void)state;
    static const char *const families[] = {"Mx4096x14336", "Mx1280x3420", "4*Mx17x1", "Mx1x16", "2*Mx8x32:sa=batch:sb=batch",
                                           "4*Mx1x16:tensor"};
    for (size_t i = 0; i < sizeof families / sizeof *families; i++) {
        struct fp8r_key key, other;
        assert_int_equal(fp8r_family_parse(families[i], FP8R_MODE_EAGER, &key), FP8R_OK);
        for (int64_t m = 1; m <= 4; m++) {
            fp8r_matmul matmul;
            struct fp8r_product product;
            assert_int_equal(fp8r_family_member(families[i], m, &matmul), FP8R_OK);
            assert_int_equal(fp8r_product_init(&matmul, FP8R_DATA_IGNORED, &product), FP8R_OK);
            fp8r_key_init(&product.problem, FP8R_MODE_EAGER, &other);
            assert_true(fp8r_key_equal(&key, &other));
        }
    }
}

static void bad_text_names_the_place(void **state)
{
    (void)state;
    static const struct {
        const char *text, *place;
    } bad[] = {{"", "position 1"},           {"5x6", "position 4"},       {"5x6x", "position 5"},
               {"4x5x6:foo", "position 7"},  {"4x5x6:lda=x", "position 11"}, {"4x5x6:align=3", "position 13"},
               {"4x5x6 ", "position 6"},     {"4x5x6:", "position 7"},    {"-1x2x3", "position 1"},
               {"99999999999999999999x1x1", "position 1"},
               {"4x5x6:fp32:fp16", "position 12: expected another option"},
               {"4x5x6:bf16:tensor:bf16", "position 19: expected another option"},
               {"4x5x6:bias:bias", "position 12: expected another option"},
               {"4x5x6:bias:bias=fp32", "position 12: expected another option"},
               {"4x5x6:lda=8:lda=9", "position 13: expected another option"},
               {"4x5x6:ta:ta", "position 10: expected another option"}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        fp8r_matmul matmul, before;
        memset(&matmul, 0x5A, sizeof matmul);
        before = matmul;
        assert_int_equal(fp8r_matmul_parse(bad[i].text, &matmul), FP8R_ERROR_INVALID_ARGUMENT);
        assert_non_null(strstr(fp8r_last_error(), bad[i].place));
        assert_memory_equal(&matmul, &before, sizeof matmul);
    }
}

/* "1 or 1" is no choice; "3 or 1" is one. */
static void a_wrong_extent_says_what_would_be_right(void **state)
{
    static const struct {
        const char *text, *line;
    } cases[] = {{"4x5x6", "scale_a.batch is 7: it must be 1 (out.batch)"},
                 {"3*4x5x6", "scale_a.batch is 7: it must be 3 (out.batch) or 1"}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        fp8r_matmul matmul;
        struct fp8r_product product;
        assert_int_equal(fp8r_matmul_parse(cases[i].text, &matmul), FP8R_OK);
        matmul.scale_a.batch = 7;
        assert_int_equal(fp8r_product_init(&matmul, FP8R_DATA_IGNORED, &product), FP8R_ERROR_INVALID_ARGUMENT);
        assert_string_equal(fp8r_last_error(), cases[i].line);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_reads_back), cmocka_unit_test(empty_products_may_be_of_any_size),
        cmocka_unit_test(family_keeps_the_key),
        cmocka_unit_test(key_does_not_depend_on_m),
        cmocka_unit_test(bad_text_names_the_place),
        cmocka_unit_test(a_wrong_extent_says_what_would_be_right),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
