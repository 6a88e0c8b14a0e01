/* A cuBLASLt library in this process: its functions, its version, where it lies, and a handle a device.
 * Nothing is linked: types come from the toolkit's header, addresses from dlsym. Knows nothing of problems.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_BACKEND_CUBLASLT_LIBRARY_H
#define FP8R_BACKEND_CUBLASLT_LIBRARY_H

#include <cublasLt.h>
#include <stdbool.h>

#include <fp8route/backend.h>

/* Row-wise scales came with 12.9. */
enum { FP8R_CUBLASLT_VERSION_MIN = 120900 };

/* F(member, symbol) */
#define FP8R_CUBLASLT_FUNCTIONS(F)                                                                           \
    F(create, cublasLtCreate)                                                                                \
    F(get_version, cublasLtGetVersion)                                                                       \
    F(multiply, cublasLtMatmul)                                                                              \
    F(algo_first, cublasLtMatmulAlgoGetHeuristic)                                                            \
    F(algo_init, cublasLtMatmulAlgoInit)                                                                     \
    F(algo_set, cublasLtMatmulAlgoConfigSetAttribute)                                                        \
    F(algo_check, cublasLtMatmulAlgoCheck)                                                                   \
    F(desc_init, cublasLtMatmulDescInit_internal)                                                            \
    F(desc_set, cublasLtMatmulDescSetAttribute)                                                              \
    F(layout_init, cublasLtMatrixLayoutInit_internal)                                                        \
    F(layout_set, cublasLtMatrixLayoutSetAttribute)                                                          \
    F(preference_init, cublasLtMatmulPreferenceInit_internal)                                                \
    F(preference_set, cublasLtMatmulPreferenceSetAttribute)

struct fp8r_cublaslt {
#define MEMBER(member, symbol) __typeof__(symbol) *member;
    FP8R_CUBLASLT_FUNCTIONS(MEMBER)
#undef MEMBER
    int64_t version; /* as cublasLtGetVersion gives it, e.g. 130100 */
    char name[64];   /* "cublaslt 13.1.0" */
    char path[512];  /* of the file that was loaded; cut where it is longer */
};

enum fp8r_cublaslt_verdict {
    FP8R_CUBLASLT_GOOD,
    FP8R_CUBLASLT_ABSENT,     /* nothing to open */
    FP8R_CUBLASLT_INCOMPLETE, /* a function is missing: library->name says which */
    FP8R_CUBLASLT_OLD         /* library->version says how */
};

/* Opens the library. resident_only: take it only where the process has it already. *library is complete only
 * when GOOD. */
enum fp8r_cublaslt_verdict fp8r_cublaslt_open(const char *file, bool resident_only,
                                              struct fp8r_cublaslt *library);

/* Opens `named`, or with NULL the first good one of `files` (a NULL-terminated list), one that the process
 * has already before all others. False fills the reason; its subject lives in `subject`. */
bool fp8r_cublaslt_choose(const char *named, const char *const *files, struct fp8r_cublaslt *library,
                          char *subject, size_t subject_bytes, fp8r_reason *reason);

/* This process's library, chosen at the first call; NULL with the reason where there is none.
 * FP8ROUTE_CUBLASLT names it; otherwise it is libcublasLt.so.13 or .12. */
const struct fp8r_cublaslt *fp8r_cublaslt_load(fp8r_reason *reason);

/* Makes this process's handle for a device, once. False fills the reason. */
bool fp8r_cublaslt_handle_make(const struct fp8r_cublaslt *library, const fp8r_device_facts *device,
                               fp8r_reason *reason);

/* The device's handle; NULL where none was made for a device with these facts (one made by hand, for
 * example). */
cublasLtHandle_t fp8r_cublaslt_handle(const fp8r_device_facts *device);

/* Turns a failed call into a status whose line names it. */
fp8r_status fp8r_cublaslt_fail(const char *call, cublasStatus_t status);

#endif
