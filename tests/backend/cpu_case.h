/* Products for the cpu backend's tests: operands end where a page begins that may not be touched, runs go
 * straight to the backend with facts, threads and workspace of the test's choice, and a result is held
 * against sums in double.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_TESTS_CPU_CASE_H
#define FP8R_TESTS_CPU_CASE_H

#define _DEFAULT_SOURCE /* MAP_ANONYMOUS */

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include <fp8route/backend.h>

#include "base/convert.h"
#include "base/dtype.h"
#include "base/epilogue.h"
#include "base/pool.h"
#include "base/quantize.h"
#include "device/device.h"

extern const fp8r_backend fp8r_backend_cpu;

enum { PATTERN = 0xA5 };

/* Memory whose last byte is the last of a page, with a forbidden page behind it. */
struct guarded {
    void *map;
    size_t map_bytes;
    unsigned char *data;
    size_t bytes;
};

static inline struct guarded guarded_make(size_t bytes)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), body = (bytes + page - 1) / page * page;
    struct guarded memory = {.map_bytes = body + page, .bytes = bytes};
    memory.map = mmap(NULL, memory.map_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(memory.map, MAP_FAILED);
    assert_int_equal(mprotect((char *)memory.map + body, page, PROT_NONE), 0);
    memory.data = (unsigned char *)memory.map + (body - bytes);
    memset(memory.data, PATTERN, bytes);
    return memory;
}

static inline void guarded_drop(struct guarded *memory)
{
    if (memory->map) munmap(memory->map, memory->map_bytes);
    memory->map = NULL;
}

struct cpu_case {
    fp8r_problem problem;
    struct guarded a, b, out, scale_a, scale_b, bias;
};

/* What a test may ask for; zero = e4m3 a, bf16 out, no bias, packed "tn". */
struct cpu_wish {
    int32_t a_dtype, out_dtype, bias_dtype;
    int64_t batch, pad; /* pad: elements between rows */
    bool outer_a, outer_b, outer_out, no_scales;
    int largest_code; /* codes are drawn from +-0 .. +-this */
};

static inline uint32_t draw(uint32_t *seed)
{
    *seed = *seed * 1664525u + 1013904223u;
    return *seed >> 9;
}

/* Rows x cols with the inner dimension contiguous, and the bytes up to the last element of the last row. */
static inline struct guarded operand_make(fp8r_operand *operand, int32_t dtype, int64_t batch, int64_t rows,
                                          int64_t cols, bool outer, int64_t pad)
{
    int64_t inner = outer ? rows : cols, lines = outer ? cols : rows, pitch = inner + pad;
    operand->dtype = dtype;
    operand->align_bytes = 1;
    operand->row_stride = outer ? 1 : pitch;
    operand->col_stride = outer ? pitch : 1;
    operand->batch_stride = batch == 1 ? 0 : lines * pitch;
    return guarded_make((size_t)((batch - 1) * lines * pitch + (lines - 1) * pitch + inner) *
                        (size_t)fp8r_dtype_bytes(dtype));
}

static inline void fill_codes(struct guarded *memory, int largest, uint32_t *seed)
{
    for (size_t i = 0; i < memory->bytes; i++)
        memory->data[i] = (unsigned char)(draw(seed) % (uint32_t)(largest + 1) | (draw(seed) & 1) << 7);
}

static inline void fill_values(struct guarded *memory, int32_t dtype, uint32_t *seed)
{
    int64_t count = (int64_t)memory->bytes / fp8r_dtype_bytes(dtype);
    for (int64_t i = 0; i < count; i++)
        fp8r_store(memory->data, i, dtype, (float)((int)(draw(seed) % 255) - 127) / 32);
}

static inline void fill_scales(struct guarded *memory, uint32_t *seed)
{
    for (size_t i = 0; i < memory->bytes / sizeof(float); i++)
        ((float *)(void *)memory->data)[i] = ldexpf(1.0f, (int)(draw(seed) % 5) - 2);
}

