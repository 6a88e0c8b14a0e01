/* What cuBLASLt does not take, known without asking it. Seen on an H200 with 13.1: every rule here is one of
 * its own refusals, at the latest when it runs.
 * SPDX-License-Identifier: Apache-2.0 */
#include "backend/cublaslt/cublaslt_product.h"

#include "base/dtype.h"

enum {
    ALIGN_BYTES = 16,
    ROW_WISE_ARCH = 90, /* other architectures know one scale an operand, or blocks */
    BATCH_MAX = 65535,
};

bool fp8r_cublaslt_is_row_wise(const fp8r_problem *problem)
{
    return problem->scale_b_kind == FP8R_SCALE_ROW;
}

static bool takes_types(const fp8r_problem *p, fp8r_reason *reason)
{
    FP8R_REJECT_IF(p->a.dtype != FP8R_DTYPE_E4M3 && p->a.dtype != FP8R_DTYPE_E5M2, reason, DTYPE, "a",
                   p->a.dtype, 0);
    FP8R_REJECT_IF(p->b.dtype != FP8R_DTYPE_E4M3, reason, DTYPE, "b", p->b.dtype, 0);
    FP8R_REJECT_IF(p->numerics == FP8R_NUMERICS_BATCH_INVARIANT, reason, NUMERICS, NULL, 0, 0);
    /* bf16 with bf16 and fp32, fp16 with fp16. */
    bool is_bias_known =
        p->bias.dtype == FP8R_DTYPE_NONE ||
        p->bias.dtype == (p->out.dtype == FP8R_DTYPE_FP16 ? FP8R_DTYPE_FP16 : FP8R_DTYPE_BF16);
    FP8R_REJECT_IF(!is_bias_known, reason, BIAS, "bias", p->bias.dtype, p->out.dtype);
    return true;
}

static bool takes_scales(const fp8r_device_facts *device, const fp8r_problem *p, fp8r_reason *reason)
{
    bool row_wise = fp8r_cublaslt_is_row_wise(p);
    FP8R_REJECT_IF(p->scale_a_kind == FP8R_SCALE_BATCH, reason, SCALE_KIND, "scale_a (one a batch item)", 0,
                   0);
    FP8R_REJECT_IF(p->scale_b_kind == FP8R_SCALE_BATCH, reason, SCALE_KIND, "scale_b (one a batch item)", 0,
                   0);
    FP8R_REJECT_IF((p->scale_a_kind == FP8R_SCALE_ROW) != row_wise, reason, SCALE_KIND,
                   "scale (row-wise for one of a and b, not for both)", 0, 0);
    FP8R_REJECT_IF(row_wise && device->arch != ROW_WISE_ARCH, reason, ARCH, "sm_90 for row-wise scales",
                   device->arch, ROW_WISE_ARCH);
    FP8R_REJECT_IF(row_wise && p->batch > 1, reason, SCALE_KIND, "scale in a batch (row-wise)", 0, 0);
    FP8R_REJECT_IF(row_wise && p->m > 1 && p->scale_a.row_stride != 1, reason, LAYOUT, "scale_a", 0, 0);
    FP8R_REJECT_IF(row_wise && p->scale_b.col_stride != 1, reason, LAYOUT, "scale_b", 0, 0);
    return true;
}

/* Rows of K for a and b, rows of N for out; a pitch of 0 repeats a row, which the library does not know. */
static bool takes_layouts(const fp8r_problem *p, fp8r_reason *reason)
{
    FP8R_REJECT_IF(p->a.col_stride != 1 || p->a.row_stride < p->k, reason, LAYOUT, "a", 0, 0);
    FP8R_REJECT_IF(p->b.row_stride != 1 || p->b.col_stride < p->k, reason, LAYOUT, "b", 0, 0);
    FP8R_REJECT_IF(p->out.col_stride != 1 || p->out.row_stride < p->n, reason, LAYOUT, "out", 0, 0);
    FP8R_REJECT_IF(p->bias.dtype != FP8R_DTYPE_NONE && (p->bias.col_stride != 1 || p->bias.batch_stride != 0),
                   reason, LAYOUT, "bias", 0, 0);
    return true;
}

static bool takes_shape(const fp8r_problem *p, fp8r_reason *reason)
{
    int64_t n_multiple = ALIGN_BYTES / (int64_t)fp8r_dtype_bytes(p->out.dtype);
    FP8R_REJECT_IF(p->k % ALIGN_BYTES != 0, reason, SHAPE_MULTIPLE, "k", p->k, ALIGN_BYTES);
    FP8R_REJECT_IF(p->n % n_multiple != 0, reason, SHAPE_MULTIPLE, "n", p->n, n_multiple);
    FP8R_REJECT_IF(p->m > INT32_MAX, reason, SHAPE_MAX, "m", p->m, INT32_MAX);
    FP8R_REJECT_IF(p->n > INT32_MAX, reason, SHAPE_MAX, "n", p->n, INT32_MAX);
    FP8R_REJECT_IF(p->k > INT32_MAX, reason, SHAPE_MAX, "k", p->k, INT32_MAX);
    FP8R_REJECT_IF(p->batch > BATCH_MAX, reason, SHAPE_MAX, "batch", p->batch, BATCH_MAX);
    return true;
}

/* Scales and bias too, though a scalar scale is four bytes: the library says so only when it runs. */
static bool takes_alignment(const fp8r_problem *p, fp8r_reason *reason)
{
    const struct {
        const char *name;
        const fp8r_operand *operand;
    } operands[] = {
        {"a", &p->a},      {"b", &p->b}, {"out", &p->out}, {"scale_a", &p->scale_a}, {"scale_b", &p->scale_b},
        {"bias", &p->bias}};
    for (size_t i = 0; i < sizeof operands / sizeof *operands; i++)
        FP8R_REJECT_IF(operands[i].operand->dtype != FP8R_DTYPE_NONE &&
                           operands[i].operand->align_bytes < ALIGN_BYTES,
                       reason, ALIGNMENT, operands[i].name, operands[i].operand->align_bytes, ALIGN_BYTES);
    return true;
}

bool fp8r_cublaslt_takes(const fp8r_device_facts *device, const fp8r_problem *problem, fp8r_reason *reason)
{
    return takes_types(problem, reason) && takes_scales(device, problem, reason) &&
           takes_layouts(problem, reason) && takes_shape(problem, reason) && takes_alignment(problem, reason);
}
