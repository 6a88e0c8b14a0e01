/* The FP8ROUTE_* variables, read once when a context is created. No other code calls getenv.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_BASE_ENVIRONMENT_H
#define FP8R_BASE_ENVIRONMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Strings are owned; NULL where unset or empty. */
struct fp8r_environment {
    bool checks;          /* FP8ROUTE_CHECK=1: ask the driver about every call's pointers */
    bool unrouted_error;  /* FP8ROUTE_UNROUTED=error */
    bool launches_plain;  /* FP8ROUTE_PDL=0: no programmatic dependent launch */
    bool is_used;         /* any of them is set */
    char *backend;        /* FP8ROUTE_BACKEND=name[:config] */
    char *deny;           /* FP8ROUTE_DENY=name,... */
    char *table;          /* FP8ROUTE_TABLE=file */
    char *trace;          /* FP8ROUTE_TRACE=file */
    char *cache_home;     /* XDG_CACHE_HOME, or HOME/.cache */
    int32_t verbose;      /* FP8ROUTE_VERBOSE=0|1|2 */
    int32_t threads;      /* FP8ROUTE_THREADS=N, 0 = not given */
    uint32_t cpu_mask;    /* FP8ROUTE_CPU_MASK=hex: features to pretend absent, for tests */
    char complaint[160];  /* one line on a variable that could not be understood, "" otherwise */
};

/* Reads the variables, or leaves all unset where `read` is false. False when out of memory (nothing is kept then). */
bool fp8r_environment_init(struct fp8r_environment *environment, bool read);
void fp8r_environment_fini(struct fp8r_environment *environment);

enum { FP8R_LIBRARY_PATH_BYTES = 512 }; /* of FP8ROUTE_BLAS and FP8ROUTE_CUBLASLT, the zero included */

/* Copies one variable that is the whole process's business, not a context's: which file a library is loaded from. False
 * where it is unset, empty or longer than size - 1, or where the program runs with more rights than its user. */
bool fp8r_environment_process(const char *name, char *value, size_t size);

#endif
