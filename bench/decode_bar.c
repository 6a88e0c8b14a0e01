/* Decode, M = 1: weight bytes a second over the best of three plain readers of the same memory with the same
 * threads.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/pool.h"
#include "measure/clock.h"
#include "readers.h"
#include "workload.h"

enum { TRIAL_ROUNDS = 5, CHUNK_BYTES = 1 << 18 };

struct reading {
    struct bench_workload *workload;
    struct fp8r_pool *pool;
    int reader;
    const uint8_t *copy;
    _Atomic uint64_t seen;
};

static void read_chunk(void *argument, int64_t index)
{
    struct reading *reading = argument;
    int64_t from = index * CHUNK_BYTES, left = reading->workload->copy_bytes - from;
    atomic_fetch_xor(&reading->seen, bench_read(reading->reader, reading->copy + from,
                                                (size_t)(left < CHUNK_BYTES ? left : CHUNK_BYTES)));
}

static int64_t read_pass(void *argument)
{
    struct reading *reading = argument;
    const struct bench_workload *workload = reading->workload;
    int64_t start = fp8r_clock_ns();
    for (int64_t i = 0; i < workload->copies; i++) {
        reading->copy = workload->weights + i * workload->copy_bytes;
        fp8r_pool_parallel(reading->pool, (workload->copy_bytes + CHUNK_BYTES - 1) / CHUNK_BYTES, read_chunk,
                           reading);
    }
    return fp8r_clock_ns() - start;
}

/* The reader with the smallest time of a few passes each, taken in turns. */
static int best_reader(struct reading *reading)
{
    int64_t best[BENCH_READERS];
    for (int round = 0; round < TRIAL_ROUNDS; round++)
        for (int i = 0; i < BENCH_READERS; i++) {
            reading->reader = i;
            int64_t time = read_pass(reading);
            best[i] = round == 0 || time < best[i] ? time : best[i];
        }
    int winner = 0;
    for (int i = 1; i < BENCH_READERS; i++)
        winner = best[i] < best[winner] ? i : winner;
    return winner;
}

void bench_decode(const struct bench_settings *settings, int64_t n, int64_t k, const char *name,
                  struct bench_bar *bar)
{
    char problem[64];
    struct bench_workload workload;
    *bar = (struct bench_bar){
        .name = name, .must = 0.6, .aim = 0.85, .larger_is_better = true, .rate_unit = "GB/s"};
    snprintf(problem, sizeof problem, "1x%lldx%lld", (long long)n, (long long)k);
    snprintf(bar->what, sizeof bar->what,
             "M=1, N=%lld, K=%lld, cold: weight bytes a second / best plain reader", (long long)n,
             (long long)k);
    if (!bench_workload_make(settings, problem, 0, &workload, bar)) return;
    struct reading reading = {.workload = &workload, .pool = fp8r_pool_create(settings->threads)};
    if (reading.pool) {
        reading.reader = best_reader(&reading);
        bench_pair(bar, settings->rounds, bench_workload_pass, &workload, read_pass, &reading,
                   (double)workload.copies);
        bar->mine_rate = (double)workload.copy_bytes / bar->mine_us / 1e3;
        bar->peer_rate = (double)workload.copy_bytes / bar->peer_us / 1e3;
        snprintf(bar->note, sizeof bar->note, "reader: %s; %lld copies", bench_reader_names[reading.reader],
                 (long long)workload.copies);
    }
    fp8r_pool_destroy(reading.pool);
    bench_workload_drop(&workload);
}
