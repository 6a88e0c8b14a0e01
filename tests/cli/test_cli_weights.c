/* fp8route run --weights, from the outside: each way a weight can be stored, multiplied by and verified; and
 * what is refused. SPDX-License-Identifier: Apache-2.0 */
#include "program.h"

#include <jansson.h>

#define SMALL   FP8R_TEST_DATA "/checkpoints/small.safetensors"
#define SHARDED FP8R_TEST_DATA "/checkpoints/small.safetensors.index.json"

#define WORDS(...) ((const char *const[]){__VA_ARGS__, NULL})

static const struct {
    const char *problem, *weights;
    int64_t elements;
    const char *ran; /* the scale's kind is the file's */
} cases[] = {
    {"5x48x64:fp32", SMALL ":model.layers.0.self_attn.q_proj", 5 * 48, "5x48x64:fp32"},
    {"5x48x64:fp32", SHARDED ":model.layers.0.self_attn.q_proj.weight", 5 * 48, "5x48x64:fp32"},
    {"3x16x64:fp32", SMALL ":model.layers.0.self_attn.k_proj", 3 * 16, "3x16x64:fp32:sb=tensor"},
    {"3x16x64", SMALL ":model.layers.1.self_attn.v_proj", 3 * 16, "3x16x64:sb=tensor"},
    {"7x64x48:bias", SMALL ":model.layers.0.self_attn.o_proj", 7 * 64, "7x64x48:bias"},
    {"1x96x64:fp16", SMALL ":model.layers.0.mlp.gate_proj", 96, "1x96x64:fp16"},
    {"5x96x64", SHARDED ":model.layers.1.mlp.up_proj", 5 * 96, "5x96x64"},
    {"2x40x64", SMALL ":lm_head", 2 * 40, "2x40x64"},
    {"0x40x64", SMALL ":lm_head", 0, "0x40x64"},
};

static void expect_verified(size_t index, const char *option, const char *value)
{
    struct program run = program_run(
        WORDS("run", cases[index].problem, "--weights", cases[index].weights, option, value, "--json"));
    if (run.exit_code != 0)
        fail_msg("%s %s %s: exit code %d: %s", cases[index].problem, cases[index].weights, value,
                 run.exit_code, run.errors);
    json_t *root = json_loads(run.output, JSON_REJECT_DUPLICATES, NULL);
    assert_non_null(root);
    assert_true(json_is_true(json_object_get(root, "verified")));
    assert_true(json_is_true(json_object_get(root, "whole")));
    assert_int_equal(json_integer_value(json_object_get(root, "checked_elements")), cases[index].elements);
    assert_string_equal(json_string_value(json_object_get(root, "problem")), cases[index].ran);
    json_decref(root);
    program_fini(&run);
}

static void stored_weights_are_multiplied_by(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        expect_verified(i, "--backend", "reference");
        expect_verified(i, "--seed", "1"); /* routed */
    }
}

static void unusable_weights_are_one_line_and_a_code(void **state)
{
    (void)state;
    expect_refusal(WORDS("run", "1x64x96", "--weights", SMALL ":model.layers.0.mlp.down_proj"), 5,
                   WORDS("down_proj.weight", "block scales", "weight_scale_inv [1,1]"));
    expect_refusal(WORDS("run", "1x64x96", "--weights", SMALL ":model.layers.0.mlp.gate_proj"), 2,
                   WORDS("N=96", "K=64", "N=64", "K=96"));
    expect_refusal(WORDS("run", "1x64x96", "--weights", SMALL ":nothing"), 2,
                   WORDS("'nothing'", "small.safetensors"));
    expect_refusal(WORDS("run", "1x64x96", "--weights", SMALL), 2, WORDS("FILE:TENSOR"));
    expect_refusal(WORDS("run", "1x64x96", "--weights", "no/such:lm_head"), 5, WORDS("no/such"));
    expect_refusal(WORDS("run", "1x64x1", "--weights", SMALL ":model.norm"), 5,
                   WORDS("model.norm.weight", "[64]"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stored_weights_are_multiplied_by),
        cmocka_unit_test(unusable_weights_are_one_line_and_a_code),
    };
    return cmocka_run_group_tests_name("cli weights", tests, NULL, NULL);
}
