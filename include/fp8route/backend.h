/* The backend contract: what an implementation of the product must offer. Our own rows and outside ones fill the same
 * struct, with designated initialisers. docs/backends.md walks through one.
 *
 * Life of a backend, seen from a problem:
 *     capabilities -> probe (once a context) -> supports -> pick -> workspace -> prepare -> run ... -> destroy
 * Everything up to prepare may be slow, may fail, and says why; run does neither allocate, print nor synchronise.
 * All functions may be called from several threads at once and must not change what a struct points to.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8ROUTE_BACKEND_H
#define FP8ROUTE_BACKEND_H

#include <stdbool.h>

#include "fp8route.h"

#ifdef __cplusplus
extern "C" {
#endif

#define FP8R_BACKEND_ABI 1u

/* ---- Reasons ----------------------------------------------------------------------------------------------------- */

enum fp8r_reason_code {
    FP8R_REASON_NONE = 0,
#define FP8R_REASON(name, number, sentence, meaning) FP8R_REASON_##name = number,
#include "reasons.inc"
#undef FP8R_REASON
    FP8R_REASON_END_
};

/* Why not. The sentence is made from the catalogue when somebody reads it; subject is a literal (or lives as long as
 * the backend). */
typedef struct fp8r_reason {
    int32_t code, reserved;
    const char *subject;
    int64_t have, need;
} fp8r_reason;

/* Fills the reason and returns false where the condition holds: `supports` is a list of these. */
#define FP8R_REJECT_IF(condition, reason, name, subject_, have_, need_)                                                \
    do {                                                                                                               \
        if (condition) {                                                                                               \
            (reason)->code = FP8R_REASON_##name;                                                                       \
            (reason)->reserved = 0;                                                                                    \
            (reason)->subject = (subject_);                                                                            \
            (reason)->have = (int64_t)(have_);                                                                         \
            (reason)->need = (int64_t)(need_);                                                                         \
            return false;                                                                                              \
        }                                                                                                              \
    } while (0)

/* ---- Devices ----------------------------------------------------------------------------------------------------- */

/* Processor features, each only where the operating system saves the registers it needs. */
enum {
    FP8R_CPU_AVX2 = 1u << 0,
    FP8R_CPU_FMA = 1u << 1,
    FP8R_CPU_F16C = 1u << 2,
    FP8R_CPU_AVX512 = 1u << 3,      /* F, BW, DQ and VL together */
    FP8R_CPU_AVX512_VBMI = 1u << 4, /* vpermi2b */
    FP8R_CPU_AVX512_BF16 = 1u << 5,
    FP8R_CPU_AMX_BF16 = 1u << 6, /* with AMX-TILE; the process may still need to ask for its state */
    FP8R_CPU_NEON = 1u << 7
};

/* Plain facts about one device. Constructible by hand: nothing below it asks the machine again. */
typedef struct fp8r_device_facts {
    size_t struct_size;
    int32_t kind, index; /* FP8R_DEVICE_* */
    int32_t arch;        /* CUDA: 10 * major + minor of the compute capability; CPU: 0 */
    int32_t sm_count;    /* CUDA: multiprocessors; CPU: 0 */
    int32_t driver;      /* CUDA: the driver's version as cudaDriverGetVersion gives it; CPU: 0 */
    int32_t threads;     /* CPU: threads a product may use, the caller counted; CUDA: 0 */
    uint32_t cpu_features;
    uint32_t reserved;
    int64_t l2_bytes;         /* CPU: a core's level 2; CUDA: the whole L2 */
    int64_t last_level_bytes; /* CPU: last-level cache; CUDA: equal to l2_bytes */
    int64_t bandwidth_gbs;    /* CUDA: device memory, from clock and bus width; CPU: 0, unknown */
    char name[64];            /* for people only: never decides */
} fp8r_device_facts;

/* A device fits a window when its kind is equal, arch_min <= arch <= arch_max (CUDA), it has all cpu_features, and its
 * driver is not older than driver_min. A backend may have several windows: one that fits is enough. */
typedef struct fp8r_capability {
    int32_t kind;
    int32_t arch_min, arch_max; /* equal = exactly that architecture; both 0 on a CPU */
    int32_t driver_min;
    uint32_t cpu_features, reserved;
} fp8r_capability;

/* ---- Problems ---------------------------------------------------------------------------------------------------- */

/* One operand as validation leaves it. A dimension of extent 1 has the stride that packed storage would give it (a batch
 * of 1: 0), so that nothing but m changes with m; a broadcast dimension has stride 0.
 * align_bytes: the largest power of two <= 256 that divides the address and the byte size of every stride other than 1
 * element. */
typedef struct fp8r_operand {
    int64_t batch_stride, row_stride, col_stride; /* elements */
    int32_t dtype, align_bytes;                   /* dtype FP8R_DTYPE_NONE: absent, all else 0 */
} fp8r_operand;

enum { FP8R_SCALE_NONE = 0, FP8R_SCALE_TENSOR = 1, FP8R_SCALE_BATCH = 2, FP8R_SCALE_ROW = 3 };

/* Memory order of an operand. INNER: the natural contiguous dimension has stride 1 (K for a and b, N for out);
 * OUTER: the other one has (a column-major a, a row-major b, a column-major out). */
enum { FP8R_LAYOUT_INNER = 0, FP8R_LAYOUT_INNER_PADDED = 1, FP8R_LAYOUT_OUTER = 2, FP8R_LAYOUT_OUTER_PADDED = 3, FP8R_LAYOUT_STRIDED = 4 };

/* The normalised problem. m, n, k, batch >= 1 (empty products never reach a backend, nor does K = 0).
 * scale_a: element (i, r) at batch_stride, row_stride; scale_b and bias: element (i, c) at batch_stride, col_stride.
 * scale kinds: TENSOR one value, BATCH one a batch item, ROW one a row of a (or a column of b). */
