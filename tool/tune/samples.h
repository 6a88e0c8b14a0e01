/* Raw samples: every time that was ever measured, as JSON lines in files that are only appended to, and their form in
 * memory. Written by the tuner, the gate and the audit; read by whoever decides or draws. Holds no verdicts: those are
 * made from the samples, always anew. The format is docs/samples.md.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_TUNE_SAMPLES_H
#define TOOL_TUNE_SAMPLES_H

#include <stdbool.h>
#include <stdint.h>

#include "problem/grammar.h"
#include "route/route_file.h"
#include "tool_error.h"

enum sample_phase { SAMPLE_GRID, SAMPLE_BORDER, SAMPLE_CONFIRM, SAMPLE_GATE, SAMPLE_AUDIT, SAMPLE_PHASES };

/* "grid", "border", "confirm", "gate", "audit". */
const char *sample_phase_name(int phase);

/* Times of one round belong together: they were taken next to each other, and are paired in comparisons. */
struct sample {
    double us;
    int32_t run;   /* index into samples.runs */
    int32_t round; /* unique within a run, a case and a phase */
    int16_t phase;
    int16_t mhz, watts, celsius; /* the device right after, 0 where it cannot be read */
};

struct sample_candidate {
    char name[FP8R_LABEL_BYTES]; /* backend:config */
    char rev[FP8R_REV_BYTES];
    char dropped[96]; /* why it was measured no further ("3.4x behind", "refused: ..."); "" = it was not */
    int dropped_run;  /* who said so */
    bool is_verified; /* its result was right, in this process */
    struct sample *samples; /* by run, phase and round: the order in which they were taken */
    size_t count, capacity;
};

/* One problem on one machine and mode. */
struct sample_case {
    char problem[FP8R_TEXT_BYTES];
    struct fp8r_key key;
    int64_t m;
    int machine; /* index into samples.machines */
    double weight; /* calls in a trace; 1 otherwise; the largest where runs differ */
    struct sample_candidate *candidates;
    int count, fallback; /* fallback: the default's index */
    int64_t default_last; /* up to this m the default is the same; 0: unknown; the smallest where runs differ */
    bool is_done, is_noisy; /* grid finished; spread stayed too large after the retries */
    int done_run;           /* who said so: the newest run that finished it */
};

/* One process that measured. */
struct sample_run {
    char id[40];
    int machine;
    uint64_t seed;
    double margin;
};

/* What times are true for: header of a route file without entries. Runs of equal identity, libraries, mode and protocol
 * share it; its facts and minor versions are those of the newest of them. */
struct samples {
    struct fp8r_route_file *machines;
    int machine_count;
    struct sample_run *runs; /* by id, which ascend in time */
    int run_count;
    struct sample_case *cases; /* in order of first appearance */
    size_t case_count, case_capacity;
    size_t *index; /* hash of (machine, problem) -> case + 1; owned, power-of-two size */
    size_t index_size;
};

void samples_fini(struct samples *samples);

/* Adds a file's samples to what is there. A last line without its end is that of a process that was killed: it is left
 * out. What was read before (a file given twice, a copy) adds nothing. In whatever order files are read, what they hold
 * together is the same but for the order of machines and cases. Exit codes: bad data (with file and line), internal. */
int samples_read(struct samples *samples, const char *path, struct fp8r_tool_error *error);

/* The same, or of a folder all its *.jsonl files, by name. */
int samples_read_path(struct samples *samples, const char *path, struct fp8r_tool_error *error);

/* The same of several files or folders, brought into order once: faster than one after the other. */
int samples_read_paths(struct samples *samples, const char *const *paths, size_t count, struct fp8r_tool_error *error);

/* The case of this problem on this machine; NULL where there is none. */
struct sample_case *samples_find(const struct samples *samples, int machine, const char *problem);

/* Index of the candidate of that name, or -1. */
int sample_case_candidate(const struct sample_case *it, const char *name);

/* Do both list the same candidates (names and revisions) and the same default? Numbers mean others otherwise. */
bool sample_case_same_list(const struct sample_case *a, const struct sample_case *b);

/* Takes over what another run says of the same case: its weight and its default_last. */
void sample_case_join(struct sample_case *it, const struct sample_case *other);

/* Was it taken by a tune, not by a gate or an audit? */
bool sample_is_tuned(const struct sample *sample);

/* Paired times of two candidates in one phase (or SAMPLE_PHASES: all): those of equal run and round, in the order of a's
 * samples. Writes up to `capacity` pairs and returns their number. */
size_t sample_pairs(const struct sample_candidate *a, const struct sample_candidate *b, int phase, double *a_us,
                    double *b_us, size_t capacity);

/* ---- Writing ---- */

struct sample_writer;

/* Opens (makes) the file for one run, alone: another process that writes it is an error. Cuts off a torn last line.
 * header: identity, mode and protocol of this machine. *is_taken: another process was the reason; may be NULL. */
int sample_writer_open(const char *path, const struct fp8r_route_file *header, uint64_t seed, double margin,
                       struct sample_writer **writer, bool *is_taken, struct fp8r_tool_error *error);

/* The run's id, as it stands in the file. */
const char *sample_writer_run(const struct sample_writer *writer);

/* Announces a case; its number is what the next calls take. Only names, revs and fallback of the candidates are used. */
int sample_writer_case(struct sample_writer *writer, const struct sample_case *it, int *number,
                       struct fp8r_tool_error *error);
int sample_writer_sample(struct sample_writer *writer, int number, int candidate, const struct sample *sample,
                         struct fp8r_tool_error *error);
int sample_writer_dropped(struct sample_writer *writer, int number, int candidate, const char *why,
                          struct fp8r_tool_error *error);

/* Hands what was written to the system: from then on only a machine that goes down can lose it. */
int sample_writer_flush(struct sample_writer *writer, struct fp8r_tool_error *error);

/* The case's grid is complete; noisy: its spread stayed too large. What was written before is on disk when this
 * returns. */
int sample_writer_done(struct sample_writer *writer, int number, bool noisy, struct fp8r_tool_error *error);
int sample_writer_close(struct sample_writer *writer, struct fp8r_tool_error *error);

#endif
