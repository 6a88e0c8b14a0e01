/* Prefill, M = 512: the cpu row against sgemm of an OpenBLAS that runs its kernels for this processor, on
 * fp32 operands, with nothing to decode.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>

#include "backend/blas/blas_library.h"
#include "base/convert.h"
#include "measure/clock.h"
#include "workload.h"

enum { M = 512, N = 4096, K = 4096 };

struct sgemm {
    const struct fp8r_blas *library;
    float *a, *b, *c;
};

static float *decode(const uint8_t *codes, int64_t count)
{
    float *values = malloc((size_t)count * sizeof *values);
    for (int64_t i = 0; i < count && values; i++)
        values[i] = fp8r_from_e4m3(codes[i]);
    return values;
}

static int64_t sgemm_pass(void *argument)
{
    const struct sgemm *sgemm = argument;
    int64_t start = fp8r_clock_ns();
    sgemm->library->sgemm(FP8R_BLAS_ROW_MAJOR, FP8R_BLAS_PLAIN, FP8R_BLAS_TRANSPOSED, M, N, K, 1.0f, sgemm->a,
                          K, sgemm->b, K, 0.0f, sgemm->c, N);
    return fp8r_clock_ns() - start;
}

static void measure(const struct bench_settings *settings, struct bench_workload *workload,
                    struct bench_bar *bar)
{
    fp8r_reason reason;
    struct sgemm sgemm = {.library = fp8r_blas_load(&reason)};
    if (!sgemm.library || !sgemm.library->process.set) {
        snprintf(bar->note, sizeof bar->note,
                 "needs an OpenBLAS, e.g. libopenblas.so.0 (FP8ROUTE_BLAS names one)");
        return;
    }
    sgemm.library->process.set(settings->threads);
    sgemm.a = decode(workload->matmul.a.data, (int64_t)M * K);
    sgemm.b = decode(workload->weights, (int64_t)N * K);
    sgemm.c = calloc((size_t)M * N, sizeof *sgemm.c);
    if (sgemm.a && sgemm.b && sgemm.c) {
        bench_pair(bar, settings->rounds, bench_workload_pass, workload, sgemm_pass, &sgemm, 1);
        bar->mine_rate = 2.0 * M * N * K / bar->mine_us / 1e3;
        bar->peer_rate = 2.0 * M * N * K / bar->peer_us / 1e3;
        const char *core = getenv("OPENBLAS_CORETYPE");
        snprintf(bar->note, sizeof bar->note, "%s%s%s", sgemm.library->name,
                 core ? ", OPENBLAS_CORETYPE=" : "", core ? core : "");
    }
    free(sgemm.a);
    free(sgemm.b);
    free(sgemm.c);
}

void bench_sgemm(const struct bench_settings *settings, struct bench_bar *bar)
{
    struct bench_workload workload;
    *bar = (struct bench_bar){
        .name = "prefill-512", .must = 0.85, .aim = 1.0, .larger_is_better = true, .rate_unit = "GFLOP/s"};
    snprintf(bar->what, sizeof bar->what, "M=%d, N=%d, K=%d: GFLOP/s of the cpu row / sgemm without decoding",
             M, N, K);
    if (!bench_workload_make(settings, "512x4096x4096", 1, &workload, bar)) return;
    measure(settings, &workload, bar);
    bench_workload_drop(&workload);
}
