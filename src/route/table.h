/* Measured routes in memory: entries by key, each with segments of M. Pure data: read from files by route_file.h, asked
 * by decide.h.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_ROUTE_TABLE_H
#define FP8R_ROUTE_TABLE_H

#include <stdbool.h>
#include <stddef.h>

#include "backend/registry.h"
#include "problem/key.h"

enum { FP8R_LABEL_BYTES = 2 * FP8R_NAME_BYTES, FP8R_REV_BYTES = 40 };

/* Ascending values of m. */
enum { FP8R_ROWS_LIST_MAX = 16 };
struct fp8r_rows_list {
    int64_t values[FP8R_ROWS_LIST_MAX];
    int count;
};

/* The rows m_first <= m <= m_last of an entry. */
struct fp8r_segment {
    int64_t m_first, m_last;
    struct fp8r_rows_list at;          /* where it was measured; empty = somewhere */
    char backend[FP8R_NAME_BYTES], config[FP8R_NAME_BYTES];
    char rev[FP8R_REV_BYTES];          /* the backend's when it was measured */
    double median_us;                  /* geometric mean of the medians at the measured M of the segment */
    char runner_up[FP8R_LABEL_BYTES];  /* backend:config; "" where it was alone */
    double runner_up_us;
    char rival[FP8R_LABEL_BYTES];      /* the fastest of other backends, backend:config; "" where none kept up */
    double rival_us, rival_low, rival_high; /* its time; interval of its time / time */
    double gain_low, gain_high;        /* interval of default time / time */
    bool is_clear;                     /* verdict `clear`; otherwise `tie`: the default, within the noise */
};

struct fp8r_entry {
    struct fp8r_key key;
    bool is_quick;
    int file; /* index into the table's file names */
    int segment_count;
    struct fp8r_segment *segments; /* owned; ascending, not overlapping */
};

struct fp8r_table {
    struct fp8r_entry *entries; /* owned; ascending by fp8r_key_compare, no two equal */
    size_t count;
    char **files; /* owned; where entries came from, in search order */
    int file_count;
};

void fp8r_table_fini(struct fp8r_table *table);

/* The family that an entry is for, as text (docs/grammar.md). */
enum { FP8R_FAMILY_BYTES = 256 };
fp8r_status fp8r_entry_family(const struct fp8r_entry *entry, char text[FP8R_FAMILY_BYTES]);

/* NULL where there is none. */
const struct fp8r_entry *fp8r_table_find(const struct fp8r_table *table, const struct fp8r_key *key);

/* The key's entry; for want of one, that of a product which differs in what hardly changes who is fastest: the promise that
 * weights are static, no bias, e4m3 for an `a` of bf16 or fp16 (which is quantised first and then is that product). Whether
 * its choice runs this product is the caller's question. */
const struct fp8r_entry *fp8r_table_find_kin(const struct fp8r_table *table, const struct fp8r_key *key);

/* The segment that holds m; NULL where m lies before, between or behind the segments. */
const struct fp8r_segment *fp8r_entry_segment(const struct fp8r_entry *entry, int64_t m);

/* The nearest entries on both sides that differ from key in N alone (or K alone), within a factor 1.5 each; false where
 * one side has none. */
enum fp8r_axis { FP8R_AXIS_N, FP8R_AXIS_K };
bool fp8r_table_neighbours(const struct fp8r_table *table, const struct fp8r_key *key, enum fp8r_axis axis,
                           const struct fp8r_entry **below, const struct fp8r_entry **above);

/* Of two entries for one key, read in this order: the one that a merge keeps. */
const struct fp8r_entry *fp8r_entry_preferred(const struct fp8r_entry *earlier, const struct fp8r_entry *later);

/* Moves the entries of `from` into `into`, which was read earlier and wins, except that a quick entry never hides a full
 * one. `from` is empty afterwards. false when out of memory (both unchanged). */
bool fp8r_table_merge(struct fp8r_table *into, struct fp8r_table *from);

#endif
