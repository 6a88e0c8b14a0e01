/* The safetensors header: a file of the format's own library, every rule of the format broken once, and a
 * file cut at every byte. SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "model/image.h"
#include "model/safetensors.h"

#define SMALL FP8R_TEST_DATA "/checkpoints/small.safetensors"

static const struct fp8r_tensor *tensor_named(const struct fp8r_safetensors *file, const char *name)
{
    for (size_t i = 0; i < file->count; i++) {
        if (strcmp(file->tensors[i].name, name) == 0) return &file->tensors[i];
    }
    fail_msg("no tensor %s", name);
    return NULL;
}

static void library_file_is_read_exactly(void **state)
{
    (void)state;
    struct fp8r_safetensors file;
    struct fp8r_tool_error error = {0};
    assert_int_equal(fp8r_safetensors_read(SMALL, &file, &error), 0);
    assert_int_equal(file.count, 29);
    const struct fp8r_tensor *head = tensor_named(&file, "lm_head.weight");
    assert_int_equal(head->rank, 2);
    assert_int_equal(head->shape[0], 40);
    assert_int_equal(head->shape[1], 64);
    assert_string_equal(head->type->name, "F32");
    const struct fp8r_tensor *scalar = tensor_named(&file, "model.layers.1.self_attn.k_proj.weight_scale");
    assert_int_equal(scalar->rank, 0);
    assert_string_equal(scalar->type->name, "BF16");
    assert_int_equal(scalar->end_bytes - scalar->begin_bytes, 2);
    /* The bytes that the range names are the tensor: (i mod 64 - 31) / 8 in fp32. */
    size_t count = 0;
    unsigned char *bytes = file_bytes(SMALL, &count);
    for (size_t i = 0; i < 40 * 64; i++) {
        float value;
        memcpy(&value, bytes + head->begin_bytes + 4 * i, sizeof value);
        if (value != ((float)(i % 64) - 31.0f) / 8.0f) fail_msg("element %zu is %g", i, (double)value);
    }
    free(bytes);
    fp8r_safetensors_fini(&file);
}

