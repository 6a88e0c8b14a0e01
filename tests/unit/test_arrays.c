/* Products of arrays: what each shape means, what is refused and in which words.
 * SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include <fp8route/fp8route.h>

/* Shapes live in the test that uses them. */
#define EXTENTS(...) ((int64_t[]){__VA_ARGS__})

static int64_t packed[64][8]; /* strides of made arrays */
static int packed_used;

static fp8r_array array(int32_t dtype, int rank, const int64_t *extents)
{
    int64_t *strides = packed[packed_used++ % 64], step = 1;
    for (int i = rank - 1; i >= 0; i--) {
        strides[i] = step;
        step *= extents[i] > 0 ? extents[i] : 1;
    }
    return (fp8r_array){.extents = extents, .strides = strides, .dtype = dtype, .rank = rank};
}

static fp8r_arrays plain(fp8r_array a, fp8r_array b)
{
    return (fp8r_arrays){.struct_size = sizeof(fp8r_arrays), .a = a, .b = b, .out.dtype = FP8R_DTYPE_BF16};
}

static void assert_made(const fp8r_arrays *arrays, fp8r_matmul *matmul)
{
    fp8r_status status = fp8r_matmul_from_arrays(arrays, matmul);
    if (status != FP8R_OK)
        fail_msg("%s", fp8r_last_error());
}

static void assert_refused(const fp8r_arrays *arrays, fp8r_status expected, const char *words)
{
    fp8r_matmul matmul;
    assert_int_equal(fp8r_matmul_from_arrays(arrays, &matmul), expected);
    if (!strstr(fp8r_last_error(), words))
        fail_msg("\"%s\" does not say \"%s\"", fp8r_last_error(), words);
}

static void leading_dimensions_are_rows(void **state)
{
    (void)state;
    fp8r_arrays arrays = plain(array(FP8R_DTYPE_E4M3, 3, EXTENTS(2, 3, 8)), array(FP8R_DTYPE_E4M3, 2, EXTENTS(8, 5)));
    fp8r_matmul matmul;
    arrays.scale_a = array(FP8R_DTYPE_FP32, 3, EXTENTS(2, 3, 1));
    arrays.scale_b = array(FP8R_DTYPE_FP32, 2, EXTENTS(1, 5));
    arrays.bias = array(FP8R_DTYPE_FP16, 1, EXTENTS(5));
    assert_made(&arrays, &matmul);
    assert_int_equal(matmul.a.rows, 6);
    assert_int_equal(matmul.a.row_stride, 8);
    assert_int_equal(matmul.scale_a.rows, 6);
    assert_int_equal(matmul.scale_b.cols, 5);
    assert_int_equal(matmul.out.rows, 6);
    assert_int_equal(matmul.out.row_stride, 5);
    arrays.a.strides = EXTENTS(24, 16, 1); /* rows 0 and 1 of the second dimension are 16 apart, the next 24 */
    assert_refused(&arrays, FP8R_ERROR_UNSUPPORTED, "a has shape [2, 3, 8], and its rows are not at one stride");
    arrays.a.strides = EXTENTS(48, 16, 1);
    assert_made(&arrays, &matmul);
    assert_int_equal(matmul.a.row_stride, 16);
}

static void one_element_means_the_same_in_every_rank(void **state)
{
    (void)state;
    fp8r_arrays arrays = plain(array(FP8R_DTYPE_E4M3, 2, EXTENTS(4, 8)), array(FP8R_DTYPE_E4M3, 2, EXTENTS(8, 5)));
    const int64_t ones[3] = {1, 1, 1};
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 4; j++) {
            fp8r_matmul matmul;
            arrays.scale_a = array(FP8R_DTYPE_FP32, i, ones);
            arrays.scale_b = array(FP8R_DTYPE_FP32, j, ones);
            assert_made(&arrays, &matmul);
            assert_int_equal(matmul.scale_a.rows, 1);
            assert_int_equal(matmul.scale_b.cols, 1);
        }
}

static void a_layer_s_weight_is_transposed(void **state)
{
    (void)state;
    fp8r_arrays arrays = plain(array(FP8R_DTYPE_BF16, 1, EXTENTS(8)), array(FP8R_DTYPE_E4M3, 2, EXTENTS(5, 8)));
    fp8r_matmul matmul;
    arrays.form = FP8R_FORM_LINEAR;
    arrays.scale_b = array(FP8R_DTYPE_FP32, 2, EXTENTS(5, 1));
    assert_made(&arrays, &matmul);
    assert_int_equal(matmul.a.rows, 1);
    assert_int_equal(matmul.b.rows, 8);
    assert_int_equal(matmul.b.row_stride, 1);
    assert_int_equal(matmul.b.col_stride, 8);
    assert_int_equal(matmul.scale_b.cols, 5);
    arrays.form = FP8R_FORM_PLAIN;
    arrays.b = array(FP8R_DTYPE_E4M3, 2, EXTENTS(8, 5));
    assert_made(&arrays, &matmul); /* b is the other way round, the scales are the same */
    assert_int_equal(matmul.scale_b.cols, 5);
    arrays.scale_b = array(FP8R_DTYPE_FP32, 2, EXTENTS(8, 1));
    assert_refused(&arrays, FP8R_ERROR_INVALID_ARGUMENT, "scale_b has shape [8, 1]");
}

