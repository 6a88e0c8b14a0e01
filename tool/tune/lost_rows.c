/* Rows that go.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tune/lost_rows.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/sizes.h"
#include "tune/segment_text.h"

enum { SPANS_SHOWN = 4 };

/* Neighbours joined; what lies behind the last one shown only counts. */
struct spans {
    int64_t first[SPANS_SHOWN], last[SPANS_SHOWN];
    int count;
};

static void add_span(struct spans *spans, int64_t first, int64_t last)
{
    const int end = spans->count - 1;
    if (first > last) return;
    if (end >= 0 && end < SPANS_SHOWN && spans->last[end] + 1 == first) {
        spans->last[end] = last;
        return;
    }
    if (spans->count < SPANS_SHOWN) {
        spans->first[spans->count] = first;
        spans->last[spans->count] = last;
    }
    spans->count++;
}

/* Of first..last what no segment of the entry holds. */
static void add_rest(struct spans *spans, int64_t first, int64_t last, const struct fp8r_entry *made)
{
    for (int i = 0; i < made->segment_count && first <= last; i++) {
        const struct fp8r_segment *segment = &made->segments[i];
        if (segment->m_last < first) continue;
        add_span(spans, first, fp8r_size_min(last, segment->m_first - 1));
        if (segment->m_last >= last) return;
        first = segment->m_last + 1;
    }
    add_span(spans, first, last);
}

/* "1..2, 8 and 65..128" */
static void format_spans(const struct spans *spans, size_t bytes, char *text)
{
    const int shown = spans->count < SPANS_SHOWN ? spans->count : SPANS_SHOWN;
    size_t length = 0;
    for (int i = 0; i < shown && length < bytes; i++) {
        char rows[FP8R_SEGMENT_TEXT_BYTES];
        fp8r_rows_format(spans->first[i], spans->last[i], rows);
        const char *between = i == 0 ? "" : i + 1 == spans->count ? " and " : ", ";
        length += (size_t)snprintf(text + length, bytes - length, "%s%s", between, rows);
    }
    if (spans->count > shown && length < bytes) snprintf(text + length, bytes - length, " and others");
}

static bool say(const struct fp8r_entry *held, const struct fp8r_entry *made, char line[FP8R_LOST_ROWS_BYTES])
{
    struct spans spans = {.count = 0};
    char rows[(SPANS_SHOWN + 1) * FP8R_SEGMENT_TEXT_BYTES] = "", family[FP8R_FAMILY_BYTES];
    for (int i = 0; i < held->segment_count; i++)
        add_rest(&spans, held->segments[i].m_first, held->segments[i].m_last, made);
    if (spans.count == 0 || fp8r_entry_family(made, family) != FP8R_OK) return false;
    format_spans(&spans, sizeof rows, rows);
    snprintf(line, FP8R_LOST_ROWS_BYTES, "%s: the file's routes for M=%s are gone: a new entry replaces the old one whole", family,
             rows);
    return true;
}

/* Whose entry the file will hold, when all three are merged. */
static const struct fp8r_entry *winner_of(const struct fp8r_entry *held, const struct fp8r_table *made,
                                          const struct fp8r_table *rest)
{
    const struct fp8r_entry *first = fp8r_table_find(made, &held->key);
    const struct fp8r_entry *last = rest ? fp8r_table_find(rest, &held->key) : NULL;
    const struct fp8r_entry *winner = first ? fp8r_entry_preferred(first, held) : held;
    return last ? fp8r_entry_preferred(winner, last) : winner;
}

bool fp8r_lost_rows_init(struct fp8r_lost_rows *lost, const struct fp8r_table *held, const struct fp8r_table *made,
                         const struct fp8r_table *rest)
{
    *lost = (struct fp8r_lost_rows){.count = 0};
    if (held->count == 0) return true;
    lost->lines = calloc(held->count, sizeof *lost->lines);
    for (size_t i = 0; lost->lines && i < held->count; i++) {
        const struct fp8r_entry *entry = &held->entries[i], *winner = winner_of(entry, made, rest);
        if (winner != entry && say(entry, winner, lost->lines[lost->count])) lost->count++;
    }
    return lost->lines != NULL;
}

void fp8r_lost_rows_fini(struct fp8r_lost_rows *lost)
{
    free(lost->lines);
    *lost = (struct fp8r_lost_rows){.count = 0};
}
