/* Sample files written by hand: runs whose ids, machines and times a test chooses.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_SAMPLE_MAKER_H
#define FP8R_SAMPLE_MAKER_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static inline FILE *maker_open(const char *path)
{
    FILE *file = fopen(path, "w");
    if (!file) abort();
    return file;
}

/* A run's header; library: "" for none, or as `library blas "openblas 0.3.21"` says it. */
struct maker_machine {
    int threads;
    const char *library, *date, *protocol; /* protocol: NULL for full */
};

static inline void maker_run(FILE *file, const char *id, const struct maker_machine *machine, double margin)
{
    (void)fprintf(file,
                  "{\"record\":\"run\",\"schema\":\"fp8route.samples/1\",\"run\":\"%s\",\"seed\":7,\"margin\":%.3f,"
                  "\"machine\":\"fp8route-routes 1\\ndevice cpu\\nidentity features=avx2+fma threads=%d "
                  "llc_bytes=1048576\\n",
                  id, margin, machine->threads);
    if (*machine->library) (void)fprintf(file, "library blas \\\"%s\\\"\\n", machine->library);
    (void)fprintf(file, "fact date \\\"%s\\\"\\nprotocol %s mode=eager operands=cold\\nend entries=0\\n\"}\n",
                  machine->date, machine->protocol ? machine->protocol : "full");
}

/* Candidates cpu:one, cpu:two and blas:sgemm; fallback: the default's number. */
static inline void maker_case(FILE *file, int number, const char *problem, int fallback)
{
    (void)fprintf(file,
                  "{\"record\":\"case\",\"case\":%d,\"problem\":\"%s\",\"weight\":1.0,\"default\":%d,\"candidates\":"
                  "[{\"name\":\"cpu:one\",\"rev\":\"r1\"},{\"name\":\"cpu:two\",\"rev\":\"r1\"},"
                  "{\"name\":\"blas:sgemm\",\"rev\":\"b7\"}]}\n",
                  number, problem, fallback);
}

static inline void maker_sample(FILE *file, int number, int candidate, const char *phase, int round, double us)
{
    (void)fprintf(file,
                  "{\"record\":\"sample\",\"case\":%d,\"candidate\":%d,\"phase\":\"%s\",\"round\":%d,\"us\":%.6f,"
                  "\"mhz\":0}\n",
                  number, candidate, phase, round, us);
}

static inline void maker_dropped(FILE *file, int number, int candidate, const char *why)
{
    (void)fprintf(file, "{\"record\":\"dropped\",\"case\":%d,\"candidate\":%d,\"why\":\"%s\"}\n", number, candidate, why);
}

static inline void maker_done(FILE *file, int number, int is_noisy)
{
    (void)fprintf(file, "{\"record\":\"done\",\"case\":%d,\"noisy\":%s}\n", number, is_noisy ? "true" : "false");
}

/* us, off by up to 3 %. */
static inline double maker_noise(uint64_t *state, double us)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return us * (0.97 + 0.06 * (double)(*state >> 11) / 9007199254740992.0);
}

#endif
