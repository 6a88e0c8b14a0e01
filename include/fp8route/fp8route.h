/* fp8route: FP8 matrix multiplication, each product sent to the implementation measured fastest on this machine.
 *
 *     out[b,m,n] = round( (sum_k a[b,m,k] * b[b,k,n]) * scale_b[n] * scale_a[m] + bias[n] )
 *
 * Sections: statuses, matrices and products, contexts, plain products, plans, explanations, quantising, arrays, text.
 *
 * Rules that hold everywhere:
 *  - Every size is a 64-bit count of elements and every stride is in elements.
 *  - A function that can fail returns an fp8r_status, writes its results only on success, and leaves one line in
 *    fp8r_last_error() that names the argument and what would be right.
 *  - The library never prints (unless asked by FP8ROUTE_VERBOSE or a log callback), never exits, never aborts.
 *  - Zero a struct, set struct_size, then the fields you need: later versions only append fields whose zero is today's
 *    behaviour.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8ROUTE_FP8ROUTE_H
#define FP8ROUTE_FP8ROUTE_H

#include <stddef.h>
#include <stdint.h>

#define FP8R_VERSION_MAJOR 0
#define FP8R_VERSION_MINOR 1
#define FP8R_VERSION_PATCH 0
#define FP8R_VERSION (FP8R_VERSION_MAJOR * 10000 + FP8R_VERSION_MINOR * 100 + FP8R_VERSION_PATCH)

#if defined(__GNUC__)
#define FP8R_API       __attribute__((visibility("default")))
#define FP8R_NODISCARD __attribute__((warn_unused_result))
#else
#define FP8R_API
#define FP8R_NODISCARD
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Statuses ---------------------------------------------------------------------------------------------------- */

typedef enum fp8r_status {
    FP8R_OK = 0,
    FP8R_ERROR_INVALID_ARGUMENT = 1, /* the call is wrong whatever the machine: last_error names the argument */
    FP8R_ERROR_UNSUPPORTED = 2,      /* the call is right, but nothing (or not the named backend) takes it here */
    FP8R_ERROR_AMBIGUOUS = 3,        /* FP8R_ROUTED_ONLY: several backends could run it and no route says which */
    FP8R_ERROR_NOT_FOUND = 4,        /* no backend or configuration of that name */
    FP8R_ERROR_OUT_OF_MEMORY = 5,
    FP8R_ERROR_DEVICE = 6, /* the device or its driver failed */
    FP8R_ERROR_IO = 7,     /* a file could not be read or written */
    FP8R_ERROR_FORMAT = 8  /* a file or a text is not in its format: last_error names the line or position */
} fp8r_status;

/* The status's stable name, e.g. "FP8R_ERROR_UNSUPPORTED"; "FP8R_ERROR_UNKNOWN" for any other number. Never NULL. */
FP8R_API const char *fp8r_status_name(fp8r_status status);

/* The last failure of this thread in one line, "" when there was none. Valid until this thread's next fp8route call
 * that fails. Thread-local: threads never see each other's line. */
FP8R_API const char *fp8r_last_error(void);

/* FP8R_VERSION of the library that is loaded (the header's may be older). */
FP8R_API uint32_t fp8r_version(void);

/* ---- Matrices and products --------------------------------------------------------------------------------------- */

enum {
    FP8R_DTYPE_NONE = 0, /* the matrix is absent */
    FP8R_DTYPE_E4M3 = 1, /* the "fn" form: no infinity, NaN is 0x7F and 0xFF, largest 448 */
    FP8R_DTYPE_E5M2 = 2,
    FP8R_DTYPE_BF16 = 3,
    FP8R_DTYPE_FP16 = 4,
    FP8R_DTYPE_FP32 = 5
};

/* A batch of matrices in memory. Element (i, r, c) is at data + (i*batch_stride + r*row_stride + c*col_stride) elements.
 * data: on the context's device, aligned to its element (1, 2 or 4 bytes); borrowed for the call (or, in a plan, only
 * its alignment is looked at). Strides are not negative; the stride of a dimension of extent 1 is ignored, 0 repeats. */
typedef struct fp8r_matrix {
    void *data;
    int32_t dtype, reserved; /* FP8R_DTYPE_*; 0 */
    int64_t batch, rows, cols, batch_stride, row_stride, col_stride;
} fp8r_matrix;

