/* Measuring on a CPU: host memory, and calls that are done when they return.
 * SPDX-License-Identifier: Apache-2.0 */
#include "measure/measure_device.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "measure/clock.h"

/* Reading the clock costs tens of nanoseconds, waking threads a few microseconds. */
enum { SAMPLE_NS = 50000 };

struct fp8r_recording {
    int64_t count;
    fp8r_measured_call call;
    void *arg;
};

int64_t fp8r_host_available_bytes(void)
{
    char line[128];
    int64_t kib = -1;
    FILE *file = fopen("/proc/meminfo", "r");
    while (file && kib < 0 && fgets(line, sizeof line, file))
        if (sscanf(line, "MemAvailable: %" SCNd64, &kib) != 1) kib = -1;
    if (file) fclose(file);
    return kib < 0 || kib > INT64_MAX / 1024 ? INT64_MAX : kib * 1024;
}

static void *allocate(void *user, size_t bytes)
{
    (void)user;
    size_t rounded = (bytes + 255) / 256 * 256;
    return rounded < bytes ? NULL : aligned_alloc(256, rounded ? rounded : 256);
}

static void release(void *user, void *memory)
{
    (void)user;
    free(memory);
}

static fp8r_status copy(void *user, void *to, const void *from, size_t bytes)
{
    (void)user;
    if (bytes > 0) memcpy(to, from, bytes);
    return FP8R_OK;
}

static fp8r_status record(void *user, int64_t count, fp8r_measured_call call, void *arg,
                          struct fp8r_recording **recording)
{
    (void)user;
    struct fp8r_recording *made = malloc(sizeof *made);
    if (!made) return fp8r_fail_memory("a recording");
    *made = (struct fp8r_recording){count, call, arg};
    *recording = made;
    return FP8R_OK;
}

static fp8r_status time_batch(void *user, const struct fp8r_recording *recording, int64_t *elapsed_ns)
{
    (void)user;
    fp8r_status status = FP8R_OK;
    int64_t start = fp8r_clock_ns();
    for (int64_t i = 0; i < recording->count && status == FP8R_OK; i++)
        status = recording->call(recording->arg, NULL);
    *elapsed_ns = fp8r_clock_ns() - start;
    return status;
}

static void forget(void *user, struct fp8r_recording *recording)
{
    (void)user;
    free(recording);
}

/* A chain of additions that each need the one before: one a cycle on every processor that matters here. About 10 us. */
static int clock_mhz(void *user)
{
    enum { ADDITIONS = 32000, UNROLLED = 16 };
    uint64_t sum = 1;
    (void)user;
    int64_t start = fp8r_clock_ns();
    for (int i = 0; i < ADDITIONS / UNROLLED; i++) {
        for (int j = 0; j < UNROLLED; j++) {
            sum += 3;
            __asm__ volatile("" : "+r"(sum)); /* neither folded nor reordered */
        }
    }
    int64_t elapsed_ns = fp8r_clock_ns() - start;
    return elapsed_ns > 0 ? (int)(ADDITIONS * INT64_C(1000) / elapsed_ns) : 0;
}

void fp8r_measure_cpu_init(const fp8r_device_facts *facts, struct fp8r_measure_device *device)
{
    *device = (struct fp8r_measure_device){.cache_bytes = facts->last_level_bytes,
                                           .sample_ns = SAMPLE_NS,
                                           .available_bytes = fp8r_host_available_bytes(),
                                           .allocate = allocate,
                                           .release = release,
                                           .copy_in = copy,
                                           .copy_out = copy,
                                           .record = record,
                                           .time = time_batch,
                                           .forget = forget,
                                           .clock_mhz = clock_mhz};
}