static void batches_keep_their_dimensions(void **state)
{
    (void)state;
    fp8r_arrays arrays = plain(array(FP8R_DTYPE_E4M3, 3, EXTENTS(1, 4, 8)), array(FP8R_DTYPE_E4M3, 3, EXTENTS(3, 8, 5)));
    fp8r_matmul matmul;
    arrays.form = FP8R_FORM_BATCHED;
    arrays.scale_a = array(FP8R_DTYPE_FP32, 3, EXTENTS(3, 1, 1));
    arrays.bias = array(FP8R_DTYPE_FP32, 3, EXTENTS(3, 1, 5));
    assert_made(&arrays, &matmul);
    assert_int_equal(matmul.out.batch, 3);
    assert_int_equal(matmul.scale_a.batch, 3);
    assert_int_equal(matmul.out.batch_stride, 20);
    arrays.b = array(FP8R_DTYPE_E4M3, 2, EXTENTS(8, 5));
    assert_refused(&arrays, FP8R_ERROR_INVALID_ARGUMENT, "b has shape [8, 5]: it must have 3 dimensions");
}

static void a_layer_s_arrays_have_a_layer_s_names(void **state)
{
    (void)state;
    fp8r_arrays good = plain(array(FP8R_DTYPE_BF16, 2, EXTENTS(4, 8)), array(FP8R_DTYPE_E4M3, 2, EXTENTS(5, 8)));
    good.form = FP8R_FORM_LINEAR;
    fp8r_arrays arrays = good;
    arrays.a.dtype = FP8R_DTYPE_FP32;
    assert_refused(&arrays, FP8R_ERROR_INVALID_ARGUMENT, "x.dtype is fp32");
    arrays = good;
    arrays.b.dtype = FP8R_DTYPE_BF16;
    assert_refused(&arrays, FP8R_ERROR_INVALID_ARGUMENT, "weight.dtype is bf16: it must be e4m3");
    arrays = good;
    arrays.b = array(FP8R_DTYPE_E4M3, 2, EXTENTS(8, 5));
    assert_refused(&arrays, FP8R_ERROR_INVALID_ARGUMENT,
                   "weight has shape [8, 5], x [4, 8]: it must have 8 columns, as many as x has");
    arrays = good;
    arrays.scale_a = array(FP8R_DTYPE_FP32, 1, EXTENTS(4));
    assert_refused(&arrays, FP8R_ERROR_INVALID_ARGUMENT, "x_scale is given, but x is bf16");
    arrays = good;
    arrays.scale_b = array(FP8R_DTYPE_FP16, 1, EXTENTS(5));
    assert_refused(&arrays, FP8R_ERROR_INVALID_ARGUMENT, "weight_scale.dtype is fp16");
    arrays.scale_b = array(FP8R_DTYPE_FP32, 1, EXTENTS(4));
    assert_refused(&arrays, FP8R_ERROR_INVALID_ARGUMENT, "weight_scale has shape [4]");
}

static void what_does_not_fit_is_named(void **state)
{
    (void)state;
    const fp8r_arrays good = plain(array(FP8R_DTYPE_E4M3, 2, EXTENTS(4, 8)), array(FP8R_DTYPE_E4M3, 2, EXTENTS(8, 5)));
    fp8r_arrays arrays = good;
    arrays.b = array(FP8R_DTYPE_E4M3, 2, EXTENTS(7, 5));
    assert_refused(&arrays, FP8R_ERROR_INVALID_ARGUMENT, 
                   "b has shape [7, 5], a [4, 8]: it must have 8 rows, as many as a has columns");
    arrays = good;
    arrays.b = array(FP8R_DTYPE_E4M3, 2, EXTENTS(5, 8)); /* not transposed: b is named, and not a scale of its columns */
    arrays.scale_b = array(FP8R_DTYPE_FP32, 1, EXTENTS(5));
    assert_refused(&arrays, FP8R_ERROR_INVALID_ARGUMENT, "b has shape [5, 8]");
    arrays = good;
    arrays.a.dtype = -1;
    assert_refused(&arrays, FP8R_ERROR_INVALID_ARGUMENT, "a.dtype is unknown");
    arrays = good;
    arrays.scale_a = array(FP8R_DTYPE_FP32, 2, EXTENTS(3, 1));
    assert_refused(&arrays, FP8R_ERROR_INVALID_ARGUMENT, "scale_a has shape [3, 1], a [4, 8]");
    arrays = good;
    arrays.scale_a = array(FP8R_DTYPE_FP32, 1, EXTENTS(0));
    assert_refused(&arrays, FP8R_ERROR_INVALID_ARGUMENT, "scale_a has shape [0]");
    arrays = good;
    arrays.bias = array(FP8R_DTYPE_FP32, 1, EXTENTS(4));
    assert_refused(&arrays, FP8R_ERROR_INVALID_ARGUMENT, "bias has shape [4]: it must have one element a column of out, [5]");
    arrays = good;
    arrays.out = array(FP8R_DTYPE_BF16, 2, EXTENTS(3, 5));
    assert_refused(&arrays, FP8R_ERROR_INVALID_ARGUMENT, "out has shape [3, 5], a [4, 8]");
    arrays.out = array(FP8R_DTYPE_BF16, 2, EXTENTS(4, 6));
    assert_refused(&arrays, FP8R_ERROR_INVALID_ARGUMENT, "out.cols is 6");
    arrays = good;
    arrays.form = 3;
    assert_refused(&arrays, FP8R_ERROR_INVALID_ARGUMENT, "arrays.form is 3");
    arrays = good;
    arrays.struct_size = 8;
    assert_refused(&arrays, FP8R_ERROR_INVALID_ARGUMENT, "struct_size is 8");
}

