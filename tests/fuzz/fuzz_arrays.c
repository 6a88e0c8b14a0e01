/* Products and conversions of arrays made from the input's bytes: whatever is taken, every element of an array lies in its
 * matrix where its own strides put it; what is refused leaves the result as it was and says why. Extents and strides stand
 * in exactly sized blocks, the sanitizer watches.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <fp8route/fp8route.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { ARRAYS = 6, ELEMENTS_MOST = 4096, RANK_MOST = 66 };

struct input {
    const uint8_t *at, *end;
};

static int64_t take(struct input *input, int64_t below)
{
    return input->at < input->end ? *input->at++ % below : 0;
}

/* Mostly small, sometimes at the edge of what 64 bits count. */
static int64_t take_number(struct input *input)
{
    static const int64_t odd[] = {-1, INT64_MAX, INT64_MIN, (int64_t)1 << 31, (int64_t)1 << 32, (int64_t)1 << 62, 0, 1};
    int64_t kind = take(input, 32);
    return kind < 30 ? kind % 6 : odd[take(input, 8)];
}

/* Leads with the extents of `like` where the input says so, as scales and results do. */
static fp8r_array take_array(struct input *input, const fp8r_array *like)
{
    fp8r_array made = {.dtype = (int32_t)take(input, 7)};
    int64_t kind = take(input, 32), step = 1;
    if (kind == 31)
        return (fp8r_array){.dtype = made.dtype, .rank = (int32_t)take(input, 3) - 1};
    made.rank = kind < 28 ? (int32_t)(kind % 5) : (int32_t)take(input, RANK_MOST);
    int64_t *extents = malloc((size_t)(made.rank ? made.rank : 1) * sizeof *extents);
    int64_t *strides = malloc((size_t)(made.rank ? made.rank : 1) * sizeof *strides);
    if (!extents || !strides)
        abort();
    bool is_alike = like && like->extents && take(input, 3) > 0, is_packed = take(input, 3) > 0;
    for (int i = 0; i < made.rank; i++)
        extents[i] = is_alike && i < like->rank - 1 ? like->extents[i] : made.rank > 8 ? 1 : take_number(input);
    for (int i = made.rank - 1; i >= 0; i--) {
        strides[i] = is_packed ? step : take_number(input);
        step = extents[i] > 0 && extents[i] < 8 && step < 1 << 20 ? step * extents[i] : step;
    }
    made.extents = extents;
    made.strides = strides;
    return made;
}

static void drop(fp8r_array *array)
{
    free((void *)(uintptr_t)array->extents);
    free((void *)(uintptr_t)array->strides);
}

/* Elements, or -1 where there are too many to walk. */
static int64_t count_of(const fp8r_array *array)
{
    int64_t count = 1;
    for (int i = 0; i < array->rank; i++)
        if (array->extents[i] == 0)
            return 0;
    for (int i = 0; i < array->rank; i++) {
        if (array->extents[i] > ELEMENTS_MOST || count > ELEMENTS_MOST)
            return -1;
        count *= array->extents[i];
    }
    return count <= ELEMENTS_MOST ? count : -1;
}

/* Unsigned: what overflows does so on both sides alike. */
static uint64_t array_place(const fp8r_array *array, int64_t index)
{
    uint64_t place = 0;
    for (int i = array->rank - 1; i >= 0; i--) {
        place += (uint64_t)(index % array->extents[i]) * (uint64_t)array->strides[i];
        index /= array->extents[i];
    }
    return place;
}

static uint64_t matrix_place(const fp8r_matrix *matrix, int64_t index, bool is_turned)
{
    int64_t inner = is_turned ? matrix->rows : matrix->cols, outer = is_turned ? matrix->cols : matrix->rows;
    int64_t first = index / inner % outer, last = index % inner;
    return (uint64_t)(index / inner / outer) * (uint64_t)matrix->batch_stride +
           (uint64_t)(is_turned ? last : first) * (uint64_t)matrix->row_stride +
           (uint64_t)(is_turned ? first : last) * (uint64_t)matrix->col_stride;
}

static void check_same(const char *name, const fp8r_array *array, const fp8r_matrix *matrix, bool is_turned)
{
    int64_t count = array->extents || array->rank > 0 ? count_of(array) : 1;
    if (array->dtype != matrix->dtype)
        fprintf(stderr, "%s: type %d became %d\n", name, (int)array->dtype, (int)matrix->dtype), abort();
    if (count < 0 || (!array->extents && matrix->dtype == FP8R_DTYPE_NONE))
        return;
    bool is_empty = matrix->batch == 0 || matrix->rows == 0 || matrix->cols == 0;
    if (is_empty != (count == 0) || (count > 0 && matrix->batch * matrix->rows * matrix->cols != count))
        fprintf(stderr, "%s: %lld elements became another count\n", name, (long long)count), abort();
    for (int64_t i = 0; i < count; i++)
        if (array_place(array, i) != matrix_place(matrix, i, is_turned))
            fprintf(stderr, "%s: element %lld lies elsewhere\n", name, (long long)i), abort();
}

static void check_refusal(const void *result, size_t bytes)
{
    if (!fp8r_last_error()[0])
        fprintf(stderr, "a refusal says nothing\n"), abort();
    for (size_t i = 0; i < bytes; i++)
        if (((const unsigned char *)result)[i] != 0xA5)
            fprintf(stderr, "a refusal wrote\n"), abort();
}

static void try_product(struct input *input, const fp8r_array it[ARRAYS])
{
    fp8r_arrays arrays = {.struct_size = sizeof arrays, .a = it[0], .b = it[1], .out = it[2], .scale_a = it[3],
                          .scale_b = it[4], .bias = it[5], .form = (int32_t)take(input, 4),
                          .accumulation = (int32_t)take(input, 3), .numerics = (int32_t)take(input, 3),
                          .flags = (uint32_t)take(input, 3)};
    fp8r_matmul matmul;
    memset(&matmul, 0xA5, sizeof matmul);
    if (fp8r_matmul_from_arrays(&arrays, &matmul) != FP8R_OK) {
        check_refusal(&matmul, sizeof matmul);
        return;
    }
    check_same("a", &it[0], &matmul.a, false);
    check_same("b", &it[1], &matmul.b, arrays.form == FP8R_FORM_LINEAR);
    if (it[2].extents)
        check_same("out", &it[2], &matmul.out, false);
    check_same("scale_a", &it[3], &matmul.scale_a, false);
    check_same("scale_b", &it[4], &matmul.scale_b, false);
    check_same("bias", &it[5], &matmul.bias, false);
}

static void try_conversion(struct input *input, const fp8r_array it[ARRAYS])
{
    fp8r_matrix made[3];
    memset(made, 0xA5, sizeof made);
    if (fp8r_quantize_from_arrays(&it[0], &it[1], &it[2], (int32_t)take(input, 3), &made[0], &made[1], &made[2]) != FP8R_OK) {
        check_refusal(made, sizeof made);
        return;
    }
    for (int i = 0; i < 3; i++)
        check_same(i == 0 ? "in" : i == 1 ? "out" : "scale", &it[i], &made[i], false);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input input = {data, data + size};
    fp8r_array arrays[ARRAYS];
    bool is_conversion = take(&input, 4) == 0;
    for (int i = 0; i < ARRAYS; i++)
        arrays[i] = take_array(&input, i == 0 || (i == 1 && !is_conversion) ? NULL : &arrays[0]);
    (is_conversion ? try_conversion : try_product)(&input, arrays);
    for (int i = 0; i < ARRAYS; i++)
        drop(&arrays[i]);
    return 0;
}
