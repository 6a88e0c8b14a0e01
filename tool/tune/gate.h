/* The gate: does a route file still hold on this machine? Each of its routes at its borders and in its
 * middle, the chosen backend in pairs against the runner-up and against the default. SPDX-License-Identifier:
 * Apache-2.0 */
#ifndef TOOL_TUNE_GATE_H
#define TOOL_TUNE_GATE_H

#include "measure/rotation.h"
#include "tune/gate_routes.h"
#include "tune/quick.h"
#include "tune/record.h"

struct gate {
    fp8r_context *context; /* without routes */
    const struct fp8r_measure_device *device;
    struct record *record; /* holds no samples of the gate's phase */
    uint64_t seed;
    double margin;
    bool is_warm;          /* operands are not rotated out of the caches: as the file was measured */
    double budget_seconds; /* no further point is begun that would end behind this; 0 = no limit */
    void (*progress)(void *user, const struct fp8r_progress *progress);
    void (*note)(void *user, const char *line);
    void *user;
    bool is_wrong; /* some result was wrong */
    size_t points, points_done;
    struct fp8r_rotation rotation;
    int64_t start_ns;
};

/* Measures the routes in their order and fills in what came of it. Exit codes: INTERRUPTED, UNMEASURED when
 * the device fails, INTERNAL. What the routes say is no error: gate_routes_exit. */
int gate_measure(struct gate *gate, struct gate_routes *routes, struct fp8r_tool_error *error);

#endif
