/* Plain reading. SPDX-License-Identifier: Apache-2.0 */
#include "measure/read_speed.h"

#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "measure/clock.h"

enum { READS = 3, LANES = 8 };

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

double fp8r_read_speed_gbs(int64_t bytes, int threads)
{
    int64_t words = bytes / 8 / threads / LANES * LANES, best_ns = INT64_MAX;
    uint64_t *memory = words > 0 ? malloc((size_t)words * 8 * (size_t)threads) : NULL;
    struct part *parts = calloc((size_t)threads, sizeof *parts);
    pthread_t *handles = calloc((size_t)threads, sizeof *handles);
    bool ready = memory && parts && handles;
    for (int i = 0; ready && i < threads; i++) {
        parts[i] = (struct part){.words = memory + (int64_t)i * words, .count = words};
        memset(memory + (int64_t)i * words, i + 1, (size_t)words * 8);
    }
    for (int i = 0; ready && i < READS; i++) {
        int64_t elapsed_ns = read_all(parts, handles, threads);
        best_ns = elapsed_ns > 0 && elapsed_ns < best_ns ? elapsed_ns : best_ns;
    }
    free(memory);
    free(parts);
    free(handles);
    return best_ns < INT64_MAX ? (double)(words * 8 * threads) / (double)best_ns : 0;
}
