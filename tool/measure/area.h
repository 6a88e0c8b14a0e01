/* Host memory for one operand, with guards on both sides: bytes that must stay as they were, or pages that
 * end the process when they are touched. SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_AREA_H
#define FP8R_AREA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum fp8r_guard {
    FP8R_GUARD_BYTES, /* harm is found afterwards, by fp8r_area_intact */
    FP8R_GUARD_PAGES, /* touching memory beyond is a fault at once, as near as the alignment lets it be */
    FP8R_GUARD_NONE   /* nobody will look, not even for what was never written */
};

/* What memory holds that nobody has written: NaN in every floating type. */
enum { FP8R_POISON = 0xFF };

struct fp8r_area {
    uint8_t *mapping; /* all of it, guards included */
    size_t mapping_bytes;
    uint8_t *memory; /* what may be touched, poisoned where it is not data; the same as data's pages and byte
                        guards */
    size_t memory_bytes;
    uint8_t *data;
    size_t data_bytes;
};

/* align: a power of two from 1 to 256; below 256 the data is aligned to that and not to more. All of it is
 * poison, but for GUARD_NONE. False when there is no memory. */
bool fp8r_area_create(struct fp8r_area *area, size_t data_bytes, size_t align, enum fp8r_guard guard);
void fp8r_area_destroy(struct fp8r_area *area);

/* Is every byte around the data still poison? */
bool fp8r_area_intact(const struct fp8r_area *area);

#endif
