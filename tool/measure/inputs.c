/* Allocating operands, remembering them, and looking for damage.
 * SPDX-License-Identifier: Apache-2.0 */
#include "measure/inputs.h"

#include <stdlib.h>
#include <string.h>

#include "base/dtype.h"
#include "base/sizes.h"
#include "measure/fill.h"
#include "measure/measure_device.h"

const fp8r_matrix *fp8r_matmul_matrix(const fp8r_matmul *matmul, enum fp8r_input input)
{
    const fp8r_matrix *const matrices[FP8R_INPUT_COUNT] = {&matmul->a,       &matmul->b,       &matmul->out,
                                                           &matmul->scale_a, &matmul->scale_b, &matmul->bias};
    return matrices[input];
}

static fp8r_matrix *matrix_of(fp8r_matmul *matmul, int input)
{
    fp8r_matrix *const matrices[FP8R_INPUT_COUNT] = {&matmul->a,       &matmul->b,       &matmul->out,
                                                     &matmul->scale_a, &matmul->scale_b, &matmul->bias};
    return matrices[input];
}

bool fp8r_matrix_span_bytes(const fp8r_matrix *matrix, int64_t *bytes)
{
    const int64_t extents[3] = {matrix->batch, matrix->rows, matrix->cols};
    const int64_t strides[3] = {matrix->batch_stride, matrix->row_stride, matrix->col_stride};
    int64_t last = 0;
    *bytes = 0;
    if (matrix->dtype == FP8R_DTYPE_NONE || matrix->batch == 0 || matrix->rows == 0 || matrix->cols == 0)
        return true;
    return fp8r_size_last(extents, strides, &last) && fp8r_size_add(last, 1, &last) &&
           fp8r_size_mul(last, fp8r_dtype_bytes(matrix->dtype), bytes);
}

bool fp8r_matmul_span_bytes(const fp8r_matmul *matmul, int64_t *bytes)
{
    *bytes = 0;
    for (int i = 0; i < FP8R_INPUT_COUNT; i++) {
        int64_t span;
        if (!fp8r_matrix_span_bytes(fp8r_matmul_matrix(matmul, (enum fp8r_input)i), &span) ||
            !fp8r_size_add(*bytes, span, bytes))
            return false;
    }
    return true;
}

/* The largest power of two up to 256 that divides the address; 256 for NULL. */
static size_t align_of(const void *data)
{
    uintptr_t address = (uintptr_t)data;
    return address % 256 == 0 ? 256 : (size_t)(address & (~address + 1));
}

static int check_memory(const fp8r_matmul *shape, struct fp8r_tool_error *error)
{
    int64_t needed = 0, available = fp8r_host_available_bytes();
    if (!fp8r_matmul_span_bytes(shape, &needed))
        return fp8r_tool_error_set(error, FP8R_EXIT_INTERNAL,
                                   "the operands need more memory than 63 bits address");
    if (needed > available - available / 16) /* what is left keeps the machine responsive */
        return fp8r_tool_error_set(error, FP8R_EXIT_INTERNAL,
                                   "the operands need %.1f GiB, and %.1f GiB of memory are available",
                                   (double)needed / 0x1p30, (double)available / 0x1p30);
    return FP8R_EXIT_GOOD;
}

static bool create_area(struct fp8r_inputs *inputs, int input, enum fp8r_guard guard)
{
    fp8r_matrix *matrix = matrix_of(&inputs->matmul, input);
    int64_t bytes = 0;
    if (matrix->dtype == FP8R_DTYPE_NONE) return true;
    if (!fp8r_matrix_span_bytes(matrix, &bytes) ||
        !fp8r_area_create(&inputs->areas[input], (size_t)bytes, align_of(matrix->data),
                          guard == FP8R_GUARD_NONE && input != FP8R_INPUT_OUT ? FP8R_GUARD_BYTES : guard))
        return false;
    matrix->data = inputs->areas[input].data;
    return true;
}

/* FNV-1a over words of 8 bytes, the rest bytewise: enough to notice a write. */
static uint64_t checksum(const struct fp8r_area *area)
{
    uint64_t sum = 0xCBF29CE484222325u, word;
    size_t i = 0;
    for (; i + 8 <= area->memory_bytes; i += 8) {
        memcpy(&word, area->memory + i, 8);
        sum = (sum ^ word) * 0x100000001B3u;
        sum ^= sum >> 29; /* carries the high bits down, which a product alone never does */
    }
    for (; i < area->memory_bytes; i++)
        sum = (sum ^ area->memory[i]) * 0x100000001B3u;
    return sum;
}

