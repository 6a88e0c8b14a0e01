/* Route files: the one place that knows the format (docs/routes.md). A file is loaded whole or not at all and written
 * atomically; the same content gives the same bytes.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_ROUTE_ROUTE_FILE_H
#define FP8R_ROUTE_ROUTE_FILE_H

#include "route/table.h"

enum { FP8R_LIBRARIES_MAX = 8, FP8R_FACTS_MAX = 16 };

/* What a file's times are true for. Two machines of equal identity share routes. */
struct fp8r_identity {
    int32_t kind;
    int32_t arch, sm_count;           /* CUDA */
    int64_t bandwidth_class;          /* CUDA: GB/s rounded to a multiple of 500 */
    uint32_t cpu_features;            /* CPU */
    int32_t threads;                  /* CPU */
    int64_t last_level_bytes;         /* CPU */
    int library_count;                /* vendor libraries: row name and "name version" */
    struct fp8r_library {
        char backend[FP8R_NAME_BYTES], version[FP8R_NAME_BYTES];
    } libraries[FP8R_LIBRARIES_MAX];
};

/* Soft facts: shown, never compared (names, driver, power limit, commit, date, command). name: a-z, 0-9 and _. In
 * a value, control characters are written as spaces and what is not ASCII as '?'. */
struct fp8r_fact {
    char name[32], value[160];
};

struct fp8r_route_file {
    struct fp8r_identity identity;
    struct fp8r_fact facts[FP8R_FACTS_MAX];
    int fact_count;
    bool is_quick; /* protocol quick or full: of every entry, where full but for those that are marked */
    int mode;      /* FP8R_MODE_*: of every entry */
    bool is_cold;  /* operands rotated out of the caches */
    bool is_behind_both; /* half of the calls behind a small kernel, half behind themselves; otherwise all behind themselves */
    struct fp8r_table table; /* one file: itself */
};

void fp8r_route_file_fini(struct fp8r_route_file *file);

/* The machine's own identity: facts, and the libraries of the rows that fit. */
void fp8r_identity_init(const fp8r_device_facts *device, const struct fp8r_registry *registry,
                        struct fp8r_identity *identity);

/* What must be equal, library majors left out: "features=avx2+fma threads=8 llc_bytes=33554432". */
enum { FP8R_IDENTITY_BYTES = 256 };
void fp8r_identity_format(const struct fp8r_identity *identity, char text[FP8R_IDENTITY_BYTES]);

/* A hash of device kind and that text, for file names: 16 hex digits and a zero. */
void fp8r_identity_hash(const struct fp8r_identity *identity, char text[17]);

/* May a file of identity `of` be used on `here`? The line says which part differs, with both values. A library of the
 * file that is not loaded here does not differ: its rows are not eligible anyway. */
bool fp8r_identity_fits(const struct fp8r_identity *of, const struct fp8r_identity *here, char *line, size_t size);

/* Reads text of `size` bytes (need not end in zero). name: for messages. Errors: FORMAT with name and line number and
 * what would be right, OUT_OF_MEMORY. */
fp8r_status fp8r_route_file_parse(const char *name, const char *text, size_t size, struct fp8r_route_file *file);

/* Reads a file. Errors: IO, and those of parse. Files beyond 64 MiB are a FORMAT error. */
fp8r_status fp8r_route_file_read(const char *path, struct fp8r_route_file *file);

/* Writes it beside `path` and renames: readers see the old file or the new one. Makes missing directories.
 * Errors: IO, OUT_OF_MEMORY, FORMAT (what is in memory would not be read back: nothing is written). */
fp8r_status fp8r_route_file_write(const char *path, const struct fp8r_route_file *file);

/* Could it be written there now? Makes missing directories and leaves nothing else: for asking before hours of work whose
 * result goes there. Errors: IO, OUT_OF_MEMORY. */
fp8r_status fp8r_route_file_probe(const char *path);

/* The text itself, owned by the caller (free). Errors: OUT_OF_MEMORY, and INVALID_ARGUMENT for a key without a text. */
fp8r_status fp8r_route_file_format(const struct fp8r_route_file *file, char **text);

#endif
