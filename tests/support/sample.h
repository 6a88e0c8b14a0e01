/* A product with memory, data and the answer: made from problem text, run through any entry point, then judged element
 * by element. Inputs stand in exactly sized blocks whose padding holds NaN; out and its padding start as NaN, and every
 * byte that is not an element must stay as it was.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_TESTS_SUPPORT_SAMPLE_H
#define FP8R_TESTS_SUPPORT_SAMPLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <fp8route/fp8route.h>

enum sample_data {
    SAMPLE_EXACT, /* small integers, scales of different powers of two, bias 1.5 * 2^k: one right answer, to the bit */
    SAMPLE_RANDOM /* any finite code, scales and bias of any value: each element within its own bound */
};

enum sample_operand { SAMPLE_A, SAMPLE_B, SAMPLE_OUT, SAMPLE_SCALE_A, SAMPLE_SCALE_B, SAMPLE_BIAS, SAMPLE_OPERANDS };

struct sample_block {
    unsigned char *memory; /* 256-byte aligned */
    size_t offset_bytes, used_bytes, size_bytes; /* data at memory + offset */
};

struct sample {
    fp8r_matmul matmul; /* with data */
    enum sample_data data;
    struct sample_block blocks[SAMPLE_OPERANDS];
    int64_t *lines; /* those that are judged: batch * M + row, ascending */
    int64_t line_count;
    float *wanted;  /* [line_count][N], as out's type holds it */
    double *bounds; /* [line_count][N]: largest allowed difference; 0 = none */
};

/* Makes the product of `text`. False where memory is short or the text is no product. */
bool sample_init(struct sample *sample, const char *text, enum sample_data data, uint64_t seed);

/* The same for a product without data; a data pointer is its alignment, as fp8r_matmul_parse leaves it. */
bool sample_init_matmul(struct sample *sample, const fp8r_matmul *matmul, enum sample_data data, uint64_t seed);
void sample_fini(struct sample *sample);

/* Moves an operand's data so that it is aligned to exactly align_bytes (a power of two up to 128). */
void sample_unalign(struct sample *sample, enum sample_operand operand, size_t align_bytes);

/* Computes what is wanted anew, after a change to the data. */
bool sample_solve(struct sample *sample);

/* Fills out with NaN. */
void sample_clear(struct sample *sample);

/* Judges out after a run of the first m rows of each batch (M for all). False fills the line with the first fault. */
bool sample_judge(const struct sample *sample, int64_t m, char *line, size_t size);

/* Its data as a plan's run takes it, for m rows. */
fp8r_pointers sample_pointers(const struct sample *sample, int64_t m);

/* A small generator, the same everywhere. */
uint64_t sample_random(uint64_t *state);

#endif