void fp8r_inputs_remember(struct fp8r_inputs *inputs)
{
    for (int i = 0; i < FP8R_INPUT_COUNT; i++)
        if (i != FP8R_INPUT_OUT && inputs->areas[i].memory)
            inputs->checksums[i] = checksum(&inputs->areas[i]);
}

int fp8r_inputs_create(const fp8r_matmul *shape, uint64_t seed, enum fp8r_guard guard,
                       struct fp8r_inputs *inputs, struct fp8r_tool_error *error)
{
    int code = check_memory(shape, error);
    if (code != FP8R_EXIT_GOOD) return code;
    *inputs = (struct fp8r_inputs){.matmul = *shape};
    bool made = true;
    for (int i = 0; i < FP8R_INPUT_COUNT; i++)
        made = made && create_area(inputs, i, guard);
    made = made && fp8r_fill_matmul(&inputs->matmul, seed);
    if (!made) {
        fp8r_inputs_destroy(inputs);
        return fp8r_tool_error_memory(error, "the operands");
    }
    if (guard != FP8R_GUARD_NONE) fp8r_inputs_remember(inputs);
    return FP8R_EXIT_GOOD;
}

void fp8r_inputs_destroy(struct fp8r_inputs *inputs)
{
    for (int i = 0; i < FP8R_INPUT_COUNT; i++)
        fp8r_area_destroy(&inputs->areas[i]);
    *inputs = (struct fp8r_inputs){0};
}

void fp8r_inputs_poison_out(struct fp8r_inputs *inputs)
{
    struct fp8r_area *area = &inputs->areas[FP8R_INPUT_OUT];
    memset(area->memory, FP8R_POISON, area->memory_bytes);
}

static bool is_poison(const uint8_t *bytes, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        if (bytes[i] != FP8R_POISON) return false;
    return true;
}

bool fp8r_inputs_out_untouched(const struct fp8r_inputs *inputs)
{
    const struct fp8r_area *area = &inputs->areas[FP8R_INPUT_OUT];
    return is_poison(area->memory, (int64_t)area->memory_bytes);
}

/* Marks the elements of out, then looks at what is left. `owned` has a byte an element of the span. */
static bool gaps_intact(const fp8r_matrix *out, uint8_t *owned, int64_t span)
{
    int64_t size = fp8r_dtype_bytes(out->dtype);
    const uint8_t *data = out->data;
    for (int64_t i = 0; i < out->batch; i++)
        for (int64_t r = 0; r < out->rows; r++)
            for (int64_t c = 0; c < out->cols; c++)
                owned[i * out->batch_stride + r * out->row_stride + c * out->col_stride] = 1;
    for (int64_t i = 0; i < span; i++)
        if (!owned[i] && !is_poison(data + i * size, size)) return false;
    return true;
}

static const char *out_gap_damage(const fp8r_matrix *out)
{
    int64_t bytes = 0, elements = out->batch * out->rows * out->cols;
    if (!fp8r_matrix_span_bytes(out, &bytes) || bytes == 0) return NULL;
    int64_t span = bytes / fp8r_dtype_bytes(out->dtype);
    if (span == elements) /* no two elements share a place, so there is no gap */
        return NULL;
    uint8_t *owned = calloc((size_t)span, 1);
    if (!owned) return "memory ran out before the gaps of out could be looked at";
    bool intact = gaps_intact(out, owned, span);
    free(owned);
    return intact ? NULL : "memory between the rows of out was written";
}

const char *fp8r_inputs_damage(const struct fp8r_inputs *inputs)
{
    static const char *const changed[FP8R_INPUT_COUNT] = {"a was changed, or memory around it",
                                                          "b was changed, or memory around it",
                                                          "memory around out was written",
                                                          "scale_a was changed, or memory around it",
                                                          "scale_b was changed, or memory around it",
                                                          "bias was changed, or memory around it"};
    for (int i = 0; i < FP8R_INPUT_COUNT; i++) {
        const struct fp8r_area *area = &inputs->areas[i];
        bool is_whole = !area->memory || (i == FP8R_INPUT_OUT ? fp8r_area_intact(area)
                                                              : checksum(area) == inputs->checksums[i]);
        if (!is_whole) return changed[i];
    }
    return out_gap_damage(&inputs->matmul.out);
}