enum {
    FP8R_ACCUMULATE_FAST = 0,   /* the tensor core's own accumulator: about 13 bits of mantissa on Hopper */
    FP8R_ACCUMULATE_PRECISE = 1 /* partial sums promoted to fp32 regularly; error bounded by K and the magnitudes */
};
enum {
    FP8R_NUMERICS_ANY = 0,
    FP8R_NUMERICS_BATCH_INVARIANT = 1 /* a row's bits do not depend on M: one numerics class for every M, or refusal */
};
enum { FP8R_WEIGHTS_STATIC = 1u << 0 /* b, once written, stays as it is while products with it are queued or run */ };

/* One product, or a batch of them.
 *   a        [B,M,K]  e4m3 or e5m2; or bf16/fp16 with scale_a absent: each row is quantised to e4m3 on the way
 *   b        [B,K,N]  e4m3
 *   out      [B,M,N]  bf16, fp16 or fp32; strides that do not overlap themselves; never over an input
 *   scale_a  fp32 [B|1, M|1, 1], multiplies; extent 1 broadcasts; absent = 1
 *   scale_b  fp32 [B|1, 1, N|1], likewise
 *   bias     bf16, fp16 or fp32 [B|1, 1, N], added last
 * Arithmetic: r = acc * scale_b; r = r * scale_a; r = r + bias, each rounded to fp32 without contraction, then one
 * rounding to nearest even to out's type. fp16 overflow gives Inf. A NaN code gives NaN in exactly its row or column.
 * M, N or B = 0: success, nothing is touched. K = 0: zeros, or the bias.
 * The batch of a or b may be 1 for B > 1: it is repeated. */
typedef struct fp8r_matmul {
    size_t struct_size;
    fp8r_matrix a, b, out;
    fp8r_matrix scale_a, scale_b, bias;
    int32_t accumulation, numerics; /* FP8R_ACCUMULATE_*, FP8R_NUMERICS_* */
    uint32_t flags, reserved;       /* FP8R_WEIGHTS_STATIC; 0 */
} fp8r_matmul;

/* What a plan's run needs anew each time: how many rows, and where everything is. A pointer of an operand that the plan
 * does not have must be NULL; the others are aligned at least as they were at plan time. */
typedef struct fp8r_pointers {
    size_t struct_size;
    int64_t m;
    const void *a, *b;
    void *out;
    const void *scale_a, *scale_b, *bias;
} fp8r_pointers;

/* ---- Contexts ---------------------------------------------------------------------------------------------------- */

enum { FP8R_DEVICE_CPU = 0, FP8R_DEVICE_CUDA = 1 };

typedef struct fp8r_device {
    int32_t kind, index; /* FP8R_DEVICE_*; index of the GPU, 0 for the CPU */
} fp8r_device;

enum {
    FP8R_NO_ENVIRONMENT = 1u << 0, /* read no FP8ROUTE_* variable (which libraries a process loads excepted) */
    FP8R_NO_ROUTE_FILES = 1u << 1, /* read no route file but options.routes */
    FP8R_ROUTED_ONLY = 1u << 2,    /* like FP8ROUTE_UNROUTED=error: no neighbour and no default decides */
    FP8R_EAGER_ROUTES = 1u << 3    /* on a GPU, routes measured call by call decide first; those of graphs unless set */
};
enum { FP8R_LOG_ERROR = 0, FP8R_LOG_WARNING = 1, FP8R_LOG_INFO = 2, FP8R_LOG_DEBUG = 3 };

typedef struct fp8r_context fp8r_context;
typedef struct fp8r_backend fp8r_backend; /* backend.h */

typedef struct fp8r_context_options {
    size_t struct_size;
    int32_t threads; /* worker threads on the CPU, the caller counted; 0: FP8ROUTE_THREADS, else one a usable core */
    uint32_t flags;
    const char *routes;                   /* a route file read before all others; a bad one is an error here */
    const fp8r_backend *const *backends;  /* outside backends, borrowed until the context is destroyed */
    size_t backend_count;
    void (*log)(void *user, int level, const char *line); /* called from any thread; NULL: stderr, when asked for */
    void *log_user;
} fp8r_context_options;

