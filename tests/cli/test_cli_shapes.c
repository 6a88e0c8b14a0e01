/* fp8route shapes, from the outside: tables, JSON, and what is refused.
 * SPDX-License-Identifier: Apache-2.0 */
#include "program.h"

#include <jansson.h>

#define LLAMA   FP8R_TEST_DATA "/configs/llama-3.1-8b.json"
#define SMALL   FP8R_TEST_DATA "/checkpoints/small.safetensors"
#define SHARDED FP8R_TEST_DATA "/checkpoints/small.safetensors.index.json"

#define WORDS(...) ((const char *const[]){__VA_ARGS__, NULL})

static json_t *json_of(const char *const *words)
{
    struct program run = program_run(words);
    if (run.exit_code != 0) fail_msg("exit code %d: %s", run.exit_code, run.errors);
    assert_string_equal(run.errors, "");
    json_error_t error;
    json_t *root = json_loads(run.output, JSON_REJECT_DUPLICATES, &error);
    if (!root) fail_msg("%s: %s", error.text, run.output);
    assert_string_equal(json_string_value(json_object_get(root, "schema")), "fp8route.shapes/1");
    program_fini(&run);
    return root;
}

static int64_t number_at(const json_t *array, size_t index, const char *key)
{
    return json_integer_value(json_object_get(json_array_get(array, index), key));
}

static void llama_lists_its_products(void **state)
{
    (void)state;
    static const int64_t expected[12][3] = {{1, 6144, 4096},  {1, 4096, 4096}, {1, 28672, 4096},
                                            {1, 4096, 14336}, {2, 3072, 4096}, {2, 4096, 2048},
                                            {2, 14336, 4096}, {2, 4096, 7168}, {8, 768, 4096},
                                            {8, 4096, 512},   {8, 3584, 4096}, {8, 4096, 1792}};
    json_t *root = json_of(WORDS("shapes", "--hf-config", LLAMA, "--tp", "1,2,8", "--json"));
    const json_t *shapes = json_object_get(root, "shapes");
    assert_int_equal(json_array_size(shapes), 12);
    for (size_t i = 0; i < 12; i++) {
        assert_int_equal(number_at(shapes, i, "tp"), expected[i][0]);
        assert_int_equal(number_at(shapes, i, "n"), expected[i][1]);
        assert_int_equal(number_at(shapes, i, "k"), expected[i][2]);
        assert_int_equal(number_at(shapes, i, "count"), 32);
    }
    const json_t *families = json_object_get(root, "families");
    assert_int_equal(json_array_size(families), 12);
    assert_string_equal(json_string_value(json_array_get(families, 3)), "4096x14336");
    json_decref(root);
}

static void text_is_a_table_and_a_command(void **state)
{
    (void)state;
    static const char expected[] =
        "tp  layer             N      K  count  stored  family\n"
        " 1  qkv_proj       6144   4096     32  -       6144x4096\n"
        " 1  o_proj         4096   4096     32  -       4096x4096\n"
        " 1  gate_up_proj  28672   4096     32  -       28672x4096\n"
        " 1  down_proj      4096  14336     32  -       4096x14336\n"
        "\n"
        "to tune them: fp8route tune --family 6144x4096 4096x4096 28672x4096 4096x14336\n";
    struct program run = program_run(WORDS("shapes", "--hf-config", LLAMA));
    assert_int_equal(run.exit_code, 0);
    assert_string_equal(run.errors, "");
    assert_string_equal(run.output, expected);
    program_fini(&run);
}

static void one_file_and_its_shards_list_the_same(void **state)
{
    (void)state;
    json_t *one = json_of(WORDS("shapes", "--safetensors", SMALL, "--json"));
    json_t *shards = json_of(WORDS("shapes", "--safetensors", SHARDED, "--json"));
    json_t *files = json_of(WORDS("shapes", "--json", "--safetensors",
                                  FP8R_TEST_DATA "/checkpoints/shard-1-of-2.safetensors",
                                  FP8R_TEST_DATA "/checkpoints/shard-2-of-2.safetensors"));
    assert_int_equal(json_array_size(json_object_get(one, "shapes")), 9);
    assert_true(json_equal(json_object_get(one, "shapes"), json_object_get(shards, "shapes")));
    assert_true(json_equal(json_object_get(one, "shapes"), json_object_get(files, "shapes")));
    assert_true(json_equal(json_object_get(shards, "tensors"), json_object_get(files, "tensors")));
    const json_t *tensors = json_object_get(one, "tensors"), *first = json_array_get(tensors, 0);
    assert_int_equal(json_array_size(tensors), 29);
    assert_string_equal(json_string_value(json_object_get(first, "name")), "lm_head.weight");
    assert_string_equal(json_string_value(json_object_get(first, "dtype")), "F32");
    assert_string_equal(json_string_value(json_object_get(first, "role")), "linear");
    assert_int_equal(number_at(tensors, 0, "end") - number_at(tensors, 0, "begin"), 40 * 64 * 4);
    json_decref(one);
    json_decref(shards);
    json_decref(files);
}

static void embedding_tables_are_marked(void **state)
{
    (void)state;
    struct program run = program_run(WORDS("shapes", "--safetensors", SMALL));
    assert_int_equal(run.exit_code, 0);
    assert_non_null(strstr(run.output, "model.embed_tokens.weight"));
    assert_non_null(strstr(run.output, "looked up"));
    assert_non_null(strstr(run.output, "tune --family 40x64 64x96 96x64 16x64 64x48 48x64\n"));
    program_fini(&run);
}

static void bad_input_is_one_line_and_a_code(void **state)
{
    (void)state;
    expect_refusal(WORDS("shapes"), 2, WORDS("--hf-config", "--safetensors"));
    expect_refusal(WORDS("shapes", "--hf-config", LLAMA, "--safetensors", SMALL), 2, WORDS("only one of"));
    expect_refusal(WORDS("shapes", "--safetensors", SMALL, "--unfused"), 2, WORDS("--unfused"));
    expect_refusal(WORDS("shapes", "--hf-config", LLAMA, "--tp", "3"), 2,
                   WORDS("tp 3", "num_attention_heads 32"));
    expect_refusal(WORDS("shapes", "--hf-config", LLAMA, "--tp", "1,"), 2, WORDS("1,2,8"));
    expect_refusal(WORDS("shapes", "--hf-config", SHARDED), 5, WORDS("index.json", "model_type is missing"));
    expect_refusal(WORDS("shapes", "--hf-config", SMALL), 5, WORDS("small.safetensors", "bad JSON"));
    expect_refusal(WORDS("shapes", "--safetensors", LLAMA), 5, WORDS("llama-3.1-8b.json", "weight_map"));
    expect_refusal(WORDS("shapes", "--safetensors", "no/such"), 5, WORDS("no/such"));
    expect_refusal(WORDS("shapes", "--safetensors", SMALL, SMALL), 5, WORDS("lm_head.weight", "is also in"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(llama_lists_its_products),
        cmocka_unit_test(text_is_a_table_and_a_command),
        cmocka_unit_test(one_file_and_its_shards_list_the_same),
        cmocka_unit_test(embedding_tables_are_marked),
        cmocka_unit_test(bad_input_is_one_line_and_a_code),
    };
    return cmocka_run_group_tests_name("cli shapes", tests, NULL, NULL);
}
