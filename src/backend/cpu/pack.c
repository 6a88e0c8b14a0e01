/* Decodes the rows of a slab of a into panels: any strides, fp8 codes as they are, bf16 and fp16 quantised
 * first.
 * SPDX-License-Identifier: Apache-2.0 */
#include "backend/cpu/job.h"

#include "base/dtype.h"
#include "base/quantize.h"
#include "base/sizes.h"

enum {
    PIECE_CODES = 512, /* of a row, decoded in one call; a multiple of FP8R_CPU_BLOCK */
    ROWS_MOST = 32     /* of any kernel */
};

/* Rows of the slab that lie in one panel, as codes. */
struct block {
    int64_t batch, first, rows;
    const uint8_t *codes;
    int64_t row_stride, k_stride; /* bytes */
    int form;
};

int64_t fp8r_cpu_pack_units(const struct fp8r_cpu_job *job)
{
    return job->batches * fp8r_size_blocks(job->rows, job->cut.kernel->rows);
}

/* The block's codes from k on, up to PIECE_CODES of each row, brought side by side where K is strided. */
static const uint8_t *gather(const struct block *block, int64_t k, int64_t count, uint8_t *piece)
{
    if (block->k_stride == 1) return block->codes + k;
    for (int64_t r = 0; r < block->rows; r++)
        for (int64_t i = 0; i < count; i++)
            piece[r * PIECE_CODES + i] = block->codes[r * block->row_stride + (k + i) * block->k_stride];
    return piece;
}

static void decode_block(const struct fp8r_cpu_job *job, const struct block *block)
{
    const struct fp8r_cpu_cut *cut = &job->cut;
    int64_t stride = block->k_stride == 1 ? block->row_stride : PIECE_CODES;
    uint8_t piece[ROWS_MOST * PIECE_CODES];
    for (int64_t k = 0; k < cut->k_padded; k += cut->k_chunk) {
        int64_t chunk = fp8r_size_min(cut->k_chunk, cut->k_padded - k),
                end = fp8r_size_min(k + chunk, job->problem->k);
        char *panel = fp8r_cpu_panel(job, block->batch, block->first, k, chunk);
        for (int64_t i = k; i < end; i += PIECE_CODES) {
            int64_t count = fp8r_size_min(PIECE_CODES, end - i);
            cut->kernel->decode_a(job->tables, block->form, gather(block, i, count, piece), stride,
                                  block->rows, count,
                                  panel + (i - k) * block->rows * cut->kernel->code_bytes);
        }
    }
}

/* Quantises the block's rows of bf16 or fp16 and makes it one of codes. */
static void quantize_block(const struct fp8r_cpu_job *job, struct block *block, const char *from,
                           uint8_t *codes)
{
    const fp8r_operand *a = &job->problem->a;
    int64_t k = job->problem->k, row_bytes = a->row_stride * fp8r_dtype_bytes(a->dtype);
    float *scales = job->row_scales + block->batch * job->rows + block->first;
    const struct fp8r_quantizer *quantizer = fp8r_quantizer_of(job->cut.kernel->features);
    for (int64_t r = 0; r < block->rows; r++)
        scales[r] = fp8r_quantizer_row(quantizer, from + r * row_bytes, a->dtype, a->col_stride, k, codes + r * k);
    block->codes = codes;
    block->row_stride = k;
    block->k_stride = 1;
}

static void pack_block(const struct fp8r_cpu_job *job, int64_t batch, int64_t number, uint8_t *quantized)
{
    const fp8r_operand *a = &job->problem->a;
    int64_t blocks = fp8r_size_blocks(job->rows, job->cut.kernel->rows);
    struct block block = {.batch = batch,
                          .first = fp8r_cpu_block_start(job->rows, blocks, number),
                          .form = a->dtype == FP8R_DTYPE_E5M2 ? FP8R_CPU_A_E5M2 : FP8R_CPU_A_E4M3,
                          .row_stride = a->row_stride,
                          .k_stride = job->problem->k == 1 ? 1 : a->col_stride};
    block.rows = fp8r_cpu_block_start(job->rows, blocks, number + 1) - block.first;
    int64_t at =
        (job->first_batch + batch) * a->batch_stride + (job->first_row + block.first) * a->row_stride;
    const char *from = (const char *)job->pointers->a + at * fp8r_dtype_bytes(a->dtype);
    if (fp8r_dtype_is_half(a->dtype))
        quantize_block(job, &block, from, quantized);
    else
        block.codes = (const uint8_t *)from;
    decode_block(job, &block);
}

/* A unit is a block of rows: no two workers write to one cache line. */
void fp8r_cpu_pack_work(void *argument, int64_t worker)
{
    struct fp8r_cpu_job *job = argument;
    const struct fp8r_cpu_cut *cut = &job->cut;
    char *scratch = job->scratch + worker * cut->scratch_bytes;
    uint8_t *quantized = (uint8_t *)scratch + (cut->scratch_bytes - cut->codes_bytes);
    int64_t blocks = fp8r_size_blocks(job->rows, cut->kernel->rows);
    for (;;) {
        int64_t unit = atomic_fetch_add_explicit(&job->next, 1, memory_order_relaxed);
        if (unit >= fp8r_cpu_pack_units(job)) return;
        pack_block(job, unit / blocks, unit % blocks, quantized);
    }
}
