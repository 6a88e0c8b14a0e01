/* The block: operand after operand and the workspace, each behind a guard.
 * SPDX-License-Identifier: Apache-2.0 */
#include "measure/remote.h"

#include <stdlib.h>
#include <string.h>

#include "base/sizes.h"
#include "base/status.h"
#include "measure/inputs.h"
#include "measure/trial.h"

enum { GUARD_BYTES = 1024, ALIGN_BYTES = 256, PARTS = FP8R_INPUT_COUNT + 1, WORKSPACE = FP8R_INPUT_COUNT };

static void *alignment_of(const void *data)
{
    uintptr_t behind = (uintptr_t)data % ALIGN_BYTES;
    return data ? (void *)(behind ? behind & (~behind + 1) : ALIGN_BYTES) : NULL;
}

fp8r_matmul fp8r_remote_matmul(const fp8r_matmul *matmul)
{
    fp8r_matmul remote = *matmul;
    fp8r_matrix *const matrices[] = {&remote.a,       &remote.b,       &remote.out,
                                     &remote.scale_a, &remote.scale_b, &remote.bias};
    for (int i = 0; i < FP8R_INPUT_COUNT; i++)
        matrices[i]->data = alignment_of(matrices[i]->data);
    return remote;
}

struct block {
    const fp8r_plan *plan;
    fp8r_pointers pointers; /* on the device */
    void *workspace;
    int64_t offsets[PARTS], bytes[PARTS], block_bytes;
    uint8_t *sent, *fetched; /* on the host */
    uint8_t *remote;
};

static fp8r_status lay_out(struct block *block, const fp8r_matmul *matmul)
{
    int64_t at = 0;
    block->bytes[WORKSPACE] = (int64_t)fp8r_plan_workspace(block->plan);
    for (int i = 0; i < PARTS; i++) {
        const fp8r_matrix *matrix = i < WORKSPACE ? fp8r_matmul_matrix(matmul, (enum fp8r_input)i) : NULL;
        int64_t behind = matrix ? (int64_t)((uintptr_t)matrix->data % ALIGN_BYTES) : 0;
        if ((matrix && !fp8r_matrix_span_bytes(matrix, &block->bytes[i])) ||
            !fp8r_size_add(at, GUARD_BYTES + behind, &block->offsets[i]) ||
            !fp8r_size_add(block->offsets[i], block->bytes[i], &at) || !fp8r_size_add(at, ALIGN_BYTES, &at))
            return fp8r_fail(FP8R_ERROR_OUT_OF_MEMORY, "the operands need more memory than 63 bits address");
        at = at / ALIGN_BYTES * ALIGN_BYTES;
    }
    block->block_bytes = at + GUARD_BYTES;
    return FP8R_OK;
}

static void *remote_at(const struct block *block, int part)
{
    return block->remote + block->offsets[part];
}

static void set_pointers(struct block *block, const fp8r_matmul *matmul)
{
    fp8r_pointers *to = &block->pointers;
    fp8r_matmul_pointers(matmul, to);
    to->a = to->a ? remote_at(block, FP8R_INPUT_A) : NULL;
    to->b = to->b ? remote_at(block, FP8R_INPUT_B) : NULL;
    to->out = to->out ? remote_at(block, FP8R_INPUT_OUT) : NULL;
    to->scale_a = to->scale_a ? remote_at(block, FP8R_INPUT_SCALE_A) : NULL;
    to->scale_b = to->scale_b ? remote_at(block, FP8R_INPUT_SCALE_B) : NULL;
    to->bias = to->bias ? remote_at(block, FP8R_INPUT_BIAS) : NULL;
    block->workspace = block->bytes[WORKSPACE] > 0 ? remote_at(block, WORKSPACE) : NULL;
}

static fp8r_status send(struct block *block, const struct fp8r_measure_device *device, const fp8r_matmul *matmul)
{
    const size_t bytes = (size_t)block->block_bytes;
    block->sent = malloc(bytes);
    block->fetched = malloc(bytes);
    block->remote = device->allocate(device->user, bytes);
    if (!block->sent || !block->fetched || !block->remote) return fp8r_fail_memory("the operands on the device");
    memset(block->sent, FP8R_POISON, bytes);
    for (int i = 0; i < WORKSPACE; i++)
        if (block->bytes[i] > 0)
            memcpy(block->sent + block->offsets[i], fp8r_matmul_matrix(matmul, (enum fp8r_input)i)->data,
                   (size_t)block->bytes[i]);
    set_pointers(block, matmul);
    return device->copy_in(device->user, block->remote, block->sent, bytes);
}

static fp8r_status call(void *arg, void *stream)
{
    const struct block *block = arg;
    return fp8r_plan_run(block->plan, &block->pointers, block->workspace, (size_t)block->bytes[WORKSPACE], stream);
}

static fp8r_status run(struct block *block, const struct fp8r_measure_device *device, int64_t calls,
                       int64_t *elapsed_ns)
{
    struct fp8r_recording *recording = NULL;
    int64_t ignored;
    fp8r_status status = device->record(device->user, calls, call, block, &recording);
    if (status == FP8R_OK) status = device->time(device->user, recording, elapsed_ns ? elapsed_ns : &ignored);
    if (status == FP8R_OK && elapsed_ns) status = device->time(device->user, recording, elapsed_ns);
    if (recording) device->forget(device->user, recording);
    return status;
}

/* All that is neither out's nor the workspace's must be as it was sent. */
static fp8r_status look_for_damage(const struct block *block)
{
    static const char *const names[PARTS] = {"a", "b", "out", "scale_a", "scale_b", "bias", "the workspace"};
    int64_t at = 0;
    for (int i = 0; i <= PARTS; i++) {
        bool may_change = i == FP8R_INPUT_OUT || i == WORKSPACE;
        int64_t end = i == PARTS ? block->block_bytes : block->offsets[i] + (may_change ? 0 : block->bytes[i]);
        if (memcmp(block->sent + at, block->fetched + at, (size_t)(end - at)) != 0)
            return fp8r_fail(FP8R_ERROR_DEVICE, "memory of the device at or before %s was written",
                             i == PARTS ? "the end of the workspace" : names[i]);
        at = i == PARTS ? end : block->offsets[i] + block->bytes[i];
    }
    return FP8R_OK;
}

static fp8r_status fetch(const struct block *block, const struct fp8r_measure_device *device, const fp8r_matmul *matmul)
{
    FP8R_TRY(device->copy_out(device->user, block->fetched, block->remote, (size_t)block->block_bytes));
    if (block->bytes[FP8R_INPUT_OUT] > 0)
        memcpy(matmul->out.data, block->fetched + block->offsets[FP8R_INPUT_OUT], (size_t)block->bytes[FP8R_INPUT_OUT]);
    return look_for_damage(block);
}

fp8r_status fp8r_remote_run(const struct fp8r_measure_device *device, const fp8r_plan *plan, const fp8r_matmul *matmul,
                            int64_t calls, int64_t *elapsed_ns)
{
    struct block block = {.plan = plan};
    fp8r_status status = lay_out(&block, matmul);
    if (status == FP8R_OK) status = send(&block, device, matmul);
    if (status == FP8R_OK) status = run(&block, device, calls, elapsed_ns);
    if (status == FP8R_OK) status = fetch(&block, device, matmul);
    device->release(device->user, block.remote);
    free(block.sent);
    free(block.fetched);
    return status;
}
