/* The cpu backend's row: which configuration runs what, and the way from a call to a job. A configuration is
 * one kernel: an instruction set and one of the two drivers.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "backend/cpu/job.h"
#include "base/compiler.h"
#include "base/convert.h"
#include "base/dtype.h"
#include "base/sizes.h"
#include "base/status.h"

#if FP8R_X86_64
#define ON_X86(isa) &isa
#else
#define ON_X86(isa) NULL
#endif

/* The better of two usable ones later, among the skinny and among the packed. Three values of M, 0 for none, from sweeps
 * (docs/worklog.md):
 *     of a packed kernel, from where it is expected to be faster than the skinny one that the same processor would take;
 *     from where a single tile of it is, up to the tile's rows; and from where it is if K is deep;
 *     of a skinny kernel, 0; up to where it goes before those later in the list; and from where it does if K is deep. */
#define CONFIGS(X)                                                                                           \
    X("portable_skinny", &fp8r_cpu_portable_skinny, 0, 0, 0)                                                       \
    X("portable_packed", &fp8r_cpu_portable_packed, 5, 0, 0)                                                       \
    X("avx2_skinny", ON_X86(fp8r_cpu_avx2_skinny), 0, 0, 0)                                                        \
    X("avx2_packed", ON_X86(fp8r_cpu_avx2_packed), 13, 0, 0)                                                       \
    X("avx512bf16_skinny", ON_X86(fp8r_cpu_avx512bf16_skinny), 0, 2, 8)                                            \
    X("avx512bf16_packed", ON_X86(fp8r_cpu_avx512bf16_packed), 25, 0, 0)                                           \
    X("avx512_skinny", ON_X86(fp8r_cpu_avx512_skinny), 0, 0, 0)                                                    \
    X("avx512_packed", ON_X86(fp8r_cpu_avx512_packed), 25, 13, 18)                                                   \
    X("amx_packed", ON_X86(fp8r_cpu_amx_packed), 5, 0, 0)

struct config {
    const struct fp8r_cpu_kernel *kernel; /* NULL: not for this architecture */
    int32_t rows_least, rows_few, rows_deep;
};

static const struct config configs[] = {
#define X(name, kernel_, rows, few, deep)                                                                     \
    {.kernel = kernel_, .rows_least = rows, .rows_few = few, .rows_deep = deep},
    CONFIGS(X)
#undef X
};
enum { CONFIG_COUNT = sizeof configs / sizeof *configs };

static const char *const config_names[] = {
#define X(name, kernel_, rows, few, deep) name,
    CONFIGS(X)
#undef X
        NULL};

struct state {
    struct fp8r_cpu_tables tables;
    int32_t threads;
    int64_t l2_bytes;
};

static void fill_tables(struct fp8r_cpu_tables *tables)
{
    for (int i = 0; i < 256; i++) {
        tables->e4m3[i] = fp8r_from_e4m3((uint8_t)i);
        tables->e5m2[i] = fp8r_from_e5m2((uint8_t)i);
    }
    for (int i = 0; i < 128; i++) {
        uint32_t e4m3 = fp8r_float_bits(tables->e4m3[i]), e5m2 = fp8r_float_bits(tables->e5m2[i]);
        tables->bf16_high[0][i] = (uint8_t)(e4m3 >> 24);
        tables->bf16_low[0][i] = (uint8_t)(e4m3 >> 16);
        tables->bf16_high[1][i] = (uint8_t)(e5m2 >> 24);
        tables->bf16_low[1][i] = (uint8_t)(e5m2 >> 16);
    }
}

static bool k_is_contiguous(const fp8r_problem *problem)
{
    return problem->b.row_stride == 1 || problem->k == 1;
}

static bool has_features(const struct fp8r_cpu_kernel *kernel, const fp8r_device_facts *device)
{
    return (device->cpu_features & kernel->features) == kernel->features;
}

/* Asked of the system only where the device has AMX at all. */
static bool lacks_permission(const struct fp8r_cpu_kernel *kernel)
{
    return FP8R_X86_64 && (kernel->features & FP8R_CPU_AMX_BF16) && !fp8r_cpu_amx_granted();
}

static bool is_usable(const fp8r_device_facts *device, int config)
{
    const struct fp8r_cpu_kernel *kernel = configs[config].kernel;
    return kernel && has_features(kernel, device) && !lacks_permission(kernel);
}

static int best_packed(const fp8r_device_facts *device)
{
    int i = CONFIG_COUNT - 1;
    while (i > 1 && !(configs[i].kernel && configs[i].kernel->packed && is_usable(device, i)))
        i--;
    return i; /* 1: the portable one */
}

/* Do the decoded rows that a skinny kernel reads again for every four columns of b crowd a core's level 2? */
static bool is_deep(const fp8r_device_facts *device, const fp8r_problem *problem)
{
    return problem->k > device->l2_bytes / (5 * 6 * (int64_t)sizeof(float)) && device->l2_bytes > 0;
}

static int best_skinny(const fp8r_device_facts *device, const fp8r_problem *problem, int64_t m)
{
    int found = 0; /* the portable one */
    for (int i = 2; i < CONFIG_COUNT; i++) {
        const struct config *of = &configs[i];
        if (!of->kernel || !of->kernel->skinny || !is_usable(device, i))
            continue;
        found = i;
        if (m <= of->rows_few || (of->rows_deep > 0 && m >= of->rows_deep && is_deep(device, problem)))
            break;
    }
    return found;
}

