/* Samples under way: what a folder of sample files held before, and what this process adds to its own file, as one.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_TUNE_RECORD_H
#define TOOL_TUNE_RECORD_H

#include "tune/samples.h"

struct record {
    struct samples samples; /* of all files of the folder, with what this process has measured */
    int run, machine;       /* this process's */
    struct sample_writer *writer; /* NULL: in memory only */
    int *numbers; /* a case's number in this run, -1 = not announced yet */
    size_t number_capacity;
    char path[4096]; /* of this process's file */
};

/* Reads every *.jsonl of the folder (made where missing) and opens a file for this process: NAME.jsonl, or NAME-2.jsonl
 * and so on where another process writes that one. name: "all", or "shard-1-of-4". folder NULL: nothing is read, and
 * what is measured stays in memory. Exit codes: bad data, usage, internal. */
int record_open(struct record *record, const char *folder, const char *name, const struct fp8r_route_file *header,
                uint64_t seed, double margin, struct fp8r_tool_error *error);
int record_close(struct record *record, struct fp8r_tool_error *error);

/* Forgets the samples that were read, and who was dropped; the lists of candidates stay. For those who ask how it is now. */
void record_forget(struct record *record);

/* The index of the case of this problem on this machine, announced in this run. wanted: candidates by name and rev, and
 * the fallback; they must be those that earlier files list. Takes nothing over. */
int record_case(struct record *record, const struct sample_case *wanted, size_t *index, struct fp8r_tool_error *error);

/* The first round that this run has not used for the case in the phase. */
int32_t record_next_round(const struct record *record, size_t index, int phase);

/* sample->run is set here. */
int record_sample(struct record *record, size_t index, int candidate, const struct sample *sample,
                  struct fp8r_tool_error *error);
/* Everything so far is safe from a kill of this process. */
int record_flush(struct record *record, struct fp8r_tool_error *error);
int record_dropped(struct record *record, size_t index, int candidate, const char *why, struct fp8r_tool_error *error);
int record_done(struct record *record, size_t index, bool noisy, struct fp8r_tool_error *error);

#endif
