/* Growing arrays of samples; shared by the reader and the structures themselves.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_TUNE_SAMPLES_GROW_H
#define TOOL_TUNE_SAMPLES_GROW_H

#include <stdbool.h>
#include <stdlib.h>

#include "tune/samples.h"

/* Makes room for one more element in *array (a pointer to a pointer to elements of element_size). */
static inline bool samples_grow_bytes(void *array, size_t count, size_t *capacity, size_t element_size)
{
    void **at = array;
    if (count < *capacity)
        return true;
    size_t wanted = *capacity > 0 ? 2 * *capacity : 8;
    void *grown = realloc(*at, wanted * element_size);
    if (!grown)
        return false;
    *at = grown;
    *capacity = wanted;
    return true;
}

#define samples_grow(array, count, capacity) samples_grow_bytes((void *)(array), count, capacity, sizeof **(array))

/* Takes over it->candidates. False when out of memory. */
bool samples_add_case(struct samples *samples, const struct sample_case *it);

/* By run, phase and round. */
int sample_compare(const struct sample *a, const struct sample *b);

/* Adds a file's samples as they come; then everything is brought into order, and what was read twice is taken out. */
int samples_read_lines(struct samples *samples, const char *path, struct fp8r_tool_error *error);
int samples_order(struct samples *samples, struct fp8r_tool_error *error);

#endif
