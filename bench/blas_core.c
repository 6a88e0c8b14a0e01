/* Asks the loaded OpenBLAS which kernels it chose.
 * SPDX-License-Identifier: Apache-2.0 */
#include "blas_core.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <unistd.h>

#include "backend/blas/blas_library.h"

static const char *core_of_library(void)
{
    static const char *const files[] = {"libopenblasp.so.0", "libopenblas.so.0", "libopenblaso.so.0"};
    const char *(*core)(void) = NULL;
    for (size_t i = 0; i < sizeof files / sizeof *files && !core; i++) {
        void *library = dlopen(files[i], RTLD_NOW | RTLD_NOLOAD);
        if (library) *(void **)&core = dlsym(library, "openblas_get_corename");
    }
    return core ? core() : NULL;
}

static bool is_generic(const char *core)
{
    static const char *const names[] = {"Prescott", "Core2", "Nehalem", "Generic", "Sandybridge"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcasecmp(core, names[i]) == 0) return true;
    return false;
}

void bench_blas_core(const fp8r_device_facts *facts, char **argv)
{
    fp8r_reason reason;
    if (getenv("OPENBLAS_CORETYPE") || !(facts->cpu_features & FP8R_CPU_AVX2) || !fp8r_blas_load(&reason))
        return;
    const char *core = core_of_library();
    if (!core || !is_generic(core)) return;
    const char *better = facts->cpu_features & FP8R_CPU_AVX512 ? "SKYLAKEX" : "HASWELL";
    fprintf(stderr, "bench_cpu: OpenBLAS took its %s kernels; starting again with OPENBLAS_CORETYPE=%s\n",
            core, better);
    setenv("OPENBLAS_CORETYPE", better, 1);
    execv("/proc/self/exe", argv);
}
