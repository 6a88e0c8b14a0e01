/* Which kernels quantise what: one launch where every row has its own scale; otherwise the largest magnitudes
 * are gathered in the scales first. SPDX-License-Identifier: Apache-2.0 */
#include "backend/cuda/quantize.h"

#include "backend/cuda/launch.h"
#include "backend/cuda/quantize_args.h"
#include "base/compiler.h"
#include "base/dtype.h"
#include "base/sizes.h"

enum { THREADS = 256, WARP = 32 };

/* Where kernels go, and whether they may start while the one in front runs out. */
struct queue {
    void *stream;
    bool is_dependent;
};

static struct queue queue_of(const fp8r_device_facts *device, uint32_t flags, void *stream)
{
    return (struct queue){stream, device->arch >= 90 && !(flags & FP8R_LAUNCH_PLAIN)};
}

static struct fp8r_cuda_place place_of(const fp8r_matrix *matrix)
{
    return (struct fp8r_cuda_place){.data = matrix->data,
                                    .batch_stride = matrix->batch > 1 ? matrix->batch_stride : 0,
                                    .row_stride = matrix->rows > 1 ? matrix->row_stride : 0,
                                    .col_stride = matrix->cols > 1 ? matrix->col_stride : 0};
}

static struct fp8r_cuda_quantize_args args_of(const fp8r_matrix *in, const fp8r_matrix *out,
                                              const fp8r_matrix *scale)
{
    struct fp8r_cuda_quantize_args args = {
        .batch = in->batch,
        .rows = in->rows,
        .cols = in->cols,
        .in = place_of(in),
        .out = place_of(out),
        .scale_batch = 1,
        .scale_rows = 1,
        .scale_cols = 1,
        .row_tiles = fp8r_size_blocks(in->rows, FP8R_CUDA_QUANTIZE_ROWS),
        .col_tiles = fp8r_size_blocks(in->cols, FP8R_CUDA_QUANTIZE_COLS),
        .in_dtype = in->dtype,
        .out_dtype = out->dtype,
    };
    if (scale && scale->dtype != FP8R_DTYPE_NONE) {
        args.scale = place_of(scale);
        args.scale_batch = scale->batch;
        args.scale_rows = scale->rows;
        args.scale_cols = scale->cols;
    }
    return args;
}

static fp8r_status start(const struct queue *queue, enum fp8r_cuda_quantize_kernel kernel, int64_t blocks, int32_t threads,
                         const struct fp8r_cuda_quantize_args *args)
{
    const struct fp8r_cuda_launch launch = {fp8r_cuda_quantize_kernel(kernel), blocks, threads, 0,
                                            queue->is_dependent};
    return fp8r_cuda_start(&launch, args, queue->stream);
}

/* Where vectors of elements are aligned, are those of codes, in every row? */
static bool in_phase(const struct fp8r_cuda_quantize_args *args)
{
    const uint64_t base = (uint64_t)(uintptr_t)args->in.data / 2 - (uint64_t)(uintptr_t)args->out.data;
    const uint64_t row = (uint64_t)args->in.row_stride - (uint64_t)args->out.row_stride;
    const uint64_t batch = (uint64_t)args->in.batch_stride - (uint64_t)args->out.batch_stride;
    return ((base | row | batch) & (FP8R_CUDA_QUANTIZE_VECTOR - 1)) == 0;
}

static int32_t threads_for(int64_t vectors, int64_t each)
{
    const int64_t threads = fp8r_size_round_up(fp8r_size_blocks(vectors, each), WARP);
    return (int32_t)fp8r_size_min(threads, FP8R_CUDA_QUANTIZE_THREADS);
}

/* Which kernel takes the rows, and how many threads each: as many as hold it, if a block can. */
static enum fp8r_cuda_quantize_kernel rows_kernel(struct fp8r_cuda_quantize_args *args)
{
    const int64_t vectors = fp8r_size_max(args->cols / FP8R_CUDA_QUANTIZE_VECTOR, 1);
    const bool is_short = args->cols <= 2048; /* longer rows gain from more on its way a thread */
    args->row_threads = threads_for(vectors, is_short ? FP8R_CUDA_QUANTIZE_SHORT : FP8R_CUDA_QUANTIZE_LONG);
    if (!fp8r_dtype_is_half(args->in_dtype) || args->in.col_stride != 1 || args->out.col_stride != 1 ||
        !in_phase(args))
        return FP8R_CUDA_QUANTIZE_ANY;
    if (args->in_dtype == FP8R_DTYPE_BF16)
        return is_short ? FP8R_CUDA_QUANTIZE_BF16_SHORT : FP8R_CUDA_QUANTIZE_BF16_LONG;
    return is_short ? FP8R_CUDA_QUANTIZE_FP16_SHORT : FP8R_CUDA_QUANTIZE_FP16_LONG;
}

