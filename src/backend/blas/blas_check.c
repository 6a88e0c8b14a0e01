/* Products with known answers, to find a library that is broken, that computes with other integers than ours, or that
 * loses a NaN. All values are small integers, so every right library gives the same bits.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "backend/blas/blas_library.h"
#include "base/convert.h"

/* A library with 64-bit integers would read our 32-bit ones well as long as the upper halves happen to be 0. Here they
 * are not: n is 2 in its lower half and negative as a whole. With nothing to sum, such a library returns 0; no level-1
 * routine complains about a negative n, as sgemm would, in some libraries by ending the process. */
static bool takes_32_bits(const struct fp8r_blas *library)
{
    static const float x[2] = {3, 5}, y[2] = {7, 11};
    return library->sdot(INT64_MIN + 2, x, 1, y, 1) == 76.0f;
}

/* One case: c = a * b (+ c), every operand in both memory orders. */
struct product {
    int m, n, k;
    bool outer_a, outer_b; /* a column-major, b row-major */
    bool with_nan;         /* in row m/2 of a against zeros of b, and in column n/2 of b against zeros of a */
};

static float value_a(const struct product *p, int i, int k)
{
    if (p->with_nan && i == p->m / 2 && k == p->k / 2)
        return fp8r_bits_float(0x7FC00000u);
    return k % 3 == 0 ? 0.0f : (float)((i * 7 + k * 5) % 11 - 5);
}

static float value_b(const struct product *p, int k, int j)
{
    if (p->with_nan && j == p->n / 2 && k == 0)
        return fp8r_bits_float(0x7FC00000u);
    if (p->with_nan && k == p->k / 2)
        return 0.0f;
    return (float)((j * 3 + k * 2) % 9 - 4);
}

static size_t place_a(const struct product *p, int i, int k)
{
    return (size_t)(p->outer_a ? k * p->m + i : i * p->k + k);
}

static size_t place_b(const struct product *p, int k, int j)
{
    return (size_t)(p->outer_b ? k * p->n + j : j * p->k + k);
}

/* Every row of small products; of larger ones every so many, the NaN's and the last among them: a context waits for
 * this check. */
static bool is_looked_at(const struct product *p, int i)
{
    return p->m < 40 || i % 8 == 0 || i == p->m / 2 || i == p->m - 1;
}

static bool is_right(const struct product *p, const float *a, const float *b, const float *c, float base)
{
    for (int i = 0; i < p->m; i++) {
        for (int j = 0; j < p->n && is_looked_at(p, i); j++) {
            bool nan = p->with_nan && (i == p->m / 2 || j == p->n / 2);
            float sum = base, got = c[(size_t)i * (size_t)p->n + (size_t)j];
            for (int k = 0; k < p->k && !nan; k++)
                sum += a[place_a(p, i, k)] * b[place_b(p, k, j)];
            if (nan ? got == got : !(got == sum))
                return false;
        }
    }
    return true;
}

static bool multiplies(const struct fp8r_blas *library, const struct product *p, float *space)
{
    float *a = space, *b = a + (size_t)p->m * (size_t)p->k, *c = b + (size_t)p->k * (size_t)p->n;
    for (int i = 0; i < p->m; i++)
        for (int k = 0; k < p->k; k++)
            a[place_a(p, i, k)] = value_a(p, i, k);
    for (int k = 0; k < p->k; k++)
        for (int j = 0; j < p->n; j++)
            b[place_b(p, k, j)] = value_b(p, k, j);
    int trans_a = p->outer_a ? FP8R_BLAS_TRANSPOSED : FP8R_BLAS_PLAIN, lda = p->outer_a ? p->m : p->k;
    int trans_b = p->outer_b ? FP8R_BLAS_PLAIN : FP8R_BLAS_TRANSPOSED, ldb = p->outer_b ? p->n : p->k;
    size_t count = (size_t)p->m * (size_t)p->n;
    for (size_t i = 0; i < count; i++)
        c[i] = fp8r_bits_float(0x7FC00000u); /* beta = 0 must not read it */
    fp8r_blas_multiply(library, trans_a, trans_b, p->m, p->n, p->k, a, lda, b, ldb, 0.0f, c, p->n);
    if (!is_right(p, a, b, c, 0.0f))
        return false;
    for (size_t i = 0; i < count; i++)
        c[i] = 9.0f;
    fp8r_blas_multiply(library, trans_a, trans_b, p->m, p->n, p->k, a, lda, b, ldb, 1.0f, c, p->n);
    return is_right(p, a, b, c, 9.0f);
}

/* OpenBLAS tries forever where it cannot get its work buffer of 128 MiB (0.3.21, blas_memory_alloc). */
static bool has_room(void)
{
    void *room = malloc((size_t)136 << 20);
    free(room);
    return room != NULL;
}

enum fp8r_blas_verdict fp8r_blas_check(const struct fp8r_blas *library)
{
    if (!takes_32_bits(library))
        return FP8R_BLAS_WIDE;
    /* One row, ragged, and beyond the sizes for which libraries have a path without packing. */
    static const int shapes[][3] = {{1, 40, 33}, {5, 7, 9}, {37, 19, 45}, {70, 130, 129}};
    enum { SPACE_ELEMS = 70 * 129 + 129 * 130 + 70 * 130 };
    float *space = has_room() ? malloc(SPACE_ELEMS * sizeof *space) : NULL;
    if (!space)
        return FP8R_BLAS_ABSENT;
    fp8r_blas_hold(library);
    bool right = true;
    for (int i = 0; i < 4 * 8 && right; i++) {
        const int *shape = shapes[i / 8];
        const struct product product = {.m = shape[0], .n = shape[1], .k = shape[2], .outer_a = i & 1,
                                        .outer_b = i & 2, .with_nan = i & 4};
        right = multiplies(library, &product, space);
    }
    fp8r_blas_release(library);
    free(space);
    return right ? FP8R_BLAS_GOOD : FP8R_BLAS_WRONG;
}
