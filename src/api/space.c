/* Borrowed buffers. A slot's buffer is taken by exchanging it with NULL, so no two callers ever hold one.
 * SPDX-License-Identifier: Apache-2.0 */
#include "api/space.h"

#include <stdint.h>
#include <stdlib.h>

enum { ALIGN_BYTES = 256, GRAIN_BYTES = 1 << 16 };

static void release(struct fp8r_buffer *buffer)
{
    if (buffer)
        free(buffer->data);
    free(buffer);
}

static struct fp8r_buffer *make(size_t size_bytes)
{
    if (size_bytes > SIZE_MAX - GRAIN_BYTES)
        return NULL;
    struct fp8r_buffer *buffer = malloc(sizeof *buffer);
    if (!buffer)
        return NULL;
    buffer->size_bytes = (size_bytes + GRAIN_BYTES - 1) / GRAIN_BYTES * GRAIN_BYTES;
    if (posix_memalign(&buffer->data, ALIGN_BYTES, buffer->size_bytes) != 0) {
        free(buffer);
        return NULL;
    }
    return buffer;
}

struct fp8r_buffer *fp8r_space_borrow(struct fp8r_space *space, size_t size_bytes)
{
    for (int i = 0; i < FP8R_SPACE_SLOTS; i++) {
        if (!atomic_load_explicit(&space->slots[i], memory_order_relaxed))
            continue;
        struct fp8r_buffer *buffer = atomic_exchange_explicit(&space->slots[i], NULL, memory_order_acquire);
        if (!buffer)
            continue;
        if (buffer->size_bytes >= size_bytes)
            return buffer;
        release(buffer); /* too small: a larger one takes its place */
        return make(size_bytes);
    }
    return make(size_bytes);
}

void fp8r_space_return(struct fp8r_space *space, struct fp8r_buffer *buffer)
{
    for (int i = 0; i < FP8R_SPACE_SLOTS; i++) {
        struct fp8r_buffer *none = NULL;
        if (atomic_compare_exchange_strong_explicit(&space->slots[i], &none, buffer, memory_order_release,
                                                    memory_order_relaxed))
            return;
    }
    release(buffer);
}

void fp8r_space_fini(struct fp8r_space *space)
{
    for (int i = 0; i < FP8R_SPACE_SLOTS; i++)
        release(atomic_exchange(&space->slots[i], NULL));
}