typedef struct fp8r_problem {
    int64_t batch, m, n, k;
    fp8r_operand a, b, out, scale_a, scale_b, bias;
    int32_t scale_a_kind, scale_b_kind;       /* FP8R_SCALE_* */
    int32_t layout_a, layout_b, layout_out;   /* FP8R_LAYOUT_* */
    int32_t accumulation, numerics;           /* FP8R_ACCUMULATE_*, FP8R_NUMERICS_* */
    uint32_t flags;                           /* FP8R_WEIGHTS_STATIC */
} fp8r_problem;

/* ---- The contract ------------------------------------------------------------------------------------------------ */

enum {
    FP8R_LAUNCH_PLAIN = 1u << 0 /* kernels are launched one behind the other, without programmatic dependent launch */
};

/* What the context lends to a backend; borrowed until the state is destroyed. */
typedef struct fp8r_services {
    size_t struct_size;
    int32_t threads; /* the most threads `parallel` uses, the caller counted */
    uint32_t flags;  /* FP8R_LAUNCH_* */
    void *pool;
    /* Calls task(arg, i) for every i in 0..count-1, each once, on up to `threads` threads, and returns when all are
     * done. Where the pool is busy with another caller, the tasks run in this thread. Tasks must not call it again. */
    void (*parallel)(void *pool, int64_t count, void (*task)(void *arg, int64_t index), void *arg);
} fp8r_services;

enum { FP8R_CONFIG_ANY = -1 };

struct fp8r_backend {
    uint32_t abi_version; /* FP8R_BACKEND_ABI */
    int32_t priority;     /* order of defaults, larger first; ours: sm90 90, cublaslt 80, cuda 70, cpu 50, blas 40,
                             reference 0 */
    size_t struct_size;   /* sizeof(fp8r_backend) */
    const char *name;     /* [a-z][a-z0-9_]*, unique, stable, never reused for something else */
    const char *description; /* one line */
    const char *rev;         /* changes when results or speed may: a hash of the sources, or a version */
    const fp8r_capability *capabilities;
    size_t capability_count;    /* at least one */
    const char *const *configs; /* NULL-terminated, at least one; [a-zA-Z0-9_.=-]+, stable. An index below means these */
    void *user;

    /* Once a context whose device fits: may the backend run here at all (a library to load, a permission to get)?
     * NULL = yes. What it acquires is process-wide and stays. */
    bool (*probe)(void *user, const fp8r_device_facts *device, fp8r_reason *reason);

    /* Name and version of the vendor library behind the backend, e.g. "openblas 0.3.21", valid after a probe that said
     * yes; part of what a route file is tied to. NULL = there is none. */
    const char *(*library)(void *user);

    /* Can configuration `config` run this problem? FP8R_CONFIG_ANY: can any (then the one that `pick` names can).
     * A yes means that prepare and run succeed, short of memory and device failures. A no fills the reason. */
    bool (*supports)(void *user, const fp8r_device_facts *device, const fp8r_problem *problem, int config,
                     fp8r_reason *reason);

    /* The numerics class of a configuration: equal classes = equal bits, whatever the tile, thread count or M.
     * For a problem with FP8R_NUMERICS_BATCH_INVARIANT, `pick` keeps to one class for all m, and this names it; NULL =
     * nothing is promised. NULL function = never promises. */
    const char *(*numerics)(void *user, const fp8r_device_facts *device, const fp8r_problem *problem, int config);

    /* The configuration that the backend itself would take; asked only after supports(ANY) said yes. */
    int (*pick)(void *user, const fp8r_device_facts *device, const fp8r_problem *problem);

    /* The largest m' >= problem->m such that for every m in between `supports`, `numerics`, `pick` and `expect`
     * answer the same, all else equal. NULL = the answers do not depend on m (INT64_MAX). */
    int64_t (*horizon)(void *user, const fp8r_device_facts *device, const fp8r_problem *problem);

    /* Bytes of workspace a run with this m needs; never smaller for a larger m. NULL = none. */
    size_t (*workspace)(void *user, const fp8r_device_facts *device, const fp8r_problem *problem, int config);

    /* Prepares a configuration for a family: what may differ at run is m (1 .. problem->m), the pointers, and the batch
     * strides of a, out and scale_a. Everything that can fail fails here. state may be left NULL. NULL = nothing. */
    fp8r_status (*prepare)(void *user, const fp8r_services *services, const fp8r_device_facts *device,
                           const fp8r_problem *problem, int config, void **state);

    /* Runs it. problem: this call's (its m and batch strides). pointers: all that the problem has, the others NULL.
     * workspace: 256-byte aligned. UNSUPPORTED only before the first write or launch. */
    fp8r_status (*run)(void *user, const fp8r_services *services, const void *state, const fp8r_problem *problem,
                       int config, const fp8r_pointers *pointers, void *workspace, size_t workspace_bytes, void *stream);

    void (*destroy)(void *user, void *state); /* NULL = nothing to release */

    /* The file that `library` was loaded from, for people only. NULL = it is not known. */
    const char *(*library_file)(void *user);

    /* Microseconds that the backend's own model expects of the configuration that `pick` named; 0 = it has none. Where
     * nothing was measured, the default goes by priority, unless a later backend expects clearly less than the first. NULL =
     * it has no model. */
    double (*expect)(void *user, const fp8r_device_facts *device, const fp8r_problem *problem, int config);
};

/* The one symbol of a plug-in (fp8route --plugin FILE.so): a NULL-terminated list. */
typedef const fp8r_backend *const *(*fp8r_backends_function)(void);

#ifdef __cplusplus
}
#endif
#endif
