/* Opening one BLAS library: its symbols, its name, and what controls its threads. Which libraries to try is not known
 * here.
 * SPDX-License-Identifier: Apache-2.0 */
#include "backend/blas/blas_library.h"

#include <ctype.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/shared_object.h"

/* POSIX promises that a void pointer holds a function's address; C has no cast for it without a warning. */
static bool find(void *handle, const char *symbol, void *function)
{
    void *address = dlsym(handle, symbol);
    memcpy(function, &address, sizeof address);
    return address != NULL;
}

static void find_count(void *handle, const char *get, const char *set, struct fp8r_blas_count *count)
{
    if (!find(handle, get, &count->get) || !find(handle, set, &count->set))
        *count = (struct fp8r_blas_count){0};
}

static void *set_two(void *count)
{
    ((struct fp8r_blas_count *)count)->set(2);
    return NULL;
}

/* Some BLIS releases keep the number of threads a process, others a thread. Asked, not assumed: does what another
 * thread sets show here? Setting it starts no thread in BLIS. */
static void sort_blis_count(struct fp8r_blas *library, struct fp8r_blas_count count)
{
    int own = count.get();
    pthread_t other;
    count.set(1);
    if (pthread_create(&other, NULL, set_two, &count) == 0) {
        pthread_join(other, NULL);
        if (count.get() == 2)
            library->process = count;
        else
            library->thread = count;
    }
    count.set(own);
}

static void find_threads(void *handle, struct fp8r_blas *library)
{
    int (*parallel)(void);
    struct fp8r_blas_count blis;
    find_count(handle, "openblas_get_num_threads", "openblas_set_num_threads", &library->process);
    /* Only where the library itself needs an OpenMP runtime. */
    find_count(handle, "omp_get_max_threads", "omp_set_num_threads", &library->thread);
    find(handle, "MKL_Set_Num_Threads_Local", &library->swap);
    find_count(handle, "bli_thread_get_num_threads", "bli_thread_set_num_threads", &blis);
    if (blis.set)
        sort_blis_count(library, blis);
    /* A serial OpenBLAS hands out its buffers under a lock only when built so, and does not tell. */
    library->one_at_a_time = find(handle, "openblas_get_parallel", &parallel) && parallel() == 0;
}

/* "NAME VERSION" with the first number of `text`, e.g. "openblas 0.3.21"; the file's name where there is none. */
static void write_name(struct fp8r_blas *library, const char *name, const char *text)
{
    const char *version = text;
    while (*version && !isdigit((unsigned char)*version))
        version++;
    int length = (int)strspn(version, "0123456789.");
    snprintf(library->name, sizeof library->name, "%s%s%.*s", name, length > 0 ? " " : "", length, version);
}

static void find_name(void *handle, const char *path, struct fp8r_blas *library)
{
    char *(*openblas)(void), *(*core)(void);
    const char *(*blis)(void);
    void (*mkl)(char *text, int size);
    char text[200] = "";
    const char *file = strrchr(path, '/');
    if (find(handle, "openblas_get_config", &openblas)) {
        /* Which of its kernels it took is a matter of a factor of 3: what was measured holds for those only. */
        bool has_core = find(handle, "openblas_get_corename", &core);
        snprintf(text, sizeof text, "openblas%s%.30s%s", has_core ? " (" : "", has_core ? core() : "", has_core ? ")" : "");
        write_name(library, text, openblas());
    } else if (find(handle, "MKL_Get_Version_String", &mkl)) {
        mkl(text, sizeof text - 1);
        write_name(library, "mkl", text);
    } else if (find(handle, "bli_info_get_version_str", &blis)) {
        write_name(library, "blis", blis());
    } else {
        snprintf(library->name, sizeof library->name, "%s", file ? file + 1 : path);
    }
}

enum fp8r_blas_verdict fp8r_blas_open(const char *path, bool resident_only, struct fp8r_blas *library)
{
    memset(library, 0, sizeof *library);
    void *handle = fp8r_shared_object_open(path, RTLD_NOW | RTLD_LOCAL | (resident_only ? RTLD_NOLOAD : 0));
    if (!handle)
        return FP8R_BLAS_ABSENT;
    if (!find(handle, "cblas_sgemm", &library->sgemm) || !find(handle, "cblas_sdot", &library->sdot)) {
        dlclose(handle);
        return FP8R_BLAS_ABSENT;
    }
    find_name(handle, path, library);
    find_threads(handle, library);
    return fp8r_blas_check(library);
}