static inline void case_make(struct cpu_case *it, int64_t m, int64_t n, int64_t k,
                             const struct cpu_wish *wish)
{
    uint32_t seed = (uint32_t)(m * 7919 + n * 104729 + k * 31 + wish->largest_code);
    int64_t batch = wish->batch ? wish->batch : 1;
    fp8r_problem *p = &it->problem;
    memset(it, 0, sizeof *it);
    p->batch = batch, p->m = m, p->n = n, p->k = k;
    int32_t a_dtype = wish->a_dtype ? wish->a_dtype : FP8R_DTYPE_E4M3;
    int largest = wish->largest_code ? wish->largest_code : 0x4F;
    it->a = operand_make(&p->a, a_dtype, batch, m, k, wish->outer_a, wish->pad);
    it->b = operand_make(&p->b, FP8R_DTYPE_E4M3, batch, k, n, !wish->outer_b, wish->pad);
    it->out = operand_make(&p->out, wish->out_dtype ? wish->out_dtype : FP8R_DTYPE_BF16, batch, m, n,
                           wish->outer_out, wish->pad);
    if (fp8r_dtype_is_half(a_dtype))
        fill_values(&it->a, a_dtype, &seed);
    else
        fill_codes(&it->a, largest, &seed);
    fill_codes(&it->b, largest, &seed);
    if (!wish->no_scales) {
        it->scale_b = operand_make(&p->scale_b, FP8R_DTYPE_FP32, batch, 1, n, false, 0);
        p->scale_b_kind = FP8R_SCALE_ROW;
        fill_scales(&it->scale_b, &seed);
    }
    if (!wish->no_scales && !fp8r_dtype_is_half(a_dtype)) {
        it->scale_a = operand_make(&p->scale_a, FP8R_DTYPE_FP32, batch, m, 1, true, 0);
        p->scale_a_kind = FP8R_SCALE_ROW;
        fill_scales(&it->scale_a, &seed);
    }
    if (wish->bias_dtype) {
        it->bias = operand_make(&p->bias, wish->bias_dtype, batch, 1, n, false, 0);
        fill_values(&it->bias, wish->bias_dtype, &seed);
    }
}

static inline void case_drop(struct cpu_case *it)
{
    struct guarded *all[] = {&it->a, &it->b, &it->out, &it->scale_a, &it->scale_b, &it->bias};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        guarded_drop(all[i]);
}

static inline fp8r_device_facts case_facts(int32_t threads)
{
    fp8r_device_facts facts;
    fp8r_cpu_facts_read(threads, &facts);
    return facts;
}

static inline int config_index(const char *name)
{
    for (int i = 0; fp8r_backend_cpu.configs[i]; i++)
        if (strcmp(fp8r_backend_cpu.configs[i], name) == 0) return i;
    fail_msg("no configuration %s", name);
    return -1;
}

static inline bool case_supported(const struct cpu_case *it, int config)
{
    fp8r_device_facts facts = case_facts(1);
    fp8r_reason reason;
    return fp8r_backend_cpu.supports(NULL, &facts, &it->problem, config, &reason);
}

/* Runs the case's first m rows with a workspace of exactly the bytes that the backend names for them. */
static inline void case_run(struct cpu_case *it, int config, int64_t m, int32_t threads)
{
    const fp8r_backend *cpu = &fp8r_backend_cpu;
    fp8r_device_facts facts = case_facts(threads);
    fp8r_problem problem = it->problem;
    problem.m = m;
    struct fp8r_pool *pool = fp8r_pool_create(threads);
    assert_non_null(pool);
    fp8r_services services = {
        .struct_size = sizeof services, .threads = threads, .pool = pool, .parallel = fp8r_pool_parallel};
    void *state = NULL;
    assert_int_equal(cpu->prepare(NULL, &services, &facts, &problem, config, &state), FP8R_OK);
    size_t bytes = cpu->workspace(NULL, &facts, &problem, config);
    struct guarded workspace = guarded_make(bytes);
    assert_int_equal((uintptr_t)workspace.data % 256, 0);
    memset(it->out.data, PATTERN, it->out.bytes);
    fp8r_pointers pointers = {
        sizeof pointers, m, it->a.data, it->b.data, it->out.data, it->scale_a.data, it->scale_b.data,
        it->bias.data};
    assert_int_equal(
        cpu->run(NULL, &services, state, &problem, config, &pointers, workspace.data, bytes, NULL), FP8R_OK);
    cpu->destroy(NULL, state);
    guarded_drop(&workspace);
    fp8r_pool_destroy(pool);
}