static void rows_without_elements_have_no_strides(void **state)
{
    (void)state;
    fp8r_array a = {.extents = EXTENTS(2, 3, 0), .strides = EXTENTS(7, 1, 1), .dtype = FP8R_DTYPE_E4M3, .rank = 3};
    fp8r_arrays arrays = plain(a, array(FP8R_DTYPE_E4M3, 2, EXTENTS(0, 5)));
    fp8r_matmul matmul;
    assert_made(&arrays, &matmul);
    assert_int_equal(matmul.out.rows, 6);
    arrays.a.extents = EXTENTS(0, 3, 8);
    arrays.b = array(FP8R_DTYPE_E4M3, 2, EXTENTS(8, 5));
    assert_made(&arrays, &matmul);
    assert_int_equal(matmul.out.rows, 0);
}

static void sizes_beyond_64_bits_are_refused(void **state)
{
    (void)state;
    const int64_t half = INT64_C(1) << 40, strides[3] = {1, 1, 1};
    fp8r_array huge = {.extents = EXTENTS(half, half, 8), .strides = strides, .dtype = FP8R_DTYPE_E4M3, .rank = 3};
    fp8r_arrays arrays = plain(huge, array(FP8R_DTYPE_E4M3, 2, EXTENTS(8, 5)));
    assert_refused(&arrays, FP8R_ERROR_INVALID_ARGUMENT, "more than 64 bits");
}

static void scales_of_a_quantised_array(void **state)
{
    (void)state;
    fp8r_array in = array(FP8R_DTYPE_FP32, 3, EXTENTS(2, 3, 8)), out = array(FP8R_DTYPE_E4M3, 3, EXTENTS(2, 3, 8));
    fp8r_array scale = array(FP8R_DTYPE_FP32, 3, EXTENTS(2, 3, 1));
    fp8r_matrix x, q, s;
    assert_int_equal(fp8r_quantize_from_arrays(&in, &out, &scale, FP8R_SCALING_COMPUTE, &x, &q, &s), FP8R_OK);
    assert_int_equal(x.rows, 6);
    assert_int_equal(s.rows, 6);
    scale = array(FP8R_DTYPE_FP32, 2, EXTENTS(1, 8)); /* columns are told apart in a matrix only */
    assert_int_equal(fp8r_quantize_from_arrays(&in, &out, &scale, FP8R_SCALING_COMPUTE, &x, &q, &s),
                     FP8R_ERROR_INVALID_ARGUMENT);
    in = array(FP8R_DTYPE_FP32, 2, EXTENTS(6, 8));
    out = array(FP8R_DTYPE_E4M3, 2, EXTENTS(6, 8));
    assert_int_equal(fp8r_quantize_from_arrays(&in, &out, &scale, FP8R_SCALING_COMPUTE, &x, &q, &s), FP8R_OK);
    assert_int_equal(s.cols, 8);
    out.dtype = FP8R_DTYPE_E5M2;
    assert_int_equal(fp8r_quantize_from_arrays(&in, &out, &scale, FP8R_SCALING_COMPUTE, &x, &q, &s),
                     FP8R_ERROR_INVALID_ARGUMENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(leading_dimensions_are_rows),
        cmocka_unit_test(one_element_means_the_same_in_every_rank),
        cmocka_unit_test(a_layer_s_weight_is_transposed),
        cmocka_unit_test(a_layer_s_arrays_have_a_layer_s_names),
        cmocka_unit_test(batches_keep_their_dimensions),
        cmocka_unit_test(what_does_not_fit_is_named),
        cmocka_unit_test(rows_without_elements_have_no_strides),
        cmocka_unit_test(sizes_beyond_64_bits_are_refused),
        cmocka_unit_test(scales_of_a_quantised_array),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