/* Batch-invariant: a packed kernel for every m, since the skinny ones sum in other orders. */
static int pick_at(const fp8r_device_facts *device, const fp8r_problem *problem, int64_t m)
{
    int packed = best_packed(device);
    const struct config *of = &configs[packed];
    bool is_tile = of->rows_few > 0 && m >= of->rows_few && m <= of->kernel->rows;
    bool is_many = m >= (of->rows_deep > 0 && is_deep(device, problem) ? of->rows_deep : of->rows_least);
    bool any = problem->numerics == FP8R_NUMERICS_ANY;
    return !is_many && !is_tile && any && k_is_contiguous(problem) ? best_skinny(device, problem, m) : packed;
}

static int pick(void *user, const fp8r_device_facts *device, const fp8r_problem *problem)
{
    (void)user;
    return pick_at(device, problem, problem->m);
}

static int64_t horizon(void *user, const fp8r_device_facts *device, const fp8r_problem *problem)
{
    int64_t last = INT64_MAX;
    (void)user;
    for (int i = 0; i < CONFIG_COUNT; i++) { /* everything that a pick compares m with */
        const struct config *of = &configs[i];
        const int64_t borders[] = {of->rows_least - 1, of->rows_few - 1, of->rows_few, of->rows_deep - 1,
                                   of->kernel ? of->kernel->rows : 0};
        for (int j = 0; j < 5; j++)
            if (borders[j] >= problem->m && borders[j] < last &&
                pick_at(device, problem, borders[j] + 1) != pick_at(device, problem, problem->m))
                last = borders[j];
    }
    return last;
}

static bool supports(void *user, const fp8r_device_facts *device, const fp8r_problem *problem, int config,
                     fp8r_reason *reason)
{
    const struct config *chosen = &configs[config == FP8R_CONFIG_ANY ? pick(user, device, problem) : config];
    FP8R_REJECT_IF(!chosen->kernel, reason, NOT_BUILT, "", 0, 0);
    FP8R_REJECT_IF(!has_features(chosen->kernel, device), reason, CPU_FEATURE, chosen->kernel->needs,
                   device->cpu_features, chosen->kernel->features);
    FP8R_REJECT_IF(lacks_permission(chosen->kernel), reason, CPU_FEATURE, "permission to use the AMX tiles",
                   0, 0);
    FP8R_REJECT_IF(!fp8r_dtype_is_fp8(problem->a.dtype) && !fp8r_dtype_is_half(problem->a.dtype), reason,
                   DTYPE, "a", problem->a.dtype, 0);
    FP8R_REJECT_IF(problem->b.dtype != FP8R_DTYPE_E4M3, reason, DTYPE, "b", problem->b.dtype,
                   FP8R_DTYPE_E4M3);
    FP8R_REJECT_IF(problem->k > FP8R_CPU_K_MOST, reason, SHAPE_MAX, "K", problem->k, FP8R_CPU_K_MOST);
    FP8R_REJECT_IF(chosen->kernel->skinny && !k_is_contiguous(problem), reason, LAYOUT, "b", 0, 0);
    return true;
}

static const char *numerics(void *user, const fp8r_device_facts *device, const fp8r_problem *problem,
                            int config)
{
    (void)user, (void)device, (void)problem;
    return configs[config].kernel ? configs[config].kernel->numerics : NULL;
}

static size_t workspace(void *user, const fp8r_device_facts *device, const fp8r_problem *problem, int config)
{
    (void)user;
    struct fp8r_cpu_cut cut;
    fp8r_cpu_cut_make(configs[config].kernel, device->threads, device->l2_bytes, problem, &cut);
    return (size_t)cut.workspace_bytes;
}

static fp8r_status prepare(void *user, const fp8r_services *services, const fp8r_device_facts *device,
                           const fp8r_problem *problem, int config, void **state)
{
    (void)user, (void)services, (void)problem, (void)config;
    struct state *made = malloc(sizeof *made);
    if (!made) return fp8r_fail_memory("decoding tables of the cpu backend");
    fill_tables(&made->tables);
    made->threads = device->threads;
    made->l2_bytes = device->l2_bytes;
    *state = made;
    return FP8R_OK;
}

static void destroy(void *user, void *state)
{
    (void)user;
    free(state);
}

static fp8r_status run(void *user, const fp8r_services *services, const void *state,
                       const fp8r_problem *problem, int config, const fp8r_pointers *pointers,
                       void *workspace_memory, size_t workspace_bytes, void *stream)
{
    (void)user, (void)stream;
    const struct state *prepared = state;
    struct fp8r_cpu_job job = {.tables = &prepared->tables, .problem = problem, .pointers = pointers};
    fp8r_cpu_cut_make(configs[config].kernel, prepared->threads, prepared->l2_bytes, problem, &job.cut);
    if ((size_t)job.cut.workspace_bytes > workspace_bytes)
        return fp8r_fail(FP8R_ERROR_INVALID_ARGUMENT, "workspace: %zu bytes, the cpu backend needs %lld",
                         workspace_bytes, (long long)job.cut.workspace_bytes);
    char *memory = workspace_memory;
    job.panels = memory;
    job.row_scales = job.cut.scales_bytes ? (float *)(memory + job.cut.panel_bytes) : NULL;
    job.scratch = memory + job.cut.panel_bytes + job.cut.scales_bytes;
    fp8r_cpu_job_run(&job, services);
    return FP8R_OK;
}

const fp8r_backend fp8r_backend_cpu = {
    .configs = config_names,
    .supports = supports,
    .numerics = numerics,
    .pick = pick,
    .horizon = horizon,
    .workspace = workspace,
    .prepare = prepare,
    .run = run,
    .destroy = destroy,
};
