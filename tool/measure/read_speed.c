/* Plain reading. SPDX-License-Identifier: Apache-2.0 */
#include "measure/read_speed.h"

#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "measure/clock.h"

/* Reading is timed slice by slice: what disturbs rarely lasts through all of them. A slice must be long beside the start of
 * its threads. */
enum { PASSES = 3, SLICES_MOST = 32, SLICE_BYTES_LEAST = 32 << 20, LANES = 8 };

struct part {
    const uint64_t *words;
    int64_t count; /* a multiple of LANES */
    uint64_t sum;
};

/* Independent sums, so that loads overlap. */
static void *read_part(void *argument)
{
    struct part *part = argument;
    uint64_t sums[LANES] = {0};
    for (int64_t i = 0; i < part->count; i += LANES)
        for (int j = 0; j < LANES; j++)
            sums[j] += part->words[i + j];
    for (int j = 0; j < LANES; j++)
        part->sum += sums[j];
    return NULL;
}

/* One read of all parts; nanoseconds, 0 on failure. */
static int64_t read_all(struct part *parts, pthread_t *threads, int count)
{
    int started = 0;
    int64_t start = fp8r_clock_ns();
    while (started < count && pthread_create(&threads[started], NULL, read_part, &parts[started]) == 0)
        started++;
    for (int i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
    return started == count ? fp8r_clock_ns() - start : 0;
}

/* The shortest time of a slice, of `words` a thread; INT64_MAX on failure. */
static int64_t best_slice_ns(const uint64_t *memory, int64_t words, int slices, struct part *parts, pthread_t *handles,
                             int threads)
{
    int64_t best_ns = INT64_MAX;
    for (int i = 0; i < PASSES * slices; i++) {
        const uint64_t *slice = memory + (int64_t)(i % slices) * words * threads;
        for (int j = 0; j < threads; j++)
            parts[j] = (struct part){.words = slice + (int64_t)j * words, .count = words};
        int64_t elapsed_ns = read_all(parts, handles, threads);
        best_ns = elapsed_ns > 0 && elapsed_ns < best_ns ? elapsed_ns : best_ns;
    }
    return best_ns;
}

double fp8r_read_speed_gbs(int64_t bytes, int threads)
{
    int64_t wanted = bytes / SLICE_BYTES_LEAST;
    int slices = wanted < 1 ? 1 : wanted > SLICES_MOST ? SLICES_MOST : (int)wanted;
    int64_t words = bytes / 8 / slices / threads / LANES * LANES, best_ns = INT64_MAX; /* of a thread in a slice */
    size_t all_bytes = (size_t)words * 8 * (size_t)threads * (size_t)slices;
    uint64_t *memory = words > 0 ? malloc(all_bytes) : NULL;
    struct part *parts = calloc((size_t)threads, sizeof *parts);
    pthread_t *handles = calloc((size_t)threads, sizeof *handles);
    if (memory && parts && handles) {
        memset(memory, 1, all_bytes);
        best_ns = best_slice_ns(memory, words, slices, parts, handles, threads);
    }
    free(memory);
    free(parts);
    free(handles);
    return best_ns < INT64_MAX ? (double)(words * 8 * threads) / (double)best_ns : 0;
}
