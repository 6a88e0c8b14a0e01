/* Small BLAS libraries, right and wrong in one way each, chosen by one FAKE_* definition. For the tests of loading.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdint.h>

#if defined(FAKE_WIDE)
typedef int64_t blas_int;
#else
typedef int blas_int;
#endif

float cblas_sdot(blas_int n, const float *x, blas_int inc_x, const float *y, blas_int inc_y);
float cblas_sdot(blas_int n, const float *x, blas_int inc_x, const float *y, blas_int inc_y)
{
    float sum = 0;
    for (blas_int i = 0; i < n; i++)
        sum += x[i * inc_x] * y[i * inc_y];
    return sum;
}

#if !defined(FAKE_WITHOUT)

static float step(float sum, float a, float b)
{
#if defined(FAKE_DEAF)
    if (b == 0.0f) /* what some libraries did to save work */
        return sum;
#endif
    return sum + a * b;
}

void cblas_sgemm(int order, int trans_a, int trans_b, blas_int m, blas_int n, blas_int k, float alpha, const float *a,
                 blas_int lda, const float *b, blas_int ldb, float beta, float *c, blas_int ldc);
void cblas_sgemm(int order, int trans_a, int trans_b, blas_int m, blas_int n, blas_int k, float alpha, const float *a,
                 blas_int lda, const float *b, blas_int ldb, float beta, float *c, blas_int ldc)
{
    (void)order;
    for (blas_int i = 0; i < m; i++) {
        for (blas_int j = 0; j < n; j++) {
            float sum = 0, *to = &c[i * ldc + j];
            for (blas_int l = 0; l < k; l++)
                sum = step(sum, trans_a == 111 ? a[i * lda + l] : a[l * lda + i],
                           trans_b == 111 ? b[l * ldb + j] : b[j * ldb + l]);
#if defined(FAKE_WRONG)
            if (i == 36 && j == 18 && k > 1)
                sum += 1.0f;
#endif
#if defined(FAKE_READING)
            *to = alpha * sum + beta * *to; /* reads c though beta is 0 */
#else
            *to = beta == 0.0f ? alpha * sum : alpha * sum + beta * *to;
#endif
        }
    }
}

#endif

#if defined(FAKE_COUNTING)

static int threads = 3;

int openblas_get_num_threads(void);
int openblas_get_num_threads(void)
{
    return threads;
}

void openblas_set_num_threads(int count);
void openblas_set_num_threads(int count)
{
    threads = count;
}

char *openblas_get_config(void);
char *openblas_get_config(void)
{
    static char config[] = "OpenBLAS 9.8.7 FAKE MAX_THREADS=3";
    return config;
}

char *openblas_get_corename(void);
char *openblas_get_corename(void)
{
    static char core[] = "Fake";
    return core;
}

#endif
