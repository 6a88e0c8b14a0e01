/* A model named either way: which sources and degrees are taken, and the families of its layers.
 * SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "model/model_shapes.h"

#define LLAMA FP8R_TEST_DATA "/configs/llama-3.1-8b.json"
static const char *const small[] = {FP8R_TEST_DATA "/checkpoints/small.safetensors"};

static void expect_families(const struct fp8r_projection_list *layers, const char *const *names,
                            const int64_t *counts, size_t count)
{
    struct fp8r_projection_list families = {0};
    struct fp8r_tool_error error = {0};
    assert_int_equal(fp8r_projection_list_families(layers, &families, &error), 0);
    assert_int_equal(families.count, count);
    for (size_t i = 0; i < count; i++) {
        assert_string_equal(families.items[i].name, names[i]);
        assert_int_equal(families.items[i].count, counts[i]);
    }
    fp8r_projection_list_fini(&families);
}

static void a_config_gives_one_share_a_degree(void **state)
{
    (void)state;
    struct fp8r_model model = {0};
    struct fp8r_projection_list layers = {0};
    struct fp8r_tool_error error = {0};
    assert_int_equal(fp8r_model_open(LLAMA, NULL, 0, &model, &error), 0);
    assert_int_equal(fp8r_model_shapes(&model, NULL, true, &layers, &error), 0);
    expect_families(&layers, (const char *const[]){"6144x4096", "4096x4096", "28672x4096", "4096x14336"},
                    (const int64_t[]){32, 32, 32, 32}, 4);
    fp8r_projection_list_truncate(&layers, 0);
    assert_int_equal(fp8r_model_shapes(&model, "1,8,2", true, &layers, &error), 0);
    assert_int_equal(layers.count, 12);
    assert_int_equal(layers.items[4].tp, 8);
    assert_int_equal(layers.items[4].n, 768);
    assert_int_equal(layers.items[8].tp, 2);
    assert_int_equal(layers.items[8].n, 3072);
    fp8r_projection_list_truncate(&layers, 0);
    /* q and o are one family, and so are k and v, and gate and up. */
    assert_int_equal(fp8r_model_shapes(&model, "1", false, &layers, &error), 0);
    expect_families(&layers, (const char *const[]){"4096x4096", "1024x4096", "14336x4096", "4096x14336"},
                    (const int64_t[]){64, 64, 64, 32}, 4);
    fp8r_projection_list_fini(&layers);
    fp8r_model_fini(&model);
}

static void a_checkpoint_gives_its_products_without_tables(void **state)
{
    (void)state;
    struct fp8r_model model = {0};
    struct fp8r_projection_list layers = {0};
    struct fp8r_tool_error error = {0};
    assert_int_equal(fp8r_model_open(NULL, small, 1, &model, &error), 0);
    assert_int_equal(fp8r_model_shapes(&model, "1", true, &layers, &error), 0);
    assert_string_equal(layers.items[3].name, "model.layers.*.mlp.gate_proj.weight");
    assert_string_equal(layers.items[3].type, "F8_E4M3");
    /* lm_head and the embedding table are both 40x64; only the first is multiplied by. */
    expect_families(&layers, (const char *const[]){"40x64", "64x96", "96x64", "16x64", "64x48", "48x64"},
                    (const int64_t[]){1, 2, 4, 4, 2, 2}, 6);
    fp8r_projection_list_fini(&layers);
    fp8r_model_fini(&model);
}

static void one_source_is_asked_for(void **state)
{
    (void)state;
    struct fp8r_model model = {0};
    struct fp8r_tool_error error = {0};
    assert_int_equal(fp8r_model_open(NULL, NULL, 0, &model, &error), FP8R_EXIT_USAGE);
    assert_non_null(strstr(error.text, "either --hf-config"));
    assert_int_equal(fp8r_model_open(LLAMA, small, 1, &model, &error), FP8R_EXIT_USAGE);
    assert_non_null(strstr(error.text, "only one of --hf-config"));
}

static void bad_degrees_are_refused(void **state)
{
    (void)state;
    static const char *const degrees[] = {"",    "0",   "1,",  ",1",         "1,,2",
                                          "1,0", "1;2", "1 2", "2147483648", "99999999999999999999",
                                          "-1",  "x",   "1,x", "1.5",        " 1"};
    struct fp8r_model model = {0};
    struct fp8r_projection_list layers = {0};
    struct fp8r_tool_error error = {0};
    assert_int_equal(fp8r_model_open(LLAMA, NULL, 0, &model, &error), 0);
    for (size_t i = 0; i < sizeof degrees / sizeof degrees[0]; i++) {
        if (fp8r_model_shapes(&model, degrees[i], true, &layers, &error) != FP8R_EXIT_USAGE) {
            fail_msg("\"%s\" was taken", degrees[i]);
        }
        assert_non_null(strstr(error.text, "whole numbers from 1"));
        assert_int_equal(layers.count, 0);
    }
    assert_int_equal(fp8r_model_shapes(&model, "1,3", true, &layers, &error), FP8R_EXIT_USAGE);
    assert_non_null(strstr(error.text, "tp 3 does not divide"));
    assert_int_equal(layers.count, 0);
    fp8r_projection_list_fini(&layers);
    fp8r_model_fini(&model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_config_gives_one_share_a_degree),
        cmocka_unit_test(a_checkpoint_gives_its_products_without_tables),
        cmocka_unit_test(one_source_is_asked_for),
        cmocka_unit_test(bad_degrees_are_refused),
    };
    return cmocka_run_group_tests_name("model shapes", tests, NULL, NULL);
}
