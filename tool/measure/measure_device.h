/* What measuring asks of a device: memory, copies, and the time of a batch of calls. The device side supplies
 * it; nothing above assumes a CPU. SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_MEASURE_DEVICE_H
#define FP8R_MEASURE_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <fp8route/backend.h>

struct fp8r_judge;

/* One call of a batch, queued on (GPU) or run before it returns (CPU). */
typedef fp8r_status (*fp8r_measured_call)(void *arg, void *stream);

/* A batch ready to be timed again and again; each device has its own kind. */
struct fp8r_recording;

struct fp8r_measure_device {
    int64_t cache_bytes;     /* what operands must be rotated out of */
    int64_t sample_ns;       /* a sample lasts at least this long, so that starting and stopping do not count */
    int64_t available_bytes; /* memory that can still be had, roughly */
    bool is_remote; /* its memory is not the host's */
    bool records; /* a batch is recorded once and replayed: then it must itself cover a whole rotation */
    void *user;

    /* 256-byte aligned memory of the device; NULL when there is none left. */
    void *(*allocate)(void *user, size_t bytes);
    void (*release)(void *user, void *memory);
    fp8r_status (*copy_in)(void *user, void *to, const void *from_host, size_t bytes);
    fp8r_status (*copy_out)(void *user, void *to_host, const void *from, size_t bytes);
    fp8r_status (*copy_across)(void *user, void *to, const void *from, size_t bytes); /* from the device to itself */
    const struct fp8r_judge *judge; /* NULL: results are judged on the host */

    /* Prepares a batch of count calls: call(arg, stream) count times in a row. On a device that records, the
     * calls are made here, once, while their stream is capturing; elsewhere each time. Borrows arg until
     * forget. */
    fp8r_status (*record)(void *user, int64_t count, fp8r_measured_call call, void *arg,
                          struct fp8r_recording **recording);
    /* Runs the batch and waits for it: its time in nanoseconds. */
    fp8r_status (*time)(void *user, const struct fp8r_recording *recording, int64_t *elapsed_ns);
    void (*forget)(void *user, struct fp8r_recording *recording);
    /* Queues a small kernel that writes bytes of `from`, or of `to` itself, to `to`: what half of a recorded sample's calls
     * stand behind. NULL: all calls stand behind themselves. */
    fp8r_status (*produce)(void *user, void *to, const void *from, size_t bytes, void *stream);
    /* As they are now; NULL where they cannot be read. */
    int (*clock_mhz)(void *user);
    int (*power_watts)(void *user);
    int (*temperature_celsius)(void *user);
    void (*close)(void *user); /* NULL: nothing to close */
};

/* The device of these facts. is_graph: on a GPU, a batch is captured once and replayed; otherwise its calls are queued
 * one by one. A CPU knows no graphs. Errors: UNSUPPORTED, OUT_OF_MEMORY, DEVICE. */
fp8r_status fp8r_measure_device_init(const fp8r_device_facts *facts, bool is_graph,
                                     struct fp8r_measure_device *device);
void fp8r_measure_device_fini(struct fp8r_measure_device *device); /* zeroed: fine */

/* Each kind's own. */
void fp8r_measure_cpu_init(const fp8r_device_facts *facts, struct fp8r_measure_device *device);
fp8r_status fp8r_measure_cuda_init(const fp8r_device_facts *facts, bool is_graph,
                                   struct fp8r_measure_device *device);

/* Memory of the machine that can still be had, in bytes; INT64_MAX where the system does not tell. */
int64_t fp8r_host_available_bytes(void);

#endif
