/* A layer of an engine: its weights are quantised and planned once, then it runs at whatever number of tokens
 * comes. The plan knows which backend is best at which M; a run looks nothing up and allocates nothing.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <fp8route/fp8route.h>

enum { N = 384, K = 512, M_MAX = 256 };

struct layer {
    uint8_t weights[N][K]; /* e4m3 */
    float scales[N];
    fp8r_plan *plan;
    void *workspace;
    size_t workspace_bytes;
};

static void check(fp8r_status status, const char *what)
{
    if (status == FP8R_OK)
        return;
    fprintf(stderr, "%s: %s: %s\n", what, fp8r_status_name(status), fp8r_last_error());
    exit(EXIT_FAILURE);
}

static void *take(size_t bytes)
{
    void *memory = aligned_alloc(256, (bytes + 255) / 256 * 256);
    if (!memory && bytes > 0) {
        fprintf(stderr, "no memory for %zu bytes\n", bytes);
        exit(EXIT_FAILURE);
    }
    return memory;
}

/* What stays the same from call to call: types, extents but M, strides. bf16 activations without a scale are
 * quantised row by row on the way. The data pointers stay NULL: each run brings its own. */
static void layer_init(struct layer *layer, fp8r_context *context)
{
    fp8r_matmul family;
    check(fp8r_matmul_parse("256x384x512:a=bf16:static", &family), "parse"); /* M_MAX x N x K, bf16 out */
    check(fp8r_plan_create(context, &family, NULL, &layer->plan), "plan");
    layer->workspace_bytes = fp8r_plan_workspace(layer->plan);
    layer->workspace = take(layer->workspace_bytes);
    for (int n = 0; n < N; n++) {
        layer->scales[n] = 0.5f;
        for (int k = 0; k < K; k++)
            layer->weights[n][k] = k == n ? 0x40 : 0x00; /* twice the identity: out = x * 2 * 0.5 */
    }
}

static void layer_run(const struct layer *layer, const uint16_t *x, int64_t tokens, uint16_t *out)
{
    fp8r_pointers pointers = {.struct_size = sizeof pointers, .m = tokens, .a = x, .b = layer->weights,
                              .out = out, .scale_b = layer->scales};
    check(fp8r_plan_run(layer->plan, &pointers, layer->workspace, layer->workspace_bytes, NULL), "run");
}

static void layer_fini(struct layer *layer)
{
    free(layer->workspace);
    fp8r_plan_destroy(layer->plan);
}

int main(void)
{
    fp8r_context *context;
    check(fp8r_context_create((fp8r_device){FP8R_DEVICE_CPU, 0}, NULL, &context), "context");
    struct layer *layer = take(sizeof *layer);
    layer_init(layer, context);

    uint16_t *x = take(sizeof(uint16_t[M_MAX][K])), *out = take(sizeof(uint16_t[M_MAX][N]));
    for (int i = 0; i < M_MAX * K; i++)
        x[i] = i % 3 ? 0x3F80 : 0xBF80; /* 1 and -1 in bf16: codes and scales carry them exactly */

    const int64_t tokens[] = {1, 2, 7, 64, 0, 256}; /* 0 is fine: nothing is touched */
    int wrong = 0;
    for (size_t i = 0; i < sizeof tokens / sizeof *tokens; i++) {
        memset(out, 0xFF, sizeof(uint16_t[M_MAX][N]));
        layer_run(layer, x, tokens[i], out);
        for (int64_t m = 0; m < M_MAX; m++)
            for (int64_t n = 0; n < N; n++)
                wrong += out[m * N + n] != (m < tokens[i] ? x[m * K + n] : 0xFFFF);
        const char *backend = tokens[i] > 0 ? fp8r_plan_backend(layer->plan, tokens[i]) : "nothing to do";
        printf("M = %3d  %s\n", (int)tokens[i], backend);
    }
    printf("%d wrong values\n", wrong);
    free(x);
    free(out);
    layer_fini(layer);
    free(layer);
    fp8r_context_destroy(context);
    return wrong == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
