/* Which cuBLASLt this process uses: the one that FP8ROUTE_CUBLASLT names, else one that is already here (a
 * framework's), else the first that the system finds. Decided once. Two copies of half a gigabyte would cost
 * memory and start-up time.
 * SPDX-License-Identifier: Apache-2.0 */
#include "backend/cublaslt/cublaslt_library.h"

#include <pthread.h>
#include <stdio.h>

#include "base/environment.h"

static const char *const known[] = {"libcublasLt.so.13", "libcublasLt.so.12", NULL};

static bool refuse(enum fp8r_cublaslt_verdict verdict, const char *file, const struct fp8r_cublaslt *library,
                   bool is_named, char *subject, size_t size, fp8r_reason *reason)
{
    const char *origin = is_named ? "FP8ROUTE_CUBLASLT=" : "";
    if (verdict == FP8R_CUBLASLT_INCOMPLETE)
        snprintf(subject, size, "%s in %s%s", library->name, origin, file);
    else if (verdict == FP8R_CUBLASLT_OLD)
        snprintf(subject, size, "cuBLASLt (%s%s)", origin, file);
    else
        snprintf(subject, size, "%s%s", origin, file);
    FP8R_REJECT_IF(verdict == FP8R_CUBLASLT_OLD, reason, LIBRARY_VERSION, subject, library->version,
                   FP8R_CUBLASLT_VERSION_MIN);
    FP8R_REJECT_IF(verdict == FP8R_CUBLASLT_INCOMPLETE || is_named, reason, LIBRARY_MISSING, subject, 0, 0);
    FP8R_REJECT_IF(true, reason, LIBRARY_MISSING,
                   "libcublasLt.so.13 or .12 (FP8ROUTE_CUBLASLT names another)", 0, 0);
}

bool fp8r_cublaslt_choose(const char *named, const char *const *files, struct fp8r_cublaslt *library,
                          char *subject, size_t subject_bytes, fp8r_reason *reason)
{
    enum fp8r_cublaslt_verdict verdict, worst = FP8R_CUBLASLT_ABSENT;
    struct fp8r_cublaslt refused = {0};
    const char *refused_file = "";
    if (named) {
        verdict = fp8r_cublaslt_open(named, false, library);
        return verdict == FP8R_CUBLASLT_GOOD ||
               refuse(verdict, named, library, true, subject, subject_bytes, reason);
    }
    for (int loading = 0; loading < 2; loading++) { /* first those of the process, then all */
        for (int i = 0; files[i]; i++) {
            verdict = fp8r_cublaslt_open(files[i], !loading, library);
            if (verdict == FP8R_CUBLASLT_GOOD) return true;
            if (verdict != FP8R_CUBLASLT_ABSENT && worst == FP8R_CUBLASLT_ABSENT) {
                worst = verdict;
                refused = *library;
                refused_file = files[i];
            }
        }
    }
    return refuse(worst, refused_file, &refused, false, subject, subject_bytes, reason);
}

static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct {
    bool is_good;
    struct fp8r_cublaslt library;
    fp8r_reason reason;
    char named[FP8R_LIBRARY_PATH_BYTES], subject[640];
} chosen;

static void choose(void)
{
    bool is_named = fp8r_environment_process("FP8ROUTE_CUBLASLT", chosen.named, sizeof chosen.named);
    chosen.is_good = fp8r_cublaslt_choose(is_named ? chosen.named : NULL, known, &chosen.library,
                                          chosen.subject, sizeof chosen.subject, &chosen.reason);
}

const struct fp8r_cublaslt *fp8r_cublaslt_load(fp8r_reason *reason)
{
    pthread_once(&once, choose);
    if (!chosen.is_good) *reason = chosen.reason;
    return chosen.is_good ? &chosen.library : NULL;
}
