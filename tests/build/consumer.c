/* A program of somebody else: multiplies once, checks the result, prints what was chosen and why not the others.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include <fp8route/fp8route.h>

enum { M = 3, N = 5, K = 16 };

static int fail(const char *what)
{
    fprintf(stderr, "%s: %s\n", what, fp8r_last_error());
    return 1;
}

static int print_explanation(fp8r_context *context, const fp8r_matmul *product)
{
    fp8r_explanation *explanation;
    if (fp8r_explain(context, product, &explanation) != FP8R_OK)
        return fail("explain");
    printf("source: %s\n", fp8r_explanation_source(explanation));
    for (size_t i = 0; i < fp8r_explanation_count(explanation); i++) {
        const fp8r_candidate *candidate = fp8r_explanation_candidate(explanation, i);
        printf("%s: %s\n", candidate->backend, candidate->sentence);
    }
    fp8r_explanation_destroy(explanation);
    return 0;
}

int main(void)
{
    unsigned char a[M * K], b[N * K];
    float out[M * N];
    fp8r_context *context;
    memset(a, 0x40, sizeof a); /* 2.0 */
    memset(b, 0x44, sizeof b); /* 3.0 */
    if (fp8r_version() != FP8R_VERSION)
        return fail("the library is of another version than the header");
    if (fp8r_context_create((fp8r_device){FP8R_DEVICE_CPU, 0}, NULL, &context) != FP8R_OK)
        return fail("context");
    fp8r_matmul product = {.struct_size = sizeof product,
                           .a = {a, FP8R_DTYPE_E4M3, 0, 1, M, K, 0, K, 1},
                           .b = {b, FP8R_DTYPE_E4M3, 0, 1, K, N, 0, 1, K},
                           .out = {out, FP8R_DTYPE_FP32, 0, 1, M, N, 0, N, 1}};
    if (fp8r_scaled_mm(context, &product, NULL) != FP8R_OK)
        return fail("scaled_mm");
    for (int i = 0; i < M * N; i++)
        if (out[i] != 6.0f * K)
            return fail("wrong value");
    if (print_explanation(context, &product) != 0)
        return 1;
    fp8r_context_destroy(context);
    puts("product: right");
    return 0;
}
