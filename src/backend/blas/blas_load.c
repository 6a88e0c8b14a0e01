/* Which BLAS library this process uses: the one that FP8ROUTE_BLAS names, else one that is already here, else the first
 * good one of a list. Decided once.
 * SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>
#include <stdio.h>

#include "backend/blas/blas_library.h"
#include "base/environment.h"

/* By expected speed. MKL's dispatching library ends the process where it does not find its other parts, so it is only
 * taken where the process has it already (or FP8ROUTE_BLAS names it). libblas.so.3 may be anything: on Debian whatever
 * the alternatives say. */
static const struct {
    const char *file;
    bool resident_only;
} known[] = {
    {"libopenblasp.so.0", false}, {"libopenblas.so.0", false}, {"libopenblaso.so.0", false},
    {"libmkl_rt.so.3", true},     {"libmkl_rt.so.2", true},    {"libblis.so.4", false},
    {"libblas.so.3", false},      {"libcblas.so.3", false},
};
enum { KNOWN = sizeof known / sizeof *known };

static bool refuse(enum fp8r_blas_verdict verdict, const char *file, bool is_named, char *subject, size_t size,
                   fp8r_reason *reason)
{
    const char *origin = is_named ? "FP8ROUTE_BLAS=" : "";
    if (verdict == FP8R_BLAS_WIDE)
        snprintf(subject, size, "%s%s (its integers have 64 bits; an LP64 build is needed)", origin, file);
    else
        snprintf(subject, size, "%s%s", origin, file);
    FP8R_REJECT_IF(verdict != FP8R_BLAS_ABSENT, reason, LIBRARY_BROKEN, subject, 0, 0);
    FP8R_REJECT_IF(is_named, reason, LIBRARY_MISSING, subject, 0, 0);
    FP8R_REJECT_IF(true, reason, LIBRARY_MISSING, "a BLAS library with cblas_sgemm, e.g. libopenblas.so.0", 0, 0);
}

bool fp8r_blas_choose(const char *named, struct fp8r_blas *library, char *subject, size_t subject_bytes,
                      fp8r_reason *reason)
{
    if (named) {
        enum fp8r_blas_verdict verdict = fp8r_blas_open(named, false, library);
        return verdict == FP8R_BLAS_GOOD || refuse(verdict, named, true, subject, subject_bytes, reason);
    }
    enum fp8r_blas_verdict worst = FP8R_BLAS_ABSENT;
    const char *worst_file = "";
    for (int i = 0; i < 2 * KNOWN; i++) { /* first those of the process, then all */
        bool resident_only = i < KNOWN || known[i % KNOWN].resident_only;
        enum fp8r_blas_verdict verdict = fp8r_blas_open(known[i % KNOWN].file, resident_only, library);
        if (verdict == FP8R_BLAS_GOOD)
            return true;
        if (verdict != FP8R_BLAS_ABSENT) {
            worst = verdict;
            worst_file = known[i % KNOWN].file;
        }
    }
    return refuse(worst, worst_file, false, subject, subject_bytes, reason);
}

static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct {
    bool is_good;
    struct fp8r_blas library;
    fp8r_reason reason;
    char named[FP8R_LIBRARY_PATH_BYTES], subject[640];
} chosen;

static void choose(void)
{
    const char *named = fp8r_environment_process("FP8ROUTE_BLAS", chosen.named, sizeof chosen.named) ? chosen.named : NULL;
    chosen.is_good = fp8r_blas_choose(named, &chosen.library, chosen.subject, sizeof chosen.subject, &chosen.reason);
}

const struct fp8r_blas *fp8r_blas_load(fp8r_reason *reason)
{
    pthread_once(&once, choose);
    if (!chosen.is_good)
        *reason = chosen.reason;
    return chosen.is_good ? &chosen.library : NULL;
}
