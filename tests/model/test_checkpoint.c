/* Checkpoints of several files, the sharded index, and the list of layers read from them.
 * SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "model/image.h"
#include "model/checkpoint.h"
#include "model/layer_shapes.h"
#include "model/shard_index.h"

#define CHECKPOINTS FP8R_TEST_DATA "/checkpoints/"

struct row {
    const char *name;
    int64_t n, k, count;
    bool is_lookup;
};

static const struct row small_rows[] = {
    {"lm_head.weight", 40, 64, 1, false},
    {"model.embed_tokens.weight", 40, 64, 1, true},
    {"model.layers.*.mlp.down_proj.weight", 64, 96, 2, false},
    {"model.layers.*.mlp.gate_proj.weight", 96, 64, 2, false},
    {"model.layers.*.mlp.up_proj.weight", 96, 64, 2, false},
    {"model.layers.*.self_attn.k_proj.weight", 16, 64, 2, false},
    {"model.layers.*.self_attn.o_proj.weight", 64, 48, 2, false},
    {"model.layers.*.self_attn.q_proj.weight", 48, 64, 2, false},
    {"model.layers.*.self_attn.v_proj.weight", 16, 64, 2, false},
};

/* One rank of two: rows of the first kind of layer shared out, columns of the second; tables whole. */
static const struct row small_rows_tp2[] = {
    {"lm_head.weight", 20, 64, 1, false},
    {"model.embed_tokens.weight", 40, 64, 1, true},
    {"model.layers.*.mlp.down_proj.weight", 64, 48, 2, false},
    {"model.layers.*.mlp.gate_proj.weight", 48, 64, 2, false},
    {"model.layers.*.mlp.up_proj.weight", 48, 64, 2, false},
    {"model.layers.*.self_attn.k_proj.weight", 8, 64, 2, false},
    {"model.layers.*.self_attn.o_proj.weight", 64, 24, 2, false},
    {"model.layers.*.self_attn.q_proj.weight", 24, 64, 2, false},
    {"model.layers.*.self_attn.v_proj.weight", 8, 64, 2, false},
};

static void expect_rows(const struct fp8r_projection_list *list, const struct row *rows, size_t count)
{
    assert_int_equal(list->count, count);
    for (size_t i = 0; i < count; i++) {
        assert_string_equal(list->items[i].name, rows[i].name);
        assert_int_equal(list->items[i].n, rows[i].n);
        assert_int_equal(list->items[i].k, rows[i].k);
        assert_int_equal(list->items[i].count, rows[i].count);
        assert_int_equal(list->items[i].is_lookup, rows[i].is_lookup);
    }
}

static void expect_file_rows(const char *path, int64_t tp, const struct row *rows, size_t count)
{
    struct fp8r_checkpoint checkpoint = {0};
    struct fp8r_projection_list list = {0};
    struct fp8r_tool_error error = {0};
    if (fp8r_checkpoint_open(&path, 1, &checkpoint, &error) != 0) fail_msg("%s", error.text);
    if (fp8r_layer_shapes_list(&checkpoint, tp, &list, &error) != 0) fail_msg("%s", error.text);
    expect_rows(&list, rows, count);
    fp8r_projection_list_fini(&list);
    fp8r_checkpoint_fini(&checkpoint);
}

static void layers_are_listed_from_one_file_and_from_shards(void **state)
{
    (void)state;
    size_t count = sizeof small_rows / sizeof small_rows[0];
    expect_file_rows(CHECKPOINTS "small.safetensors", 1, small_rows, count);
    expect_file_rows(CHECKPOINTS "small.safetensors.index.json", 1, small_rows, count);
    expect_file_rows(CHECKPOINTS "small.safetensors", 2, small_rows_tp2, count);
}

