/* Device memory between pages that nothing is mapped to: a kernel that reads or writes one byte too far ends the process with an
 * illegal address.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_TESTS_GPU_PAGES_H
#define FP8R_TESTS_GPU_PAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gpu_pages {
    void *data;
    uint64_t base, physical; /* of the reservation; the handle of the memory */
    size_t reserved_bytes, mapped_bytes;
};

/* `bytes` whose last one is the last of its page, or whose first one is the first. False where the driver has no such
 * functions. Fails the running test where they fail. */
bool gpu_pages_init(struct gpu_pages *pages, size_t bytes, bool at_end);
void gpu_pages_fini(struct gpu_pages *pages);

#endif
