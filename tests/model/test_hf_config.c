/* config.json: the layers of known models at several tensor-parallel degrees, and every way a field can be
 * wrong. SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "model/hf_config.h"

#define CONFIGS FP8R_TEST_DATA "/configs/"

struct shape {
    int64_t n, k;
};

struct model_case {
    const char *file;
    int64_t tp, layers;
    struct shape fused[4];   /* qkv, o, gate_up, down */
    struct shape unfused[7]; /* q, k, v, o, gate, up, down */
};

static const struct model_case model_cases[] = {
    {"llama-3.1-8b",
     1,
     32,
     {{6144, 4096}, {4096, 4096}, {28672, 4096}, {4096, 14336}},
     {{4096, 4096}, {1024, 4096}, {1024, 4096}, {4096, 4096}, {14336, 4096}, {14336, 4096}, {4096, 14336}}},
    {"llama-3.1-8b",
     2,
     32,
     {{3072, 4096}, {4096, 2048}, {14336, 4096}, {4096, 7168}},
     {{2048, 4096}, {512, 4096}, {512, 4096}, {4096, 2048}, {7168, 4096}, {7168, 4096}, {4096, 7168}}},
    {"llama-3.1-8b",
     8,
     32,
     {{768, 4096}, {4096, 512}, {3584, 4096}, {4096, 1792}},
     {{512, 4096}, {128, 4096}, {128, 4096}, {4096, 512}, {1792, 4096}, {1792, 4096}, {4096, 1792}}},
    /* 16 ranks, 8 key and value heads: two ranks hold the same one. */
    {"llama-3.1-8b",
     16,
     32,
     {{512, 4096}, {4096, 256}, {1792, 4096}, {4096, 896}},
     {{256, 4096}, {128, 4096}, {128, 4096}, {4096, 256}, {896, 4096}, {896, 4096}, {4096, 896}}},
    {"mistral-7b",
     1,
     32,
     {{6144, 4096}, {4096, 4096}, {28672, 4096}, {4096, 14336}},
     {{4096, 4096}, {1024, 4096}, {1024, 4096}, {4096, 4096}, {14336, 4096}, {14336, 4096}, {4096, 14336}}},
    {"qwen2-7b",
     1,
     28,
     {{4608, 3584}, {3584, 3584}, {37888, 3584}, {3584, 18944}},
     {{3584, 3584}, {512, 3584}, {512, 3584}, {3584, 3584}, {18944, 3584}, {18944, 3584}, {3584, 18944}}},
    {"qwen2-7b",
     2,
     28,
     {{2304, 3584}, {3584, 1792}, {18944, 3584}, {3584, 9472}},
     {{1792, 3584}, {256, 3584}, {256, 3584}, {3584, 1792}, {9472, 3584}, {9472, 3584}, {3584, 9472}}},
    {"qwen3-8b",
     1,
     36,
     {{6144, 4096}, {4096, 4096}, {24576, 4096}, {4096, 12288}},
     {{4096, 4096}, {1024, 4096}, {1024, 4096}, {4096, 4096}, {12288, 4096}, {12288, 4096}, {4096, 12288}}},
    /* head_dim 256 is not 3072 / 16 = 192. */
    {"gemma-7b",
     1,
     28,
     {{12288, 3072}, {3072, 4096}, {49152, 3072}, {3072, 24576}},
     {{4096, 3072}, {4096, 3072}, {4096, 3072}, {3072, 4096}, {24576, 3072}, {24576, 3072}, {3072, 24576}}},
    {"gemma-2-9b",
     2,
     42,
     {{4096, 3584}, {3584, 2048}, {14336, 3584}, {3584, 7168}},
     {{2048, 3584}, {1024, 3584}, {1024, 3584}, {3584, 2048}, {7168, 3584}, {7168, 3584}, {3584, 7168}}},
    {"gemma-3-4b",
     1,
     34,
     {{4096, 2560}, {2560, 2048}, {20480, 2560}, {2560, 10240}},
     {{2048, 2560}, {1024, 2560}, {1024, 2560}, {2560, 2048}, {10240, 2560}, {10240, 2560}, {2560, 10240}}},
    {"gemma-3-4b",
     8,
     34,
     {{768, 2560}, {2560, 256}, {2560, 2560}, {2560, 1280}},
     {{256, 2560}, {256, 2560}, {256, 2560}, {2560, 256}, {1280, 2560}, {1280, 2560}, {2560, 1280}}},
};

