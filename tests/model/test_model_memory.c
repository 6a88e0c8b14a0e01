/* Allocation failure in the model readers: the n-th allocation of an operation fails, for every n. Each time
 * the answer is "out of memory" and nothing is left behind (the leak check of an address-sanitised run sees
 * to that).
 *
 * Linked with --wrap for malloc, calloc, realloc and aligned_alloc.
 * SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "model/model_shapes.h"
#include "model/weights.h"
#include "support/refusal.h"

/* The layers and families of a model, both ways; in between a failure nothing may have been appended. */
static int model_list(const char *hf_config, const char *safetensors, struct fp8r_tool_error *error)
{
    struct fp8r_model model = {0};
    struct fp8r_projection_list layers = {0}, families = {0};
    int rc = fp8r_model_open(hf_config, &safetensors, hf_config == NULL ? 1 : 0, &model, error);
    if (rc == 0) rc = fp8r_model_shapes(&model, "1,2", false, &layers, error);
    if (rc != 0) assert_int_equal(layers.count, 0);
    if (rc == 0) {
        rc = fp8r_projection_list_families(&layers, &families, error);
        if (rc != 0) assert_int_equal(families.count, 0);
    }
    fp8r_projection_list_fini(&families);
    fp8r_projection_list_fini(&layers);
    fp8r_model_fini(&model);
    return rc;
}

static int config_list(struct fp8r_tool_error *error)
{
    return model_list(FP8R_TEST_DATA "/configs/gemma-3-4b.json", NULL, error);
}

/* A token longer than the parser's first buffers, so that refusals also meet it half way through. */
static int long_token_read(struct fp8r_tool_error *error)
{
    static char text[400 << 10];
    static const char head[] = "{\"hidden_size\":64,\"intermediate_size\":96,\"num_attention_heads\":4,"
                               "\"num_hidden_layers\":1,\"model_type\":\"llama\",\"comment\":\"";
    struct fp8r_hf_config config;
    memset(text, 'x', sizeof text);
    memcpy(text, head, sizeof head - 1);
    memcpy(text + sizeof text - 2, "\"}", 2);
    return fp8r_hf_config_parse(text, sizeof text, "long", &config, error);
}

static int layers_list(struct fp8r_tool_error *error)
{
    return model_list(NULL, FP8R_TEST_DATA "/checkpoints/small.safetensors.index.json", error);
}

static int weights_load(struct fp8r_tool_error *error)
{
    struct fp8r_weights weights = {0};
    int rc = fp8r_weights_load(FP8R_TEST_DATA "/checkpoints/small.safetensors:model.layers.1.mlp.gate_proj",
                               &weights, error);
    fp8r_weights_fini(&weights);
    return rc;
}

static void fail_each_allocation(int (*operation)(struct fp8r_tool_error *), long at_least)
{
    long n = 0;
    for (int rc = -1; rc != 0; n++) {
        struct fp8r_tool_error error = {0};
        allocations_left = n;
        rc = operation(&error);
        bool was_refused = allocations_left < 0;
        allocations_left = -1;
        if (rc == 0) {
            assert_false(was_refused);
            break;
        }
        if (rc != FP8R_EXIT_INTERNAL || strstr(error.text, "out of memory") == NULL) {
            fail_msg("allocation %ld: exit code %d, '%s'", n, rc, error.text);
        }
    }
    assert_true(n >= at_least);
}

static void config_survives_refused_memory(void **state)
{
    (void)state;
    fail_each_allocation(config_list, 10);
    fail_each_allocation(long_token_read, 4);
}

static void layers_survive_refused_memory(void **state)
{
    (void)state;
    fail_each_allocation(layers_list, 30);
}

static void weights_survive_refused_memory(void **state)
{
    (void)state;
    fail_each_allocation(weights_load, 12);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(config_survives_refused_memory),
        cmocka_unit_test(layers_survive_refused_memory),
        cmocka_unit_test(weights_survive_refused_memory),
    };
    return cmocka_run_group_tests_name("model memory", tests, NULL, NULL);
}