/* Creates a context: device facts, environment, backends and route files are read here, once.
 * options may be NULL (all defaults). The context is immutable afterwards and may be shared by threads.
 * Errors: INVALID_ARGUMENT, UNSUPPORTED (this build or machine has no such device), OUT_OF_MEMORY, and of
 * options.routes IO, FORMAT. */
FP8R_API FP8R_NODISCARD fp8r_status fp8r_context_create(fp8r_device device, const fp8r_context_options *options,
                                                        fp8r_context **context);

/* Ends the context. Its plans must be destroyed before and no call may be under way. NULL is fine. */
FP8R_API void fp8r_context_destroy(fp8r_context *context);

/* A digest of all that decides (backends, routes, policies): equal on every rank = the same decisions. Zeros where
 * context is NULL. */
FP8R_API void fp8r_context_routes_id(const fp8r_context *context, unsigned char id[32]);

/* The facts of the context's device as its backends see them (backend.h); owned by the context. */
struct fp8r_device_facts;
FP8R_API const struct fp8r_device_facts *fp8r_context_device(const fp8r_context *context);

/* One row of the list, whatever the problem. Strings are owned by the context. */
typedef struct fp8r_backend_info {
    size_t struct_size;
    const char *name, *description;
    const char *rev;            /* changes when results or speed may; "" where not built */
    const char *library;        /* vendor library and version behind it; "" where there is none */
    const char *const *configs; /* NULL-terminated; empty where not built */
    int32_t priority;           /* order of defaults, larger first */
    int32_t is_built, fits;     /* its code is here; it may run on this device */
    int32_t reason;             /* FP8R_REASON_* where it does not fit, else 0 */
    char sentence[256];         /* the reason in words */
    const char *library_file;   /* where that library was loaded from; "" where it is not known */
} fp8r_backend_info;

/* How many rows there are, ours and outside ones, in the order of defaults; and one of them. info->struct_size is set
 * by the caller. Errors: INVALID_ARGUMENT. */
FP8R_API size_t fp8r_context_backend_count(const fp8r_context *context);
FP8R_API FP8R_NODISCARD fp8r_status fp8r_context_backend(const fp8r_context *context, size_t index,
                                                         fp8r_backend_info *info);

/* The route files in use, in the order in which they were read; NULL behind the last. Owned by the context. */
FP8R_API const char *fp8r_context_route_file(const fp8r_context *context, size_t index);

/* Where this user's own routes for this machine belong, which a tune adds to; whether there is such a file or not. size:
 * of path; 4096 is enough. Errors: INVALID_ARGUMENT, NOT_FOUND where the environment names no place. */
FP8R_API FP8R_NODISCARD fp8r_status fp8r_context_user_route_file(const fp8r_context *context, char *path, size_t size);

/* ---- Plain products ---------------------------------------------------------------------------------------------- */

/* Runs one product on the backend that the routes choose (see fp8r_explain).
 * stream: NULL on a CPU, where the call returns when out is written; on a GPU the work is queued on the stream and the
 * call returns at once. Any thread. Errors: INVALID_ARGUMENT, UNSUPPORTED, AMBIGUOUS, OUT_OF_MEMORY, DEVICE. */
FP8R_API FP8R_NODISCARD fp8r_status fp8r_scaled_mm(fp8r_context *context, const fp8r_matmul *matmul, void *stream);

/* ---- Plans ------------------------------------------------------------------------------------------------------- */

typedef struct fp8r_plan fp8r_plan;

/* Prepares a family of products: everything of matmul but M is fixed (strides, types, bias or none, and the alignment
 * of each data pointer, NULL meaning 256 bytes); M is the largest that will be run. Data is not touched.
 * backend: NULL = routed; "cpu" or "cpu:CONFIG" = that one and no other.
 * Errors: as scaled_mm, and NOT_FOUND (unknown backend or configuration); UNSUPPORTED says why the named one refuses. */
FP8R_API FP8R_NODISCARD fp8r_status fp8r_plan_create(fp8r_context *context, const fp8r_matmul *matmul,
                                                     const char *backend, fp8r_plan **plan);

