/* Mapping operands between guards.
 * SPDX-License-Identifier: Apache-2.0 */
#define _DEFAULT_SOURCE /* MAP_ANONYMOUS */
#include "measure/area.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { BYTE_GUARD_PAGES = 4, LARGE_BYTES = 16 << 20 };

/* The highest place in the memory at which the data still fits and has exactly its alignment. */
static uint8_t *place(const struct fp8r_area *area, size_t align, size_t data_bytes)
{
    uintptr_t last = (uintptr_t)(area->memory + area->memory_bytes) - data_bytes;
    last -= last % align;
    if (align < 256 && last % (2 * align) == 0) last -= align;
    return (uint8_t *)last;
}

/* With byte guards the data lies before some of them, with page guards at the end of its pages. */
bool fp8r_area_create(struct fp8r_area *area, size_t data_bytes, size_t align, enum fp8r_guard guard)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), slack = 512; /* room to align in */
    size_t guard_bytes = (guard == FP8R_GUARD_PAGES ? 1 : BYTE_GUARD_PAGES) * page;
    *area = (struct fp8r_area){0};
    if (data_bytes > SIZE_MAX / 2 - slack - 2 * guard_bytes - page) return false;
    size_t body = (data_bytes + slack + page - 1) / page * page;
    int protection = guard == FP8R_GUARD_PAGES ? PROT_NONE : PROT_READ | PROT_WRITE;
    void *mapping =
        mmap(NULL, body + 2 * guard_bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapping == MAP_FAILED) return false;
    area->mapping = mapping;
    area->mapping_bytes = body + 2 * guard_bytes;
    area->memory = area->mapping + guard_bytes;
    area->memory_bytes = body;
    area->data_bytes = data_bytes;
    if (guard == FP8R_GUARD_PAGES && mprotect(area->memory, body, PROT_READ | PROT_WRITE) != 0) {
        fp8r_area_destroy(area);
        return false;
    }
    area->data = place(area, align, data_bytes);
    if (guard != FP8R_GUARD_PAGES) {
        area->memory = area->mapping;
        area->memory_bytes = area->mapping_bytes;
    }
    if (data_bytes >= LARGE_BYTES) (void)madvise(area->memory, area->memory_bytes, MADV_HUGEPAGE); /* fewer faults */
    if (guard != FP8R_GUARD_NONE) memset(area->memory, FP8R_POISON, area->memory_bytes);
    return true;
}

void fp8r_area_destroy(struct fp8r_area *area)
{
    if (area->mapping) munmap(area->mapping, area->mapping_bytes);
    *area = (struct fp8r_area){0};
}

static bool is_poison(const uint8_t *from, const uint8_t *end)
{
    for (; from < end; from++)
        if (*from != FP8R_POISON) return false;
    return true;
}

bool fp8r_area_intact(const struct fp8r_area *area)
{
    const uint8_t *end = area->memory + area->memory_bytes;
    return is_poison(area->memory, area->data) && is_poison(area->data + area->data_bytes, end);
}
