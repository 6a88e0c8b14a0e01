/* Loading and turning the sets.
 * SPDX-License-Identifier: Apache-2.0 */
#include "measure/rotation.h"

#include <string.h>

#include "base/sizes.h"
#include "tool_status.h"

/* Sets begin at multiples of this, operands at theirs plus what their alignment wants. On a GPU large ones begin where
 * allocators place large tensors: a product of few rows was seen to be a sixth slower where rows of b straddle pages. */
enum { SET_ALIGN = 256, LARGE_ALIGN = 2 << 20, LARGE_BYTES = 8 << 20 };

static int part_of(int input)
{
    bool is_weight = input == FP8R_INPUT_B || input == FP8R_INPUT_SCALE_B || input == FP8R_INPUT_BIAS;
    return is_weight ? FP8R_ROTATION_WEIGHTS : FP8R_ROTATION_ACTIVATIONS;
}

/* Where each operand lies in its set: as far behind a multiple of 256 as in host memory. */
static void lay_out(struct fp8r_rotation *rotation, const struct fp8r_inputs *inputs)
{
    size_t at[FP8R_ROTATION_PARTS] = {0};
    for (int i = 0; i < FP8R_INPUT_COUNT; i++) {
        const struct fp8r_area *area = &inputs->areas[i];
        size_t *end = &at[part_of(i)];
        rotation->offsets[i] = SIZE_MAX;
        if (!area->memory) continue;
        rotation->offsets[i] = *end + (uintptr_t)area->data % SET_ALIGN;
        *end = rotation->offsets[i] + area->data_bytes;
        *end = (*end + SET_ALIGN - 1) / SET_ALIGN * SET_ALIGN;
    }
    for (int i = 0; i < FP8R_ROTATION_PARTS; i++) {
        const size_t align = rotation->device->is_remote && at[i] >= LARGE_BYTES ? LARGE_ALIGN : SET_ALIGN;
        rotation->parts[i].used_bytes = at[i] > 0 ? at[i] : SET_ALIGN;
        rotation->parts[i].set_bytes = (rotation->parts[i].used_bytes + align - 1) / align * align;
    }
}

/* turn_bytes: what a call goes through, which is at least the set itself. */
static int64_t sets_wanted(const struct fp8r_measure_device *device, size_t set_bytes, size_t turn_bytes,
                           double cache_factor)
{
    double wanted = cache_factor * (double)device->cache_bytes / (double)turn_bytes;
    int64_t room = device->available_bytes / 2 / FP8R_ROTATION_PARTS / (int64_t)set_bytes;
    int64_t sets = wanted < 0x1p40 ? (int64_t)wanted + 2 : (int64_t)1 << 40;
    return fp8r_size_max(1, fp8r_size_min(sets, room));
}

static bool make_room(const struct fp8r_measure_device *device, struct fp8r_rotation_part *part)
{
    size_t bytes = (size_t)part->sets * part->set_bytes;
    if (bytes <= part->memory_bytes) return true;
    device->release(device->user, part->memory);
    part->memory_bytes = 0;
    part->memory = device->allocate(device->user, bytes);
    if (part->memory) part->memory_bytes = bytes;
    return part->memory != NULL;
}

/* From the host once; from there the device copies. A result that lies on the device is nobody's input. */
static fp8r_status copy_operand(struct fp8r_rotation *rotation, const struct fp8r_inputs *inputs, int input)
{
    const struct fp8r_measure_device *device = rotation->device;
    const struct fp8r_area *area = &inputs->areas[input];
    const struct fp8r_rotation_part *part = &rotation->parts[part_of(input)];
    fp8r_status status = FP8R_OK;
    if (rotation->offsets[input] == SIZE_MAX || (device->is_remote && input == FP8R_INPUT_OUT)) return FP8R_OK;
    uint8_t *first = part->memory + rotation->offsets[input];
    for (int64_t set = 0; set < part->sets && status == FP8R_OK; set++) {
        uint8_t *to = first + (size_t)set * part->set_bytes;
        status = set > 0 && device->copy_across ? device->copy_across(device->user, to, first, area->data_bytes)
                                                : device->copy_in(device->user, to, area->data, area->data_bytes);
    }
    return status;
}