/* Runs the family's member with pointers->m rows, 0 <= m <= the planned M. Does not allocate, parse or lock.
 * workspace: on the device, 256-byte aligned, at least fp8r_plan_workspace bytes, not shared by runs that overlap in
 * time, those of replayed graphs included; NULL is fine where that is 0. Many threads may run one plan, each with a
 * workspace of its own.
 * Errors: INVALID_ARGUMENT (m, a missing or less aligned pointer, a short workspace), DEVICE. */
FP8R_API FP8R_NODISCARD fp8r_status fp8r_plan_run(const fp8r_plan *plan, const fp8r_pointers *pointers, void *workspace,
                                                  size_t workspace_bytes, void *stream);

/* The most workspace that any m up to the planned M needs, in bytes. */
FP8R_API size_t fp8r_plan_workspace(const fp8r_plan *plan);

/* "backend:config" that a run with m rows uses; NULL where m is out of the plan. Owned by the plan. */
FP8R_API const char *fp8r_plan_backend(const fp8r_plan *plan, int64_t m);

FP8R_API void fp8r_plan_destroy(fp8r_plan *plan);

/* ---- Explanations ------------------------------------------------------------------------------------------------ */

enum {
    FP8R_VERDICT_CHOSEN = 0,
    FP8R_VERDICT_ELIGIBLE = 1, /* could run it, another was chosen */
    FP8R_VERDICT_REFUSED = 2   /* cannot, or must not: see the reason */
};

/* One row of the list for one problem. Strings are owned by the explanation. */
typedef struct fp8r_candidate {
    const char *backend;  /* stable name */
    const char *config;   /* the configuration it would run; "" where it refuses */
    const char *numerics; /* numerics class of that configuration; "" where it has none to promise */
    int32_t verdict;      /* FP8R_VERDICT_* */
    int32_t reason;       /* FP8R_REASON_*, see docs/reasons.md; 0 when it could run */
    const char *sentence; /* the reason, or why it was chosen, in words */
    int64_t have, need;   /* the numbers that failed; 0 where none apply */
    double median_us;     /* measured time at this problem's segment; 0 = not measured */
    double gain_low, gain_high; /* 0 = not measured. Of the chosen one: interval of default time / its time in the route;
                                   of another one: interval of its time / the chosen one's */
} fp8r_candidate;

typedef struct fp8r_explanation fp8r_explanation;

/* Says which backend scaled_mm would use for this product and why, and of every other row why not. Runs nothing; data
 * pointers may be NULL (256-byte aligned then). When nothing can run it, the explanation is still made and no candidate
 * is CHOSEN. An empty product (M, N, K or B = 0) reaches no backend and has no candidates. Errors: INVALID_ARGUMENT,
 * OUT_OF_MEMORY. */
FP8R_API FP8R_NODISCARD fp8r_status fp8r_explain(fp8r_context *context, const fp8r_matmul *matmul,
                                                 fp8r_explanation **explanation);
FP8R_API size_t fp8r_explanation_count(const fp8r_explanation *explanation);
FP8R_API const fp8r_candidate *fp8r_explanation_candidate(const fp8r_explanation *explanation, size_t index);

/* Which step decided: "forced", "route", "extrapolated", "neighbour", "default", "reference", "only", "none",
 * "ambiguous" or "nothing to do". */
FP8R_API const char *fp8r_explanation_source(const fp8r_explanation *explanation);

/* One line more: the route file and segment behind the decision, or how to measure one and how long that takes. */
FP8R_API const char *fp8r_explanation_note(const fp8r_explanation *explanation);
FP8R_API void fp8r_explanation_destroy(fp8r_explanation *explanation);

/* ---- Quantising -------------------------------------------------------------------------------------------------- */

enum {
    FP8R_SCALING_COMPUTE = 0, /* scale is written: max(amax / 448, 2^-126) of each group, 1 for a group of zeros */
    FP8R_SCALING_GIVEN = 1    /* scale is read */
};

/* Quantises to e4m3: code = saturate(round_to_nearest_even(x * (1 / scale))), every step fp32, no flush of subnormals.
 *   in     [B,R,C] bf16, fp16 or fp32, any strides      out [B,R,C] e4m3, strides that do not overlap themselves
 *   scale  fp32; its extents set the groups: [B|1,R|1,C|1], each extent 1 or in's. [B,R,1] a row, [B,1,C] a column,
 *          [1,1,1] the whole tensor
 * NaN stays NaN and does not count for amax. A group that holds Inf gets scale Inf: its finite values become 0 and its
 * Infs NaN. The same bytes on every device.
 * stream as in scaled_mm. Errors: INVALID_ARGUMENT, UNSUPPORTED, OUT_OF_MEMORY, DEVICE. */