static fp8r_status start_rows(const struct queue *queue, struct fp8r_cuda_quantize_args *args,
                              enum fp8r_cuda_quantize_step step)
{
    const enum fp8r_cuda_quantize_kernel kernel = rows_kernel(args);
    const int32_t threads = args->row_threads == WARP ? THREADS : args->row_threads;
    args->step = step;
    const int64_t blocks = fp8r_size_blocks(args->batch * args->rows, threads / args->row_threads);
    return start(queue, kernel, blocks, threads, args);
}

static int64_t tiles_of(const struct fp8r_cuda_quantize_args *args)
{
    return args->batch * args->row_tiles * args->col_tiles;
}

/* The largest magnitudes are gathered in the scales themselves. */
static fp8r_status compute_scales(const struct queue *queue, struct fp8r_cuda_quantize_args *args)
{
    const int64_t blocks = fp8r_size_blocks(args->scale_batch * args->scale_rows * args->scale_cols, THREADS);
    FP8R_TRY(start(queue, FP8R_CUDA_QUANTIZE_RESET, blocks, THREADS, args));
    if (args->scale_cols == 1)
        FP8R_TRY(start_rows(queue, args, FP8R_CUDA_QUANTIZE_GATHER));
    else
        FP8R_TRY(start(queue, FP8R_CUDA_QUANTIZE_COLUMNS, tiles_of(args), FP8R_CUDA_QUANTIZE_COLS, args));
    return start(queue, FP8R_CUDA_QUANTIZE_FINISH, blocks, THREADS, args);
}

static bool is_empty(const fp8r_matrix *matrix)
{
    return matrix->batch == 0 || matrix->rows == 0 || matrix->cols == 0;
}

fp8r_status fp8r_cuda_quantize(const fp8r_device_facts *device, uint32_t flags, const fp8r_matrix *in,
                               const fp8r_matrix *out, const fp8r_matrix *scale, int32_t scaling, void *stream)
{
    if (is_empty(in)) return FP8R_OK;
    const struct queue queue = queue_of(device, flags, stream);
    struct fp8r_cuda_quantize_args args = args_of(in, out, scale);
    const bool computed = scaling == FP8R_SCALING_COMPUTE;
    if (computed && scale->batch == in->batch && scale->rows == in->rows && scale->cols == 1)
        return start_rows(&queue, &args, FP8R_CUDA_QUANTIZE_ALL);
    if (computed) FP8R_TRY(compute_scales(&queue, &args));
    if (scale->cols == 1) return start_rows(&queue, &args, FP8R_CUDA_QUANTIZE_ENCODE);
    return start(&queue, FP8R_CUDA_QUANTIZE_CODES, tiles_of(&args), FP8R_CUDA_QUANTIZE_COLS, &args);
}

fp8r_status fp8r_cuda_quantize_ahead(const fp8r_device_facts *device, uint32_t flags, const fp8r_matrix *in,
                                     const fp8r_matrix *out, const fp8r_matrix *scale, void *stream)
{
    if (is_empty(in)) return FP8R_OK;
    const struct queue queue = queue_of(device, flags, stream);
    struct fp8r_cuda_quantize_args args = args_of(in, out, scale);
    args.is_ahead = queue.is_dependent;
    return start_rows(&queue, &args, FP8R_CUDA_QUANTIZE_ALL);
}

fp8r_status fp8r_cuda_dequantize(const fp8r_device_facts *device, uint32_t flags, const fp8r_matrix *in,
                                 const fp8r_matrix *scale, const fp8r_matrix *out, void *stream)
{
    if (is_empty(in)) return FP8R_OK;
    const struct queue queue = queue_of(device, flags, stream);
    const struct fp8r_cuda_quantize_args args = args_of(in, out, scale);
    return start(&queue, FP8R_CUDA_QUANTIZE_VALUES, tiles_of(&args), FP8R_CUDA_QUANTIZE_COLS, &args);
}

fp8r_status fp8r_cuda_quantize_load(void)
{
    for (int i = 0; i < FP8R_CUDA_QUANTIZE_KERNELS; ++i)
        FP8R_TRY(fp8r_cuda_load(fp8r_cuda_quantize_kernel((enum fp8r_cuda_quantize_kernel)i), 0));
    return FP8R_OK;
}
