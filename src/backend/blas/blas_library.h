/* A BLAS library in this process: its sgemm, its name, and the means to hold it to one thread while we run it from our
 * own pool. Knows nothing of fp8.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_BACKEND_BLAS_LIBRARY_H
#define FP8R_BACKEND_BLAS_LIBRARY_H

#include <stdbool.h>
#include <stdint.h>

#include <fp8route/backend.h>

/* The numbers of the CBLAS interface. */
enum { FP8R_BLAS_ROW_MAJOR = 101, FP8R_BLAS_PLAIN = 111, FP8R_BLAS_TRANSPOSED = 112 };

/* A number of threads that can be read and set. An int and a 64-bit count travel in the same register, so that one type
 * serves both kinds of library; only the lower half of what comes back is looked at. */
struct fp8r_blas_count {
    int (*get)(void);
    void (*set)(int64_t threads); /* NULL = there is none */
};

struct fp8r_blas {
    void (*sgemm)(int order, int trans_a, int trans_b, int m, int n, int k, float alpha, const float *a, int lda,
                  const float *b, int ldb, float beta, float *c, int ldc);
    float (*sdot)(int64_t n, const float *x, int64_t inc_x, const float *y, int64_t inc_y); /* n: see the check */
    struct fp8r_blas_count process; /* one number for the process */
    struct fp8r_blas_count thread;  /* one number a thread */
    int (*swap)(int threads);       /* one number a thread: sets it and returns the one before */
    bool one_at_a_time;             /* must not be called by two threads at once */
    char name[96];                  /* "openblas (SkylakeX) 0.3.21": what comes before the version must be equal too */
};

enum fp8r_blas_verdict {
    FP8R_BLAS_GOOD,
    FP8R_BLAS_ABSENT,     /* nothing to open, or without the symbols of CBLAS */
    FP8R_BLAS_WIDE,       /* its integers have 64 bits */
    FP8R_BLAS_WRONG       /* a product with a known answer came out wrong */
};

/* Opens the library and checks it. resident_only: take it only where the process has it already. A library that was
 * called once is never closed: it may have threads. *library is complete only when GOOD. */
enum fp8r_blas_verdict fp8r_blas_open(const char *path, bool resident_only, struct fp8r_blas *library);

/* Computes small products with known answers, among them ones with NaN. */
enum fp8r_blas_verdict fp8r_blas_check(const struct fp8r_blas *library);

/* Opens `named`, or with NULL the first good library of a list, one that the process has already before all others.
 * False fills the reason; its subject lives in `subject`. */
bool fp8r_blas_choose(const char *named, struct fp8r_blas *library, char *subject, size_t subject_bytes,
                      fp8r_reason *reason);

/* This process's library, chosen at the first call; NULL with the reason where there is none. */
const struct fp8r_blas *fp8r_blas_load(fp8r_reason *reason);

/* From hold to release, products of the library use the thread that calls. Holds nest and may come from many threads;
 * the last release puts the number of threads back. */
void fp8r_blas_hold(const struct fp8r_blas *library);
void fp8r_blas_release(const struct fp8r_blas *library);

/* sgemm with alpha = 1, row-major, on this thread alone; the caller holds the library. */
void fp8r_blas_multiply(const struct fp8r_blas *library, int trans_a, int trans_b, int m, int n, int k, const float *a,
                        int lda, const float *b, int ldb, float beta, float *c, int ldc);

#endif
