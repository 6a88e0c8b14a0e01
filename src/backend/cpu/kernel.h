/* What an instruction set offers to the two drivers. The drivers know no instruction set, the kernels know no
 * threads, problems or (beyond a leading dimension) strides.
 *
 * Numerics. A skinny kernel keeps one chain of sums a vector lane and adds the lanes in a fixed tree at the
 * end; a packed one keeps one chain an element, in ascending k. Chains are stored and loaded as they are
 * between chunks of K. So the bits of an element depend on its row of a, its column of b and the kernel's
 * class alone: not on M, N, tiles or threads.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_BACKEND_CPU_KERNEL_H
#define FP8R_BACKEND_CPU_KERNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    FP8R_CPU_BLOCK = 64, /* codes; the unit to which K is padded in panels */
    FP8R_CPU_CHUNK =
        512, /* codes of K that a packed product takes at a time; decode_b fetches as far ahead */
    FP8R_CPU_SKINNY_COLUMNS = 4 /* rows of b (columns of out) that a skinny kernel takes together */
};

/* Which decoding: a and b differ where a factor of b's quick decoding is given back on a's side. */
enum { FP8R_CPU_A_E4M3 = 0, FP8R_CPU_A_E5M2 = 1, FP8R_CPU_B_E4M3 = 2 };

struct fp8r_cpu_tables {
    float e4m3[256], e5m2[256];
    uint8_t bf16_high[2][128],
        bf16_low[2][128]; /* bytes of the magnitude as bf16, [0] of e4m3, [1] of e5m2 */
};

/* One row of out. Strides in elements; NULL scale_b or bias: absent. */
struct fp8r_cpu_row {
    const float *scale_b;
    const void *bias;
    void *out;
    int64_t scale_b_stride, bias_stride, out_stride;
    float scale_a;
    int32_t bias_dtype, out_dtype;
};

struct fp8r_cpu_kernel {
    const char *numerics; /* its class */
    const char *needs;    /* the features in words */
    uint32_t features;
    int32_t rows;         /* of a that one call takes, at most */
    int32_t columns;      /* of out that one call takes */
    int32_t code_bytes;   /* a decoded code's size in panels */
    int32_t vector_codes; /* skinny: codes that lie side by side in a panel of a; packed: codes in one step of
                             K */

    /* Decodes count codes each of `rows` rows of a, `stride` bytes apart, into a panel: vector v of row r is
     * at place v * rows + r. Reads exactly these bytes and fills up with zeros to a multiple of
     * FP8R_CPU_BLOCK codes. */
    void (*decode_a)(const struct fp8r_cpu_tables *tables, int form, const uint8_t *codes, int64_t stride,
                     int64_t rows, int64_t count, void *panel);

    /* Skinny only. out[r * ld + c] = the whole sums of `rows` rows (a panel of that pitch) and four columns
     * of b, decoded in registers. ahead: four places of k codes that will be wanted next. */
    void (*skinny)(const struct fp8r_cpu_tables *tables, int rows, int64_t k, const void *a,
                   const uint8_t *const b[4], const uint8_t *const ahead[4], float *out, int64_t ld);

    /* Packed only. Decodes count codes each of `columns` columns of b, `stride` bytes apart, into a panel in
     * which every step of K holds all of the kernel's columns (those beyond `columns` hold anything). Reads
     * exactly these bytes and fills up as decode_a does. */
    void (*decode_b)(const struct fp8r_cpu_tables *tables, const uint8_t *codes, int64_t stride,
                     int64_t columns, int64_t count, void *panel);

    /* Packed only. Continues (first: begins) the chains sums[r * ld + c] over `count` codes of K, for all
     * columns of `panels` panels of b, panel_bytes apart. */
    void (*packed)(int rows, int64_t count, const void *a, const void *b, int64_t panels, int64_t panel_bytes,
                   float *sums, int64_t ld, bool first);

    /* Scales, bias and rounding for count sums of one row. */
    void (*epilogue)(const struct fp8r_cpu_row *row, const float *sums, int64_t count);
};

extern const struct fp8r_cpu_kernel fp8r_cpu_portable_skinny, fp8r_cpu_portable_packed;
extern const struct fp8r_cpu_kernel fp8r_cpu_avx2_skinny, fp8r_cpu_avx2_packed;
extern const struct fp8r_cpu_kernel fp8r_cpu_avx512_skinny, fp8r_cpu_avx512_packed;
extern const struct fp8r_cpu_kernel fp8r_cpu_avx512bf16_skinny, fp8r_cpu_avx512bf16_packed;
extern const struct fp8r_cpu_kernel fp8r_cpu_amx_packed;

/* May this process use the AMX tiles? Asks the system at the first call. */
bool fp8r_cpu_amx_granted(void);

#endif