static void good_headers_are_accepted(void **state)
{
    (void)state;
    static const struct {
        const char *header;
        size_t data_bytes, count;
    } cases[] = {
        {"{}", 0, 0},
        {"{}      ", 0, 0},
        {"{\"__metadata__\":{}}", 0, 0},
        {"{\"__metadata__\":{\"a\":\"b\"},\"t\":{\"dtype\":\"U8\",\"shape\":[3],\"data_offsets\":[0,3]}}", 3,
         1},
        {"{\"t\":{\"dtype\":\"F64\",\"shape\":[],\"data_offsets\":[0,8]}}", 8, 1},
        {"{\"t\":{\"dtype\":\"F4\",\"shape\":[2,3],\"data_offsets\":[0,3]}}", 3, 1},
        {"{\"t\":{\"dtype\":\"F32\",\"shape\":[0,1000000],\"data_offsets\":[0,0]}}", 0, 1},
        /* Out of order, and an empty tensor where another starts. */
        {"{\"b\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[1,3]},"
         "\"e\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[1,1]},"
         "\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}",
         3, 3},
        {"{\"t\":{\"dtype\":\"U8\",\"shape\":[1,1,1,1,1,1,1,1,1,1,1,1],\"data_offsets\":[0,1]}}", 1, 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct fp8r_safetensors file;
        struct fp8r_tool_error error = {0};
        size_t bytes = 0;
        unsigned char *image = image_make(cases[i].header, cases[i].data_bytes, &bytes);
        if (fp8r_safetensors_parse(image, bytes, bytes, "x", &file, &error) != 0) {
            fail_msg("%s: %s", cases[i].header, error.text);
        }
        assert_int_equal(file.count, cases[i].count);
        fp8r_safetensors_fini(&file);
        free(image);
    }
}

/* Expects a refusal whose one line names the file and holds every word (NULL ends them). */
static void expect_refused(const void *image, size_t head_bytes, uint64_t file_bytes_,
                           const char *const *words)
{
    struct fp8r_safetensors file, before;
    struct fp8r_tool_error error = {0};
    memset(&file, 0x5a, sizeof file);
    before = file;
    int rc = fp8r_safetensors_parse(image, head_bytes, file_bytes_, "x.safetensors", &file, &error);
    if (rc != FP8R_EXIT_BAD_DATA) fail_msg("exit code %d where '%s' was due", rc, words[0]);
    assert_non_null(strstr(error.text, "x.safetensors"));
    for (; *words != NULL; words++) {
        if (strstr(error.text, *words) == NULL) fail_msg("no '%s' in '%s'", *words, error.text);
    }
    assert_memory_equal(&file, &before, sizeof file);
}

#define U8_TENSOR(name, begin, end, count)                                                                   \
    "\"" name "\":{\"dtype\":\"U8\",\"shape\":[" #count "],\"data_offsets\":[" #begin "," #end "]}"

static const struct {
    const char *header;
    size_t data_bytes;
    const char *words[5];
} bad_headers[] = {
    {"", 0, {"begin with '{'"}},
    {" {}", 0, {"begin with '{'"}},
    {"[]", 0, {"begin with '{'"}},
    {"{", 0, {"bad JSON"}},
    {"{}x", 0, {"bad JSON"}},
    {"{\"\xff\":1}", 0, {"bad JSON"}},
    {"{\"a\\u0000b\":1}", 0, {"bad JSON"}},
    {"{" U8_TENSOR("t", 0, 1, 1) "," U8_TENSOR("t", 0, 1, 1) "}", 1, {"duplicate", "t"}},
    {"{\"t\":{\"dtype\":\"U8\",\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}",
     1,
     {"duplicate", "dtype"}},
    {"{\"__metadata__\":7}", 0, {"__metadata__", "an integer"}},
    {"{\"__metadata__\":{\"a\":7}}", 0, {"__metadata__", "an integer"}},
    {"{\"t\":7}", 0, {"'t'", "an integer", "object"}},
    {"{\"t\":{}}", 0, {"'t'", "shape is missing"}},
    {"{\"t\":{\"shape\":[1],\"data_offsets\":[0,1]}}", 1, {"'t'", "dtype is missing"}},
    {"{\"t\":{\"dtype\":3,\"shape\":[1],\"data_offsets\":[0,1]}}", 1, {"'t'", "dtype is an integer"}},
    {"{\"t\":{\"dtype\":\"Q8\",\"shape\":[1],\"data_offsets\":[0,1]}}", 1, {"'t'", "\"Q8\""}},
    {"{\"t\":{\"dtype\":\"U8\",\"shape\":4,\"data_offsets\":[0,1]}}", 1, {"'t'", "shape is an integer"}},
    {"{\"t\":{\"dtype\":\"U8\",\"shape\":[1.0],\"data_offsets\":[0,1]}}", 1, {"'t'", "shape[0]", "fraction"}},
    {"{\"t\":{\"dtype\":\"U8\",\"shape\":[1,-1],\"data_offsets\":[0,1]}}",
     1,
     {"'t'", "shape[1] is negative"}},
    {"{\"t\":{\"dtype\":\"U8\",\"shape\":[\"1\"],\"data_offsets\":[0,1]}}", 1, {"'t'", "a string"}},
    {"{\"t\":{\"dtype\":\"U8\",\"shape\":[1]}}", 1, {"'t'", "data_offsets must be [begin, end]"}},
    {"{\"t\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0]}}", 1, {"'t'", "data_offsets must"}},
    {"{\"t\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1,2]}}", 1, {"'t'", "data_offsets must"}},
    {"{\"t\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[-1,0]}}", 1, {"'t'", "data_offsets must"}},
    {"{\"t\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":{\"a\":0}}}", 1, {"'t'", "data_offsets must"}},
    {"{" U8_TENSOR("t", 2, 1, 1) "}", 3, {"'t'", "begin 2 lies after end 1"}},
    {"{" U8_TENSOR("t", 0, 2, 2) "}", 1, {"'t'", "end 2 lies past the file's 1 bytes"}},
    {"{" U8_TENSOR("t", 0, 9223372036854775807, 1) "}", 1, {"'t'", "lies past"}},
    {"{" U8_TENSOR("t", 0, 9223372036854775808, 1) "}", 1, {"bad JSON", "too big"}},
    {"{" U8_TENSOR("t", 0, 2, 1) "}", 2, {"'t'", "[1] of U8 takes 1 bytes, data_offsets give 2"}},
    {"{\"t\":{\"dtype\":\"F4\",\"shape\":[3],\"data_offsets\":[0,2]}}", 2, {"'t'", "whole bytes"}},
    {"{\"t\":{\"dtype\":\"F32\",\"shape\":[4294967296,4294967296],\"data_offsets\":[0,0]}}",
     0,
     {"'t'", "below 2^63"}},
    {"{\"t\":{\"dtype\":\"U8\",\"shape\":[2305843009213693952],\"data_offsets\":[0,0]}}",
     0,
     {"'t'", "below 2^63"}},
    {"{" U8_TENSOR("a", 0, 2, 2) "," U8_TENSOR("b", 1, 3, 2) "}", 3, {"'b'", "overlaps that of tensor 'a'"}},
    {"{" U8_TENSOR("a", 0, 2, 2) "," U8_TENSOR("b", 0, 2, 2) "}", 2, {"overlaps"}},
    {"{" U8_TENSOR("a", 0, 1, 1) "," U8_TENSOR("b", 2, 3, 1) "}", 3, {"'b'", "1 bytes before its data"}},
    {"{" U8_TENSOR("a", 1, 2, 1) "}", 2, {"'a'", "1 bytes before"}},
    {"{" U8_TENSOR("a", 0, 1, 1) "}", 3, {"'a'", "2 bytes follow"}},
    {"{}", 1, {"1 bytes of data, but no tensor"}},
};

static void broken_rules_are_named(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof bad_headers / sizeof bad_headers[0]; i++) {
        size_t bytes = 0;
        unsigned char *image = image_make(bad_headers[i].header, bad_headers[i].data_bytes, &bytes);
        expect_refused(image, bytes, bytes, bad_headers[i].words);
        free(image);
    }
}

static void header_lengths_are_checked(void **state)
{
    (void)state;
    unsigned char image[10] = {0};
    expect_refused(image, 0, 0, (const char *const[]){"0 bytes are too few", NULL});
    expect_refused(image, 7, 7, (const char *const[]){"7 bytes are too few", NULL});
    image[0] = 3;
    expect_refused(image, 10, 10, (const char *const[]){"header length 3 runs past", NULL});
    /* 100,000,001: one byte past the format's limit, in a file that would hold it. */
    memcpy(image, "\x01\xe1\xf5\x05", 4);
    expect_refused(image, 10, 200000000, (const char *const[]){"100000001", "limit of 100000000", NULL});
    memset(image, 0xff, 8);
    expect_refused(image, 10, UINT64_MAX, (const char *const[]){"18446744073709551615", NULL});
    /* At the limit the length is fine; this head was cut. */
    memcpy(image, "\x00\xe1\xf5\x05\0\0\0\0", 8);
    expect_refused(image, 10, 100000008, (const char *const[]){"cut at byte 10", NULL});
}

static void long_names_leave_room_for_the_complaint(void **state)
{
    (void)state;
    char header[2200];
    char name[2001];
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    (void)snprintf(header, sizeof header, "{\"%s\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,2]}}",
                   name);
    size_t bytes = 0;
    unsigned char *image = image_make(header, 2, &bytes);
    expect_refused(image, bytes, bytes, (const char *const[]){"nnnn", "data_offsets give 2", NULL});
    free(image);
}

static void file_cut_at_any_byte_is_refused(void **state)
{
    (void)state;
    size_t count = 0;
    unsigned char *bytes = file_bytes(SMALL, &count);
    size_t header = 8 + ((size_t)bytes[0] | (size_t)bytes[1] << 8);
    /* Past the header only the size counts, so a few hundred lengths there say as much as all. */
    for (size_t cut = 0; cut < count; cut += cut < header + 16 ? 1 : 251) {
        struct fp8r_safetensors file;
        struct fp8r_tool_error error = {0};
        unsigned char *copy =
            malloc(cut + 1); /* its own block: a read past the cut is a read past the block */
        assert_non_null(copy);
        memcpy(copy, bytes, cut);
        if (fp8r_safetensors_parse(copy, cut, cut, "x", &file, &error) != FP8R_EXIT_BAD_DATA) {
            fail_msg("accepted when cut at byte %zu", cut);
        }
        free(copy);
    }
    struct fp8r_safetensors file;
    struct fp8r_tool_error error = {0};
    assert_int_equal(fp8r_safetensors_parse(bytes, count - 1, count - 1, "x", &file, &error),
                     FP8R_EXIT_BAD_DATA);
    assert_int_equal(fp8r_safetensors_parse(bytes, header, count, "x", &file, &error), 0);
    fp8r_safetensors_fini(&file);
    free(bytes);
}

static void shapes_print_within_their_room(void **state)
{
    (void)state;
    char text[16];
    const int64_t shape[] = {4096, 14336, 1, 1, 1};
    struct fp8r_tensor tensor = {.shape = shape, .rank = 2};
    assert_string_equal(fp8r_tensor_shape_format(&tensor, text, sizeof text), "[4096,...]");
    char room[32];
    assert_string_equal(fp8r_tensor_shape_format(&tensor, room, sizeof room), "[4096,14336]");
    tensor.rank = 0;
    assert_string_equal(fp8r_tensor_shape_format(&tensor, room, sizeof room), "[]");
    const int64_t huge[] = {INT64_MAX, INT64_MAX};
    tensor = (struct fp8r_tensor){.shape = huge, .rank = 2};
    assert_string_equal(fp8r_tensor_shape_format(&tensor, text, sizeof text), "[...]");
}

static void roles_follow_name_and_shape(void **state)
{
    (void)state;
    static const struct {
        const char *name, *type;
        size_t rank;
        enum fp8r_tensor_role role;
    } cases[] = {
        {"model.layers.0.mlp.up_proj.weight", "BF16", 2, FP8R_TENSOR_LINEAR},
        {"lm_head.weight", "F16", 2, FP8R_TENSOR_LINEAR},
        {"x.weight", "F8_E4M3", 2, FP8R_TENSOR_LINEAR},
        {"model.embed_tokens.weight", "BF16", 2, FP8R_TENSOR_EMBEDDING},
        {"embeddings.word_embeddings.weight", "F32", 2, FP8R_TENSOR_EMBEDDING},
        {"transformer.wte.weight", "F32", 2, FP8R_TENSOR_EMBEDDING},
        {"model.norm.weight", "BF16", 1, FP8R_TENSOR_NORM},
        {"embeddings.LayerNorm.weight", "F32", 1, FP8R_TENSOR_NORM},
        {"x.weight", "U8", 2, FP8R_TENSOR_OTHER},
        {"x.weight", "BF16", 3, FP8R_TENSOR_OTHER},
        {"x.weight_scale", "F32", 2, FP8R_TENSOR_OTHER},
        {"x.bias", "F32", 1, FP8R_TENSOR_OTHER},
        {"weight", "F32", 2, FP8R_TENSOR_OTHER},
    };
    const int64_t shape[] = {4, 4, 4};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct fp8r_tensor tensor = {.name = cases[i].name,
                                           .type = fp8r_tensor_type_find(cases[i].type),
                                           .shape = shape,
                                           .rank = cases[i].rank};
        assert_string_equal(fp8r_tensor_role_name(fp8r_tensor_role(&tensor)),
                            fp8r_tensor_role_name(cases[i].role));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(library_file_is_read_exactly),
        cmocka_unit_test(good_headers_are_accepted),
        cmocka_unit_test(broken_rules_are_named),
        cmocka_unit_test(header_lengths_are_checked),
        cmocka_unit_test(long_names_leave_room_for_the_complaint),
        cmocka_unit_test(file_cut_at_any_byte_is_refused),
        cmocka_unit_test(shapes_print_within_their_room),
        cmocka_unit_test(roles_follow_name_and_shape),
    };
    return cmocka_run_group_tests_name("safetensors", tests, NULL, NULL);
}