/* ---- The oracle ---- */

static inline float element(const struct guarded *memory, const fp8r_operand *operand, int64_t batch,
                            int64_t row, int64_t col)
{
    return fp8r_load(memory->data,
                     batch * operand->batch_stride + row * operand->row_stride + col * operand->col_stride,
                     operand->dtype);
}

/* A row of a as the product sees it; returns what multiplies its sums. */
static inline float oracle_row(const struct cpu_case *it, int64_t batch, int64_t m, float *values)
{
    const fp8r_problem *p = &it->problem;
    for (int64_t k = 0; k < p->k; k++)
        values[k] = element(&it->a, &p->a, batch, m, k);
    if (!fp8r_dtype_is_half(p->a.dtype))
        return it->scale_a.map ? element(&it->scale_a, &p->scale_a, batch, m, 0) : 1.0f;
    uint8_t *codes = malloc((size_t)p->k);
    assert_non_null(codes);
    float scale = fp8r_quantize_row(values, FP8R_DTYPE_FP32, 1, p->k, codes);
    for (int64_t k = 0; k < p->k; k++)
        values[k] = fp8r_from_e4m3(codes[k]);
    free(codes);
    return scale;
}

/* Holds one element to its bound: K roundings of the partial sums, three of the epilogue, one of out's type.
 */
static inline void check_element(const struct cpu_case *it, int64_t batch, int64_t m, int64_t n,
                                 const float *row, float scale_a, const char *name)
{
    const fp8r_problem *p = &it->problem;
    double sum = 0, size = 0;
    for (int64_t k = 0; k < p->k; k++) {
        double term = (double)row[k] * (double)element(&it->b, &p->b, batch, k, n);
        sum += term;
        size += fabs(term);
    }
    double scale =
        (double)scale_a * (it->scale_b.map ? (double)element(&it->scale_b, &p->scale_b, batch, 0, n) : 1.0);
    double bias = it->bias.map ? (double)element(&it->bias, &p->bias, batch, 0, n) : 0.0;
    double want = sum * scale + bias, got = (double)element(&it->out, &p->out, batch, m, n);
    double unit = p->out.dtype == FP8R_DTYPE_FP32   ? 0x1p-23
                  : p->out.dtype == FP8R_DTYPE_FP16 ? 0x1p-11
                                                    : 0x1p-8;
    double bound =
        (double)p->k * 0x1p-23 * size * fabs(scale) + unit * fabs(want) + 0x1p-22 * fabs(bias) + 0x1p-25;
    if (!(fabs(got - want) <= bound))
        fail_msg("%s %lldx%lldx%lld: out[%lld,%lld,%lld] is %.9g, should be %.9g +- %.3g", name,
                 (long long)p->m, (long long)p->n, (long long)p->k, (long long)batch, (long long)m,
                 (long long)n, got, want, bound);
}

static inline void case_check(const struct cpu_case *it, const char *name)
{
    const fp8r_problem *p = &it->problem;
    float *row = malloc((size_t)p->k * sizeof *row);
    assert_non_null(row);
    for (int64_t batch = 0; batch < p->batch; batch++)
        for (int64_t m = 0; m < p->m; m++) {
            float scale_a = oracle_row(it, batch, m, row);
            for (int64_t n = 0; n < p->n; n++)
                check_element(it, batch, m, n, row, scale_a, name);
        }
    free(row);
}

/* Padding between rows of out (of INNER layout) must keep its pattern. */
static inline void case_check_padding(const struct cpu_case *it, int64_t m, const char *name)
{
    const fp8r_problem *p = &it->problem;
    size_t element_bytes = (size_t)fp8r_dtype_bytes(p->out.dtype),
           pitch = (size_t)p->out.row_stride * element_bytes;
    for (size_t i = 0; i < it->out.bytes; i++)
        if ((i % pitch >= (size_t)p->n * element_bytes || i / pitch >= (size_t)m) &&
            it->out.data[i] != PATTERN)
            fail_msg("%s: byte %zu of out lies in its padding and was written", name, i);
}

#endif