int fp8r_rotation_load(struct fp8r_rotation *rotation, const struct fp8r_measure_device *device,
                       const struct fp8r_inputs *inputs, double cache_factor, struct fp8r_tool_error *error)
{
    if (rotation->device && rotation->device != device) fp8r_rotation_fini(rotation);
    rotation->device = device;
    rotation->cold_bytes = cache_factor * (double)device->cache_bytes;
    rotation->a_bytes = inputs->areas[FP8R_INPUT_A].data_bytes;
    lay_out(rotation, inputs);
    size_t weights = rotation->parts[FP8R_ROTATION_WEIGHTS].used_bytes;
    for (int i = 0; i < FP8R_ROTATION_PARTS; i++) {
        struct fp8r_rotation_part *part = &rotation->parts[i];
        size_t turn = i == FP8R_ROTATION_WEIGHTS ? weights : weights + part->used_bytes;
        part->next = 0;
        part->sets = sets_wanted(device, part->set_bytes, turn, cache_factor);
        while (!make_room(device, part)) {
            if (part->sets == 1) return fp8r_tool_error_memory(error, "the operands on the device");
            part->sets = (part->sets + 1) / 2;
        }
    }
    for (int i = 0; i < FP8R_ROTATION_PARTS; i++)
        rotation->parts[i].turning = rotation->parts[i].sets;
    fp8r_status status = FP8R_OK;
    for (int i = 0; i < FP8R_INPUT_COUNT && status == FP8R_OK; i++)
        status = copy_operand(rotation, inputs, i);
    return fp8r_tool_status(error, status);
}

bool fp8r_rotation_is_cold(const struct fp8r_rotation *rotation, double cache_factor)
{
    const struct fp8r_rotation_part *weights = &rotation->parts[FP8R_ROTATION_WEIGHTS];
    return (double)weights->sets * (double)weights->used_bytes >
           cache_factor * (double)rotation->device->cache_bytes;
}

int64_t fp8r_rotation_sets(const struct fp8r_rotation *rotation)
{
    return fp8r_size_max(rotation->parts[0].turning, rotation->parts[1].turning);
}

void fp8r_rotation_narrow(struct fp8r_rotation *rotation, const fp8r_matmul *member)
{
    int64_t bytes, a_bytes;
    if (fp8r_matrix_span_bytes(&member->a, &a_bytes)) rotation->a_bytes = (size_t)a_bytes;
    if (!fp8r_matmul_span_bytes(member, &bytes) || bytes == 0) return;
    const double wanted = rotation->cold_bytes / (double)bytes + 1;
    for (int i = 0; i < FP8R_ROTATION_PARTS; i++) {
        struct fp8r_rotation_part *part = &rotation->parts[i];
        part->turning = wanted < (double)part->sets ? (int64_t)wanted : part->sets;
        part->next = part->next < part->turning ? part->next : 0;
    }
}

static void *operand_at(const struct fp8r_rotation *rotation, int input)
{
    const struct fp8r_rotation_part *part = &rotation->parts[part_of(input)];
    size_t offset = rotation->offsets[input];
    return offset == SIZE_MAX ? NULL : part->memory + (size_t)part->next * part->set_bytes + offset;
}

void fp8r_rotation_next(struct fp8r_rotation *rotation, int64_t m, fp8r_pointers *pointers)
{
    *pointers = (fp8r_pointers){.struct_size = sizeof *pointers,
                                .m = m,
                                .a = operand_at(rotation, FP8R_INPUT_A),
                                .b = operand_at(rotation, FP8R_INPUT_B),
                                .out = operand_at(rotation, FP8R_INPUT_OUT),
                                .scale_a = operand_at(rotation, FP8R_INPUT_SCALE_A),
                                .scale_b = operand_at(rotation, FP8R_INPUT_SCALE_B),
                                .bias = operand_at(rotation, FP8R_INPUT_BIAS)};
    for (int i = 0; i < FP8R_ROTATION_PARTS; i++) {
        struct fp8r_rotation_part *part = &rotation->parts[i];
        part->next = part->next + 1 >= part->turning ? 0 : part->next + 1;
    }
}

const void *fp8r_rotation_source(const struct fp8r_rotation *rotation)
{
    return rotation->parts[FP8R_ROTATION_ACTIVATIONS].memory + rotation->offsets[FP8R_INPUT_A];
}

void fp8r_rotation_fini(struct fp8r_rotation *rotation)
{
    for (int i = 0; i < FP8R_ROTATION_PARTS; i++)
        if (rotation->device) rotation->device->release(rotation->device->user, rotation->parts[i].memory);
    *rotation = (struct fp8r_rotation){0};
}
