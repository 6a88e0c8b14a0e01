/* The context: everything that is read once and then only looked at, the thread pool, and the cache of plans.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_API_CONTEXT_H
#define FP8R_API_CONTEXT_H

#include <stdatomic.h>

#include "api/space.h"
#include "api/stream_space.h"
#include "api/trace.h"
#include "base/environment.h"
#include "base/fork.h"
#include "base/log.h"
#include "base/pool.h"
#include "route/decide.h"
#include "route/table.h"

/* Plans that scaled_mm made, by family. Readers take no lock: a slot is written once, its plan is replaced by one for
 * more rows, and nothing is freed before the context. */
enum { FP8R_CACHE_SLOTS = 8192, FP8R_CACHE_FAMILIES = FP8R_CACHE_SLOTS / 2 };

struct fp8r_family {
    fp8r_problem key; /* the problem with what may differ between its members set to 0 */
    struct fp8r_plan *_Atomic plan;
};

struct fp8r_cache {
    struct fp8r_family *_Atomic slots[FP8R_CACHE_SLOTS];
    struct fp8r_lock lock; /* guards what follows, and writing slots */
    int families;
    struct fp8r_plan *retired; /* linked by `next`: replaced plans that a reader may still run */
};

/* What every call looks at stands first, in a line of cache or two. */
struct fp8r_context {
    struct fp8r_cuda *cuda;   /* the GPU; NULL on a CPU */
    struct fp8r_trace *trace; /* NULL = not asked for */
    struct fp8r_log log;
    struct fp8r_environment environment;
    fp8r_device_facts device;
    struct fp8r_registry registry;
    struct fp8r_table table;
    struct fp8r_router router;
    struct fp8r_pool *pool;
    fp8r_services services;
    unsigned char routes_id[32];
    _Atomic uint64_t reported; /* rows whose failure to prepare has been logged, by bit */
    _Atomic bool forced_reported;
    struct fp8r_space space;               /* on a CPU */
    struct fp8r_stream_space stream_space; /* on a GPU */
    struct fp8r_cache cache;
};

#endif