static void shards_named_one_by_one_are_one_model(void **state)
{
    (void)state;
    static const char *const paths[] = {CHECKPOINTS "shard-2-of-2.safetensors",
                                        CHECKPOINTS "shard-1-of-2.safetensors"};
    struct fp8r_checkpoint checkpoint = {0};
    struct fp8r_tool_error error = {0};
    assert_int_equal(fp8r_checkpoint_open(paths, 2, &checkpoint, &error), 0);
    assert_int_equal(checkpoint.count, 29);
    for (size_t i = 1; i < checkpoint.count; i++) {
        assert_true(strcmp(checkpoint.tensors[i - 1].tensor->name, checkpoint.tensors[i].tensor->name) < 0);
    }
    const struct fp8r_checkpoint_tensor *found =
        fp8r_checkpoint_find(&checkpoint, "model.layers.0.self_attn.q_proj.weight_scale");
    assert_non_null(found);
    assert_string_equal(found->path, paths[0]);
    assert_null(fp8r_checkpoint_find(&checkpoint, "model.layers.0"));
    fp8r_checkpoint_fini(&checkpoint);
}

static void expect_open_error(const char *const *paths, size_t count, const char *const *words)
{
    struct fp8r_checkpoint checkpoint = {0};
    struct fp8r_tool_error error = {0};
    int rc = fp8r_checkpoint_open(paths, count, &checkpoint, &error);
    if (rc != FP8R_EXIT_BAD_DATA) fail_msg("exit code %d for %s", rc, paths[0]);
    for (; *words != NULL; words++) {
        if (strstr(error.text, *words) == NULL) fail_msg("no '%s' in '%s'", *words, error.text);
    }
    assert_null(checkpoint.files);
    assert_null(checkpoint.tensors);
}

static void one_tensor_in_two_files_is_refused(void **state)
{
    (void)state;
    static const char *const paths[] = {CHECKPOINTS "small.safetensors",
                                        CHECKPOINTS "shard-1-of-2.safetensors"};
    expect_open_error(
        paths, 2, (const char *const[]){"is also in", "small.safetensors", "shard-1-of-2.safetensors", NULL});
}

static void expect_index_error(const char *text, const char *const *words)
{
    struct fp8r_shard_index index = {0};
    struct fp8r_tool_error error = {0};
    assert_int_equal(fp8r_shard_index_parse(text, strlen(text), "i.json", &index, &error),
                     FP8R_EXIT_BAD_DATA);
    for (; *words != NULL; words++) {
        if (strstr(error.text, *words) == NULL) fail_msg("no '%s' in '%s'", *words, error.text);
    }
    assert_null(index.entries);
}

static void bad_indexes_are_refused(void **state)
{
    (void)state;
    expect_index_error("{", (const char *const[]){"i.json", "bad JSON", NULL});
    expect_index_error("{}", (const char *const[]){"weight_map is missing", NULL});
    expect_index_error("{\"weight_map\":[]}", (const char *const[]){"weight_map is an array", NULL});
    expect_index_error("{\"weight_map\":{}}", (const char *const[]){"weight_map is empty", NULL});
    expect_index_error("{\"weight_map\":{\"a\":1}}",
                       (const char *const[]){"weight_map['a']", "an integer", NULL});
    expect_index_error("{\"weight_map\":{\"a\":\"\"}}",
                       (const char *const[]){"weight_map['a']", "file name", NULL});
    expect_index_error("{\"weight_map\":{\"a\":\"../b\"}}",
                       (const char *const[]){"weight_map['a'] is a path", NULL});
    expect_index_error("{\"weight_map\":{\"a\":\"/etc/b\"}}", (const char *const[]){"is a path", NULL});
    expect_index_error("{\"weight_map\":{\"a\":\"..\"}}", (const char *const[]){"is a path", NULL});
    expect_index_error("{\"weight_map\":{\"a\":\"x\",\"a\":\"y\"}}",
                       (const char *const[]){"duplicate", NULL});
}

