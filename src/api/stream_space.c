/* A hash of chains. Readers take no lock: an entry is published whole, its block is replaced by a larger one, and nothing
 * is released before the context.
 * SPDX-License-Identifier: Apache-2.0 */
#include "api/stream_space.h"

#include <stdint.h>
#include <stdlib.h>

#include "base/status.h"
#include "device/cuda.h"

enum { GRAIN_BYTES = 1 << 20 };

struct fp8r_stream_block {
    size_t bytes;
    void *memory;
    struct fp8r_stream_block *next;
};

struct fp8r_stream_entry {
    uint64_t stream_id;
    struct fp8r_stream_block *_Atomic block;
    struct fp8r_stream_entry *next;
};

static struct fp8r_stream_entry *find(struct fp8r_stream_space *space, uint64_t stream_id)
{
    struct fp8r_stream_entry *entry =
        atomic_load_explicit(&space->slots[stream_id % FP8R_STREAM_SLOTS], memory_order_acquire);
    while (entry && entry->stream_id != stream_id)
        entry = entry->next;
    return entry;
}

/* At least twice the outgrown block, so that all blocks of a stream together are at most twice the last. */
static fp8r_status make_block(size_t bytes, const struct fp8r_stream_block *outgrown, struct fp8r_stream_block **result)
{
    size_t wanted = outgrown && bytes < 2 * outgrown->bytes ? 2 * outgrown->bytes : bytes;
    if (wanted > SIZE_MAX - GRAIN_BYTES)
        return fp8r_fail(FP8R_ERROR_OUT_OF_MEMORY, "out of memory for %zu bytes of workspace", bytes);
    struct fp8r_stream_block *made = calloc(1, sizeof *made);
    if (!made)
        return fp8r_fail_memory("a stream's workspace");
    made->bytes = (wanted + GRAIN_BYTES - 1) / GRAIN_BYTES * GRAIN_BYTES;
    int mode = 0; /* this stream is not capturing, but another may be */
    fp8r_cuda_capture_relax(&mode);
    fp8r_status status = fp8r_cuda_allocate(made->bytes, &made->memory);
    fp8r_cuda_capture_relax(&mode);
    if (status != FP8R_OK) {
        free(made);
        return status;
    }
    *result = made;
    return FP8R_OK;
}

static void release(struct fp8r_stream_block *block)
{
    if (block)
        fp8r_cuda_release(block->memory);
    free(block);
}

/* With the lock held. */
static fp8r_status grow(struct fp8r_stream_space *space, uint64_t stream_id, size_t bytes, void **memory)
{
    struct fp8r_stream_entry *entry = find(space, stream_id);
    struct fp8r_stream_block *old = entry ? atomic_load(&entry->block) : NULL, *made = NULL;
    if (old && old->bytes >= bytes) { /* another thread was first */
        *memory = old->memory;
        return FP8R_OK;
    }
    FP8R_TRY(make_block(bytes, old, &made));
    *memory = made->memory;
    if (entry) {
        old->next = space->retired;
        space->retired = old;
        atomic_store_explicit(&entry->block, made, memory_order_release);
        return FP8R_OK;
    }
    entry = calloc(1, sizeof *entry);
    if (!entry) {
        release(made);
        return fp8r_fail_memory("a stream's workspace");
    }
    entry->stream_id = stream_id;
    atomic_store(&entry->block, made);
    struct fp8r_stream_entry *_Atomic *slot = &space->slots[stream_id % FP8R_STREAM_SLOTS];
    entry->next = atomic_load(slot);
    atomic_store_explicit(slot, entry, memory_order_release);
    return FP8R_OK;
}

fp8r_status fp8r_stream_space_get(struct fp8r_stream_space *space, uint64_t stream_id, size_t bytes, void **memory)
{
    struct fp8r_stream_entry *entry = find(space, stream_id);
    struct fp8r_stream_block *block = entry ? atomic_load_explicit(&entry->block, memory_order_acquire) : NULL;
    if (block && block->bytes >= bytes) {
        *memory = block->memory;
        return FP8R_OK;
    }
    fp8r_lock_take(&space->lock);
    fp8r_status status = grow(space, stream_id, bytes, memory);
    fp8r_lock_give(&space->lock);
    return status;
}

void fp8r_stream_space_init(struct fp8r_stream_space *space)
{
    fp8r_lock_init(&space->lock);
}

void fp8r_stream_space_fini(struct fp8r_stream_space *space)
{
    for (int i = 0; i < FP8R_STREAM_SLOTS; i++) {
        struct fp8r_stream_entry *entry = atomic_load(&space->slots[i]);
        while (entry) {
            struct fp8r_stream_entry *next = entry->next;
            release(atomic_load(&entry->block));
            free(entry);
            entry = next;
        }
    }
    while (space->retired) {
        struct fp8r_stream_block *block = space->retired;
        space->retired = block->next;
        release(block);
    }
    fp8r_lock_fini(&space->lock);
}