static const char *const fused_names[] = {"qkv_proj", "o_proj", "gate_up_proj", "down_proj"};
static const char *const unfused_names[] = {"q_proj",    "k_proj",  "v_proj",   "o_proj",
                                            "gate_proj", "up_proj", "down_proj"};

static void expect_shapes(const struct fp8r_hf_config *config, const struct model_case *expected, bool fused)
{
    struct fp8r_tool_error error = {0};
    struct fp8r_projection_list list = {0};
    const struct shape *shapes = fused ? expected->fused : expected->unfused;
    const char *const *names = fused ? fused_names : unfused_names;
    assert_int_equal(fp8r_hf_config_projections(config, expected->tp, fused, &list, &error), 0);
    assert_int_equal(list.count, fused ? 4 : 7);
    for (size_t i = 0; i < list.count; i++) {
        assert_string_equal(list.items[i].name, names[i]);
        assert_int_equal(list.items[i].n, shapes[i].n);
        assert_int_equal(list.items[i].k, shapes[i].k);
        assert_int_equal(list.items[i].count, expected->layers);
        assert_false(list.items[i].is_lookup);
    }
    fp8r_projection_list_fini(&list);
}

static void models_have_their_shapes(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof model_cases / sizeof model_cases[0]; i++) {
        struct fp8r_hf_config config;
        struct fp8r_tool_error error = {0};
        char path[256];
        (void)snprintf(path, sizeof path, CONFIGS "%s.json", model_cases[i].file);
        assert_int_equal(fp8r_hf_config_read(path, &config, &error), 0);
        expect_shapes(&config, &model_cases[i], true);
        expect_shapes(&config, &model_cases[i], false);
    }
}

static const char llama_fields[] =
    "\"model_type\":\"llama\",\"hidden_size\":4096,\"intermediate_size\":14336,"
    "\"num_attention_heads\":32,\"num_hidden_layers\":2";

/* Parses `{prefix, extra}` and expects that exit code, and in the text every one of the words (NULL ends
 * them). */
static void expect_error(const char *text, const char *const *words)
{
    struct fp8r_hf_config config;
    struct fp8r_tool_error error = {0};
    memset(&config, 0x5a, sizeof config);
    const struct fp8r_hf_config before = config;
    int rc = fp8r_hf_config_parse(text, strlen(text), "c.json", &config, &error);
    if (rc != FP8R_EXIT_BAD_DATA) fail_msg("accepted or misjudged (%d): %s", rc, text);
    assert_int_equal(error.exit_code, FP8R_EXIT_BAD_DATA);
    assert_non_null(strstr(error.text, "c.json"));
    for (; *words != NULL; words++) {
        if (strstr(error.text, *words) == NULL) fail_msg("no '%s' in '%s' for %s", *words, error.text, text);
    }
    assert_memory_equal(&config, &before, sizeof config);
}

struct bad_case {
    const char *text;
    const char *words[6];
};