static void index_and_files_must_agree(void **state)
{
    (void)state;
    static const char header[] = "{\"a.weight\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]},"
                                 "\"b.weight\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[2,3]}}";
    static const char partial[] = "{\"weight_map\":{\"b.weight\":\"one.safetensors\"}}";
    static const char absent[] = "{\"weight_map\":{\"c.weight\":\"one.safetensors\"}}";
    static const char no_file[] = "{\"weight_map\":{\"a.weight\":\"two.safetensors\"}}";
    struct folder folder;
    folder_make(&folder);
    size_t bytes = 0;
    unsigned char *image = image_make(header, 3, &bytes);
    folder_write(&folder, "one.safetensors", image, bytes);
    free(image);
    struct fp8r_checkpoint checkpoint = {0};
    struct fp8r_tool_error error = {0};
    /* A file may hold more than its map says; the map decides. */
    const char *path = folder_write(&folder, "i.json", partial, strlen(partial));
    assert_int_equal(fp8r_checkpoint_open(&path, 1, &checkpoint, &error), 0);
    assert_int_equal(checkpoint.count, 1);
    assert_string_equal(checkpoint.tensors[0].tensor->name, "b.weight");
    fp8r_checkpoint_fini(&checkpoint);
    path = folder_write(&folder, "i.json", absent, strlen(absent));
    expect_open_error(&path, 1,
                      (const char *const[]){"i.json", "'c.weight'", "one.safetensors", "not hold", NULL});
    path = folder_write(&folder, "i.json", no_file, strlen(no_file));
    expect_open_error(&path, 1, (const char *const[]){"two.safetensors", NULL});
    folder_remove(&folder);
}

static void shares_that_do_not_divide_are_refused(void **state)
{
    (void)state;
    const char *path = CHECKPOINTS "small.safetensors";
    struct fp8r_checkpoint checkpoint = {0};
    struct fp8r_projection_list list = {0};
    struct fp8r_tool_error error = {0};
    assert_int_equal(fp8r_checkpoint_open(&path, 1, &checkpoint, &error), 0);
    assert_int_equal(fp8r_layer_shapes_list(&checkpoint, 3, &list, &error), FP8R_EXIT_USAGE);
    assert_non_null(strstr(error.text, "tp 3 does not divide N 40 of tensor 'lm_head.weight'"));
    assert_int_equal(fp8r_layer_shapes_list(&checkpoint, 0, &list, &error), FP8R_EXIT_USAGE);
    assert_int_equal(list.count, 0);
    fp8r_projection_list_fini(&list);
    fp8r_checkpoint_fini(&checkpoint);
}

static void equal_names_of_other_shapes_stay_apart(void **state)
{
    (void)state;
    static const char header[] =
        "{\"h.0.a.weight\":{\"dtype\":\"F8_E4M3\",\"shape\":[2,1],\"data_offsets\":[0,2]},"
        "\"h.1.a.weight\":{\"dtype\":\"F8_E4M3\",\"shape\":[1,1],\"data_offsets\":[2,3]},"
        "\"h.2.a.weight\":{\"dtype\":\"F8_E4M3\",\"shape\":[2,1],\"data_offsets\":[3,5]},"
        "\"h.x3.a.weight\":{\"dtype\":\"F8_E4M3\",\"shape\":[2,1],\"data_offsets\":[5,7]},"
        "\"h.3.a.bias\":{\"dtype\":\"F8_E4M3\",\"shape\":[1],\"data_offsets\":[7,8]}}";
    static const struct row rows[] = {{"h.*.a.weight", 2, 1, 2, false},
                                      {"h.*.a.weight", 1, 1, 1, false},
                                      {"h.x3.a.weight", 2, 1, 1, false}};
    struct folder folder;
    folder_make(&folder);
    size_t bytes = 0;
    unsigned char *image = image_make(header, 8, &bytes);
    expect_file_rows(folder_write(&folder, "one.safetensors", image, bytes), 1, rows, 3);
    free(image);
    folder_remove(&folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layers_are_listed_from_one_file_and_from_shards),
        cmocka_unit_test(shards_named_one_by_one_are_one_model),
        cmocka_unit_test(one_tensor_in_two_files_is_refused),
        cmocka_unit_test(bad_indexes_are_refused),
        cmocka_unit_test(index_and_files_must_agree),
        cmocka_unit_test(shares_that_do_not_divide_are_refused),
        cmocka_unit_test(equal_names_of_other_shapes_stay_apart),
    };
    return cmocka_run_group_tests_name("checkpoint", tests, NULL, NULL);
}
