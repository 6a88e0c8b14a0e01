/* Do two operands certainly share bytes? Exact for the layouts that occur (dense blocks, row windows of one pitch);
 * elsewhere a sharing that cannot be shown without walking all elements is let pass.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdint.h>

#include "base/dtype.h"
#include "problem/problem.h"

/* A set of bytes: `count` runs of `run_bytes`, one every `pitch_bytes`, from `first`; dense when the runs touch. */
struct span {
    uintptr_t first, last; /* first and last byte */
    uintptr_t run_bytes, pitch_bytes;
    bool is_regular; /* the fields describe the bytes exactly */
};

struct fp8r_reach fp8r_reach_of(const void *data, const fp8r_operand *operand, const int64_t extents[3])
{
    const uintptr_t last = (uintptr_t)(extents[0] - 1) * (uintptr_t)operand->batch_stride +
                           (uintptr_t)(extents[1] - 1) * (uintptr_t)operand->row_stride +
                           (uintptr_t)(extents[2] - 1) * (uintptr_t)operand->col_stride;
    return (struct fp8r_reach){.first = (uintptr_t)data,
                               .last = (uintptr_t)data + (last + 1) * (uintptr_t)fp8r_dtype_bytes(operand->dtype) - 1};
}

/* Folds the dimensions from the smallest stride up: each extends the run, or is the one that repeats it. */
static struct span span_of(const void *data, const fp8r_operand *operand, const int64_t extents[3])
{
    uintptr_t bytes = (uintptr_t)fp8r_dtype_bytes(operand->dtype);
    const int64_t strides[3] = {operand->batch_stride, operand->row_stride, operand->col_stride};
    int64_t left[3] = {extents[0], extents[1], extents[2]}, run = 1, pitch = 0;
    bool is_regular = true;
    for (int done = 0; done < 3; done++) {
        int next = -1;
        for (int i = 0; i < 3; i++)
            if (left[i] > 1 && strides[i] > 0 && (next < 0 || strides[i] < strides[next]))
                next = i;
        if (next < 0)
            break;
        if (pitch == 0 && strides[next] <= run)
            run = (left[next] - 1) * strides[next] + run;
        else if (pitch == 0)
            pitch = strides[next];
        else
            is_regular = false;
        left[next] = 1;
    }
    const struct fp8r_reach reach = fp8r_reach_of(data, operand, extents);
    return (struct span){.first = reach.first,
                         .last = reach.last,
                         .run_bytes = (uintptr_t)run * bytes,
                         .pitch_bytes = (uintptr_t)pitch * bytes,
                         .is_regular = is_regular};
}

static bool is_dense(const struct span *span)
{
    return span->is_regular && span->pitch_bytes == 0;
}

/* Does the span own a byte of [low, high], which lies within its first and last? */
static bool owns_any(const struct span *span, uintptr_t low, uintptr_t high)
{
    if (is_dense(span))
        return true;
    uintptr_t offset = (low - span->first) % span->pitch_bytes;
    return offset < span->run_bytes || high - low >= span->pitch_bytes - offset;
}

bool fp8r_overlap_certain(const void *out, const fp8r_operand *out_layout, const void *in,
                          const fp8r_operand *in_layout, const int64_t out_extents[3], const int64_t in_extents[3])
{
    const struct fp8r_reach out_reach = fp8r_reach_of(out, out_layout, out_extents);
    const struct fp8r_reach in_reach = fp8r_reach_of(in, in_layout, in_extents);
    if (!fp8r_reach_meets(&out_reach, &in_reach))
        return false; /* nearly always */
    for (int i = 0; i < 3; i++)
        if (out_extents[i] == 0 || in_extents[i] == 0) /* an operand without elements shares none */
            return false;
    struct span a = span_of(out, out_layout, out_extents), b = span_of(in, in_layout, in_extents);
    if (!a.is_regular || !b.is_regular)
        return a.first == b.first || a.last == b.last; /* elements stand at both ends of every span */
    uintptr_t low = a.first > b.first ? a.first : b.first, high = a.last < b.last ? a.last : b.last;
    if (is_dense(&b))
        return owns_any(&a, low, high);
    if (is_dense(&a))
        return owns_any(&b, low, high);
    if (a.pitch_bytes != b.pitch_bytes)
        return a.first == b.first || a.last == b.last;
    /* Windows of one pitch: compare their places within it. The later one's offset from the earlier one's run. */
    const struct span *early = a.first <= b.first ? &a : &b, *late = early == &a ? &b : &a;
    uintptr_t offset = (late->first - early->first) % early->pitch_bytes;
    return offset < early->run_bytes || offset + late->run_bytes > early->pitch_bytes;
}