static const struct bad_case bad_cases[] = {
    {"", {"bad JSON"}},
    {"[]", {"an array", "object"}},
    {"{", {"bad JSON", "line 1"}},
    {"{} {}", {"bad JSON"}},
    {"{\"model_type\":\"llama\",\"model_type\":\"llama\"}", {"duplicate", "model_type"}},
    {"{\"model_type\":\"\xff\"}", {"bad JSON", "0xff"}},
    {"{}", {"model_type is missing"}},
    {"{\"model_type\":7}", {"model_type is an integer"}},
    {"{\"model_type\":\"mamba\"}",
     {"mamba", "llama, mistral, qwen2, qwen3, gemma", "hidden_size", "num_key_value_heads", "head_dim"}},
    {"{\"model_type\":\"gemma3\"}", {"gemma3"}},
    {"{\"model_type\":\"llava\",\"text_config\":{\"model_type\":\"mamba\"}}", {"llava"}},
    {"{\"model_type\":\"llava\",\"text_config\":{\"model_type\":\"llama\"}}", {"hidden_size is missing"}},
    {"{\"model_type\":\"mamba\\n\\u001b[31m\"}", {"mamba??[31m"}},
    {"{\"model_type\":\"llama\"}", {"hidden_size is missing"}},
    {"{\"model_type\":\"llama\",\"hidden_size\":\"4096\"}", {"hidden_size is a string", "integer >= 1"}},
    {"{\"model_type\":\"llama\",\"hidden_size\":4096.0}", {"hidden_size is a number with a fraction"}},
    {"{\"model_type\":\"llama\",\"hidden_size\":true}", {"hidden_size is true or false"}},
    {"{\"model_type\":\"llama\",\"hidden_size\":[4096]}", {"hidden_size is an array"}},
    {"{\"model_type\":\"llama\",\"hidden_size\":null}", {"hidden_size is null"}},
    {"{\"model_type\":\"llama\",\"hidden_size\":0}", {"hidden_size is 0", "1..2147483647"}},
    {"{\"model_type\":\"llama\",\"hidden_size\":-4096}", {"hidden_size is -4096"}},
    {"{\"model_type\":\"llama\",\"hidden_size\":2147483648}", {"hidden_size is 2147483648"}},
    {"{\"model_type\":\"llama\",\"hidden_size\":99999999999999999999}", {"bad JSON", "too big"}},
    {"{\"model_type\":\"mistral\",\"hidden_size\":64,\"intermediate_size\":64,\"num_attention_heads\":4,"
     "\"num_hidden_layers\":1}",
     {"num_key_value_heads is missing"}},
};

static void bad_text_is_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof bad_cases / sizeof bad_cases[0]; i++) {
        expect_error(bad_cases[i].text, bad_cases[i].words);
    }
}

/* Added to a good Llama configuration. */
static const struct bad_case bad_additions[] = {
    {"\"num_key_value_heads\":0", {"num_key_value_heads is 0"}},
    {"\"num_key_value_heads\":5", {"num_attention_heads 32", "multiple", "num_key_value_heads 5"}},
    {"\"num_key_value_heads\":64", {"num_attention_heads 32", "multiple", "num_key_value_heads 64"}},
    {"\"head_dim\":-1", {"head_dim is -1"}},
    {"\"head_dim\":{}", {"head_dim is an object"}},
    {"\"head_dim\":2147483647", {"num_attention_heads 32 * head_dim 2147483647", "does not fit"}},
};

static void bad_head_fields_are_refused(void **state)
{
    (void)state;
    char text[512];
    for (size_t i = 0; i < sizeof bad_additions / sizeof bad_additions[0]; i++) {
        (void)snprintf(text, sizeof text, "{%s,%s}", llama_fields, bad_additions[i].text);
        expect_error(text, bad_additions[i].words);
    }
}

static void products_of_large_fields_are_refused(void **state)
{
    (void)state;
    expect_error(
        "{\"model_type\":\"llama\",\"hidden_size\":4097,\"intermediate_size\":64,\"num_attention_heads\":32,"
        "\"num_hidden_layers\":1}",
        (const char *const[]){"hidden_size 4097", "num_attention_heads 32", "head_dim", NULL});
    expect_error("{\"model_type\":\"llama\",\"hidden_size\":64,\"intermediate_size\":1073741824,"
                 "\"num_attention_heads\":32,\"num_hidden_layers\":1}",
                 (const char *const[]){"2 * intermediate_size 1073741824", NULL});
    expect_error("{\"model_type\":\"llama\",\"hidden_size\":64,\"intermediate_size\":64,"
                 "\"num_attention_heads\":2147483647,\"head_dim\":2147483647,\"num_hidden_layers\":1}",
                 (const char *const[]){"num_attention_heads 2147483647 * head_dim 2147483647", NULL});
}

