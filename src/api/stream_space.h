/* Workspaces of scaled_mm on a GPU: one a stream, by the id that the driver gives it and never gives again. Work on a
 * stream is in order, so that its calls may share one; it lives until the context ends.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_API_STREAM_SPACE_H
#define FP8R_API_STREAM_SPACE_H

#include <stdatomic.h>
#include <stddef.h>

#include <fp8route/fp8route.h>

#include "base/fork.h"

enum { FP8R_STREAM_SLOTS = 256 };

struct fp8r_stream_block; /* device memory */
struct fp8r_stream_entry; /* a stream and its present block */

struct fp8r_stream_space {
    struct fp8r_stream_entry *_Atomic slots[FP8R_STREAM_SLOTS]; /* chains; entries are only added */
    struct fp8r_lock lock;             /* guards what follows, adding entries and replacing blocks */
    struct fp8r_stream_block *retired; /* outgrown: queued work may still use them */
};

void fp8r_stream_space_init(struct fp8r_stream_space *space); /* of zeroed memory */
void fp8r_stream_space_fini(struct fp8r_stream_space *space);

/* Memory of at least `bytes` for the stream, 256-byte aligned. Takes no lock where it is there already. Not for a stream
 * that is capturing. Errors: OUT_OF_MEMORY, DEVICE. */
fp8r_status fp8r_stream_space_get(struct fp8r_stream_space *space, uint64_t stream_id, size_t bytes, void **memory);

#endif
