/* Three readers. Compilers turn the eight-wide vectors into what the processor has; memory, not the loads, is
 * what they wait for.
 * SPDX-License-Identifier: Apache-2.0 */
#include "readers.h"

#include <string.h>

typedef uint64_t line __attribute__((vector_size(64)));

enum { LINES = 8, STREAMS = 4, AHEAD_LINES = 64 };

const char *const bench_reader_names[BENCH_READERS] = {"one stream", "one stream, fetched 4 KB ahead",
                                                       "four streams, fetched 4 KB ahead"};

static inline uint64_t fold(const line *sums, int count)
{
    uint64_t total = 0;
    for (int i = 0; i < count; i++)
        for (int j = 0; j < 8; j++)
            total ^= sums[i][j];
    return total;
}

static inline uint64_t read_stream(const line *memory, size_t lines, int ahead)
{
    line sums[LINES];
    memset(sums, 0, sizeof sums);
    for (size_t i = 0; i + LINES <= lines; i += LINES)
        for (size_t j = 0; j < LINES; j++) {
            if (ahead) __builtin_prefetch(memory + i + j + ahead);
            sums[j] ^= memory[i + j];
        }
    return fold(sums, LINES);
}

static uint64_t read_streams(const line *memory, size_t lines)
{
    line sums[STREAMS];
    memset(sums, 0, sizeof sums);
    size_t part = lines / STREAMS;
    for (size_t i = 0; i < part; i++)
        for (size_t j = 0; j < STREAMS; j++) {
            __builtin_prefetch(memory + j * part + i + AHEAD_LINES);
            sums[j] ^= memory[j * part + i];
        }
    return fold(sums, STREAMS);
}

uint64_t bench_read(int reader, const void *memory, size_t bytes)
{
    size_t lines = bytes / sizeof(line);
    if (reader == 0) return read_stream(memory, lines, 0);
    return reader == 1 ? read_stream(memory, lines, AHEAD_LINES) : read_streams(memory, lines);
}