static void absent_fields_mean_what_the_family_says(void **state)
{
    (void)state;
    struct fp8r_hf_config config;
    struct fp8r_tool_error error = {0};
    char text[512];
    (void)snprintf(text, sizeof text, "{%s,\"num_key_value_heads\":null,\"head_dim\":null}", llama_fields);
    assert_int_equal(fp8r_hf_config_parse(text, strlen(text), "c.json", &config, &error), 0);
    assert_int_equal(config.kv_heads, 32);
    assert_int_equal(config.head_dim, 128);
    static const char qwen3[] =
        "{\"model_type\":\"qwen3\",\"hidden_size\":1024,\"intermediate_size\":3072,"
        "\"num_attention_heads\":16,\"num_key_value_heads\":8,\"num_hidden_layers\":28}";
    assert_int_equal(fp8r_hf_config_parse(qwen3, strlen(qwen3), "c.json", &config, &error), 0);
    assert_int_equal(config.head_dim, 128);
    static const char wrapped[] =
        "{\"model_type\":\"llava\",\"text_config\":{\"model_type\":\"mistral\",\"hidden_size\":5120,"
        "\"intermediate_size\":14336,\"num_attention_heads\":32,\"num_key_value_heads\":8,\"head_dim\":128,"
        "\"num_hidden_layers\":40}}";
    assert_int_equal(fp8r_hf_config_parse(wrapped, strlen(wrapped), "c.json", &config, &error), 0);
    assert_string_equal(config.model_type, "mistral");
    assert_int_equal(config.heads * config.head_dim, 4096);
}

static void degrees_that_do_not_divide_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *file;
        int64_t tp;
        const char *field;
    } cases[] = {
        {"llama-3.1-8b", 0, "at least 1"},
        {"llama-3.1-8b", -2, "at least 1"},
        {"llama-3.1-8b", 3, "num_attention_heads 32"},
        {"qwen2-7b", 8, "num_attention_heads 28"},
        {"qwen2-7b", 7, "num_key_value_heads 4"},
        {"qwen2-7b", 28, "intermediate_size 18944"},
        {"llama-3.1-8b", INT64_MAX, "num_attention_heads 32"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct fp8r_hf_config config;
        struct fp8r_tool_error error = {0};
        struct fp8r_projection_list list = {0};
        char path[256];
        (void)snprintf(path, sizeof path, CONFIGS "%s.json", cases[i].file);
        assert_int_equal(fp8r_hf_config_read(path, &config, &error), 0);
        assert_int_equal(fp8r_hf_config_projections(&config, cases[i].tp, true, &list, &error),
                         FP8R_EXIT_USAGE);
        if (strstr(error.text, cases[i].field) == NULL)
            fail_msg("no '%s' in '%s'", cases[i].field, error.text);
        assert_int_equal(list.count, 0);
        assert_null(list.items);
    }
}

/* A field never leaks into another file's reading, whatever byte the text stops at. */
static void truncated_text_is_refused(void **state)
{
    (void)state;
    char text[512];
    (void)snprintf(text, sizeof text, "{%s}", llama_fields);
    for (size_t bytes = 0; bytes < strlen(text); bytes++) {
        struct fp8r_hf_config config;
        struct fp8r_tool_error error = {0};
        assert_int_equal(fp8r_hf_config_parse(text, bytes, "c.json", &config, &error), FP8R_EXIT_BAD_DATA);
    }
}

static void unreadable_files_are_named(void **state)
{
    (void)state;
    struct fp8r_hf_config config;
    struct fp8r_tool_error error = {0};
    assert_int_equal(fp8r_hf_config_read("no/such.json", &config, &error), FP8R_EXIT_BAD_DATA);
    assert_non_null(strstr(error.text, "no/such.json"));
    assert_int_equal(fp8r_hf_config_read(FP8R_TEST_DATA, &config, &error), FP8R_EXIT_BAD_DATA);
    assert_non_null(strstr(error.text, "not a regular file"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(models_have_their_shapes),
        cmocka_unit_test(bad_text_is_refused),
        cmocka_unit_test(bad_head_fields_are_refused),
        cmocka_unit_test(products_of_large_fields_are_refused),
        cmocka_unit_test(absent_fields_mean_what_the_family_says),
        cmocka_unit_test(degrees_that_do_not_divide_are_refused),
        cmocka_unit_test(truncated_text_is_refused),
        cmocka_unit_test(unreadable_files_are_named),
    };
    return cmocka_run_group_tests_name("hf_config", tests, NULL, NULL);
}