FP8R_API FP8R_NODISCARD fp8r_status fp8r_quantize(fp8r_context *context, const fp8r_matrix *in, const fp8r_matrix *out,
                                                  const fp8r_matrix *scale, int32_t scaling, void *stream);

/* out = round(in * scale), in e4m3 or e5m2, out bf16, fp16 or fp32, scale as above (NULL or NONE = 1). */
FP8R_API FP8R_NODISCARD fp8r_status fp8r_dequantize(fp8r_context *context, const fp8r_matrix *in,
                                                    const fp8r_matrix *scale, const fp8r_matrix *out, void *stream);

/* ---- Arrays ------------------------------------------------------------------------------------------------------ */

/* An array as frameworks have it: `rank` extents and strides (in elements). All zero = absent. */
typedef struct fp8r_array {
    void *data;
    const int64_t *extents, *strides;
    int32_t dtype, rank;
} fp8r_array;

enum {
    FP8R_FORM_PLAIN = 0,  /* a [..., K]: the leading dimensions are M together   b [K, N] */
    FP8R_FORM_LINEAR = 1, /* the same with b [N, K], as layers keep their weights */
    FP8R_FORM_BATCHED = 2 /* a [B, M, K]   b [B, K, N] */
};

/* A product in arrays. Any scale may have one element, whatever its rank; else
 *   scale_a  one a row of a: a's leading extents, or [M], with or without a last 1    batched: [B|1, M|1, 1]
 *   scale_b  [N], [1, N] or [N, 1]                                                    batched: [B|1, 1, N|1]
 *   bias     likewise                                                                 batched: [N] or [B|1, 1, N]
 *   out      a's leading extents and N; extents NULL = not there yet: packed */
typedef struct fp8r_arrays {
    size_t struct_size;
    fp8r_array a, b, out, scale_a, scale_b, bias;
    int32_t form, accumulation, numerics; /* FP8R_FORM_*, FP8R_ACCUMULATE_*, FP8R_NUMERICS_* */
    uint32_t flags;                       /* FP8R_WEIGHTS_STATIC */
} fp8r_arrays;

/* Makes a product of arrays and checks it as scaled_mm would, but for the pointers, which may be NULL. Lines about a product
 * of FP8R_FORM_LINEAR call its arrays x, weight, x_scale and weight_scale.
 * Errors: INVALID_ARGUMENT; UNSUPPORTED where leading dimensions are not at one stride, so that the array last_error
 * names has to be copied first. */
FP8R_API FP8R_NODISCARD fp8r_status fp8r_matmul_from_arrays(const fp8r_arrays *arrays, fp8r_matmul *matmul);

/* The same for fp8r_quantize. in and out [..., C], the leading dimensions are R together; scale has one element, or one a
 * row (in's leading extents, or [R], with or without a last 1), or, where in is a matrix, one a column: [1, C].
 * Errors as above. */
FP8R_API FP8R_NODISCARD fp8r_status fp8r_quantize_from_arrays(const fp8r_array *in, const fp8r_array *out,
                                                              const fp8r_array *scale, int32_t scaling,
                                                              fp8r_matrix *in_matrix, fp8r_matrix *out_matrix,
                                                              fp8r_matrix *scale_matrix);

/* ---- Text -------------------------------------------------------------------------------------------------------- */

/* Reads "[B*]MxNxK[:option]..." (docs/grammar.md) into a product without data pointers. Errors: INVALID_ARGUMENT, with
 * the position in last_error. */
FP8R_API FP8R_NODISCARD fp8r_status fp8r_matmul_parse(const char *text, fp8r_matmul *matmul);

/* Writes the shortest text that parse reads back as the same product (data pointers become their alignment).
 * 256 bytes are always enough. Errors: INVALID_ARGUMENT (also: size too small; text is then ""). */
FP8R_API FP8R_NODISCARD fp8r_status fp8r_matmul_format(const fp8r_matmul *matmul, char *text, size_t size);

#ifdef __cplusplus
}
#endif
#endif
