/* Reads and checks the FP8ROUTE_* variables. A value that makes no sense is ignored with one complaint.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/environment.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

static bool copy(const char *name, char **value)
{
    const char *text = getenv(name);
    if (!text || !*text)
        return true;
    *value = strdup(text);
    return *value != NULL;
}

/* A whole number in low..high; `fallback` with a complaint otherwise. */
static int64_t number(struct fp8r_environment *environment, const char *name, int base, int64_t low, int64_t high,
                      int64_t fallback)
{
    const char *text = getenv(name);
    if (!text || !*text)
        return fallback;
    char *end;
    errno = 0;
    long long value = strtoll(text, &end, base);
    if (errno == 0 && *end == '\0' && value >= low && value <= high)
        return value;
    snprintf(environment->complaint, sizeof environment->complaint,
             "%s=%.40s is ignored: it must be a whole number from %lld to %lld", name, text, (long long)low,
             (long long)high);
    return fallback;
}

static bool cache_home(struct fp8r_environment *environment)
{
    const char *home = getenv("HOME");
    if (!copy("XDG_CACHE_HOME", &environment->cache_home))
        return false;
    if (environment->cache_home || !home || !*home)
        return true;
    size_t size = strlen(home) + sizeof "/.cache";
    environment->cache_home = malloc(size);
    if (environment->cache_home)
        snprintf(environment->cache_home, size, "%s/.cache", home);
    return environment->cache_home != NULL;
}

/* A library's file: is it named? Who loads it reads it by fp8r_environment_process. */
static bool names_library(struct fp8r_environment *environment, const char *name)
{
    const char *text = getenv(name);
    if (text && strlen(text) >= FP8R_LIBRARY_PATH_BYTES)
        snprintf(environment->complaint, sizeof environment->complaint, "%s is ignored: a path has at most %d bytes",
                 name, FP8R_LIBRARY_PATH_BYTES - 1);
    return text && *text;
}

bool fp8r_environment_init(struct fp8r_environment *environment, bool read)
{
    memset(environment, 0, sizeof *environment);
    if (!read)
        return true;
    if (!copy("FP8ROUTE_BACKEND", &environment->backend) || !copy("FP8ROUTE_DENY", &environment->deny) ||
        !copy("FP8ROUTE_TABLE", &environment->table) || !copy("FP8ROUTE_TRACE", &environment->trace) ||
        !cache_home(environment)) {
        fp8r_environment_fini(environment);
        return false;
    }
    environment->verbose = (int32_t)number(environment, "FP8ROUTE_VERBOSE", 10, 0, 2, 0);
    environment->threads = (int32_t)number(environment, "FP8ROUTE_THREADS", 10, 1, 4096, 0);
    environment->cpu_mask = (uint32_t)number(environment, "FP8ROUTE_CPU_MASK", 16, 0, UINT32_MAX, 0);
    environment->checks = number(environment, "FP8ROUTE_CHECK", 10, 0, 1, 0) == 1;
    environment->launches_plain = number(environment, "FP8ROUTE_PDL", 10, 0, 1, 1) == 0;
    const char *unrouted = getenv("FP8ROUTE_UNROUTED");
    environment->unrouted_error = unrouted && strcmp(unrouted, "error") == 0;
    if (unrouted && *unrouted && !environment->unrouted_error)
        snprintf(environment->complaint, sizeof environment->complaint,
                 "FP8ROUTE_UNROUTED=%.40s is ignored: the one value it takes is error", unrouted);
    bool names_blas = names_library(environment, "FP8ROUTE_BLAS");
    bool names_cublaslt = names_library(environment, "FP8ROUTE_CUBLASLT");
    environment->is_used = environment->backend || environment->deny || environment->table || environment->trace ||
                           environment->verbose || environment->unrouted_error || environment->complaint[0] ||
                           names_blas || names_cublaslt;
    return true;
}

void fp8r_environment_fini(struct fp8r_environment *environment)
{
    free(environment->backend);
    free(environment->deny);
    free(environment->table);
    free(environment->trace);
    free(environment->cache_home);
    memset(environment, 0, sizeof *environment);
}

bool fp8r_environment_process(const char *name, char *value, size_t size)
{
    const char *text = getauxval(AT_SECURE) ? NULL : getenv(name);
    if (!text || !*text || strlen(text) >= size)
        return false;
    memcpy(value, text, strlen(text) + 1);
    return true;
}
