/* Workspaces of scaled_mm on a CPU: buffers that concurrent callers borrow, kept until the context ends.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_API_SPACE_H
#define FP8R_API_SPACE_H

#include <stdatomic.h>
#include <stddef.h>

enum { FP8R_SPACE_SLOTS = 64 };

struct fp8r_buffer {
    size_t size_bytes;
    void *data; /* 256-byte aligned */
};

struct fp8r_space {
    struct fp8r_buffer *_Atomic slots[FP8R_SPACE_SLOTS];
};

/* A buffer of at least size_bytes, or NULL when out of memory. Give it back. */
struct fp8r_buffer *fp8r_space_borrow(struct fp8r_space *space, size_t size_bytes);
void fp8r_space_return(struct fp8r_space *space, struct fp8r_buffer *buffer);
void fp8r_space_fini(struct fp8r_space *space);

#endif
