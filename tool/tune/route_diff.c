/* Comparing tables.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tune/route_diff.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *fp8r_change_name(enum fp8r_change change)
{
    static const char *const names[FP8R_CHANGES] = {"same", "border", "config", "backend", "new", "gone"};
    return names[change];
}

void fp8r_table_diff_fini(struct fp8r_table_diff *diff)
{
    free(diff->ranges);
    *diff = (struct fp8r_table_diff){0};
}

static bool same_choice(const struct fp8r_segment *a, const struct fp8r_segment *b)
{
    return strcmp(a->backend, b->backend) == 0 && strcmp(a->config, b->config) == 0;
}

/* ---- Borders ---- */

/* Neighbouring segments of one choice: what differs inside is the verdict. */
struct span {
    int64_t first, last;
    const struct fp8r_segment *left, *right; /* what touches it on either side, or NULL */
};

static bool touch(const struct fp8r_segment *left, const struct fp8r_segment *right)
{
    return left->m_last + 1 == right->m_first; /* there is an m behind the left one, so that it does not overflow */
}

static struct span span_of(const struct fp8r_entry *entry, const struct fp8r_segment *segment)
{
    const struct fp8r_segment *first = segment, *last = segment, *end = entry->segments + entry->segment_count - 1;
    while (first > entry->segments && touch(first - 1, first) && same_choice(first - 1, first))
        first--;
    while (last < end && touch(last, last + 1) && same_choice(last, last + 1))
        last++;
    return (struct span){.first = first->m_first,
                         .last = last->m_last,
                         .left = first > entry->segments && touch(first - 1, first) ? first - 1 : NULL,
                         .right = last < end && touch(last, last + 1) ? last + 1 : NULL};
}

/* Did the border behind `shrunk` move down, so that `grown` begins earlier? Then both know both choices. */
static bool gave_way(const struct span *shrunk, const struct fp8r_segment *of_shrunk, const struct span *grown,
                     const struct fp8r_segment *of_grown)
{
    return shrunk->first < grown->first && shrunk->last < grown->last && shrunk->right && grown->left &&
           same_choice(shrunk->right, of_grown) && same_choice(grown->left, of_shrunk);
}

/* Where a border moved: what both spans cover, which is as wide as the move. */
static bool is_moved(const struct fp8r_entry *before, const struct fp8r_entry *after,
                     const struct fp8r_diff_range *range, int64_t *from, int64_t *to)
{
    struct span old = span_of(before, range->before), new = span_of(after, range->after);
    bool is_down = gave_way(&old, range->before, &new, range->after);
    if (!is_down && !gave_way(&new, range->after, &old, range->before))
        return false;
    *from = is_down ? old.last : old.first - 1;
    *to = is_down ? new.first - 1 : new.last;
    return true;
}

/* ---- Reasons ---- */

/* The revision of a backend that a table was measured with; NULL where it has no route of it. */
static const char *rev_in(const struct fp8r_table *table, const char *backend)
{
    for (size_t i = 0; i < table->count; i++)
        for (int j = 0; j < table->entries[i].segment_count; j++)
            if (strcmp(table->entries[i].segments[j].backend, backend) == 0)
                return table->entries[i].segments[j].rev;
    return NULL;
}

static const char *verdicts_in_words(const struct fp8r_segment *before, const struct fp8r_segment *after)
{
    if (before->is_clear && after->is_clear)
        return "clear in both, for different choices";
    if (before->is_clear)
        return "was clear, now within the noise: the default stands";
    return after->is_clear ? "was within the noise, now clear" : "within the noise in both, but the default is another";
}

static void add_revision(const struct fp8r_table *after, const struct fp8r_segment *was, struct fp8r_diff_range *range)
{
    const char *rev = rev_in(after, was->backend);
    size_t used = strlen(range->why);
    if (rev && strcmp(rev, was->rev) != 0)
        snprintf(range->why + used, sizeof range->why - used, "%s%s has another revision now", used > 0 ? "; " : "",
                 was->backend);
}

static void explain(const struct fp8r_table *after_table, struct fp8r_diff_range *range, int64_t from, int64_t to)
{
    const struct fp8r_segment *before = range->before, *after = range->after;
    if (range->change == FP8R_CHANGE_NEW || range->change == FP8R_CHANGE_GONE)
        return;
    if (range->change == FP8R_CHANGE_BORDER)
        snprintf(range->why, sizeof range->why, "the border moved from behind M=%lld to behind M=%lld", (long long)from,
                 (long long)to);
    else if (range->change != FP8R_CHANGE_NONE)
        snprintf(range->why, sizeof range->why, "%s", verdicts_in_words(before, after));
    else if (before->is_clear != after->is_clear)
        snprintf(range->why, sizeof range->why, "%s", after->is_clear ? "now clear" : "no longer clear");
    add_revision(after_table, before, range);
}

/* ---- Ranges ---- */

struct pair {
    const struct fp8r_table *before, *after; /* tables */
    const struct fp8r_entry *old, *new;      /* one family's entries; one may be NULL */
    struct fp8r_table_diff *diff;
};

static void classify(const struct pair *pair, struct fp8r_diff_range *range)
{
    const struct fp8r_segment *before = range->before, *after = range->after;
    int64_t from = 0, to = 0;
    if (!before || !after)
        range->change = before ? FP8R_CHANGE_GONE : FP8R_CHANGE_NEW;
    else if (same_choice(before, after))
        range->change = FP8R_CHANGE_NONE;
    else if (is_moved(pair->old, pair->new, range, &from, &to))
        range->change = FP8R_CHANGE_BORDER;
    else
        range->change = strcmp(before->backend, after->backend) == 0 ? FP8R_CHANGE_CONFIG : FP8R_CHANGE_BACKEND;
    int64_t low = from < to ? from : to, high = from < to ? to : from;
    bool is_near = range->change == FP8R_CHANGE_BORDER && (double)high < FP8R_DIFF_BORDER_FACTOR * (double)low;
    range->is_contradiction = before && after && !same_choice(before, after) && before->is_clear && after->is_clear &&
                              !is_near;
    explain(pair->after, range, from, to);
}

static void count_range(struct fp8r_table_diff *diff, const struct fp8r_diff_range *range)
{
    bool is_changed = range->change != FP8R_CHANGE_NONE;
    diff->changes[range->change]++;
    diff->contradictions += range->is_contradiction;
    if (!range->before || !range->after)
        return;
    double length = log2(((double)range->m_last + 1) / (double)range->m_first);
    diff->length += length;
    diff->length_changed += is_changed ? length : 0;
    for (int i = 0; i < 63; i++) {
        int64_t m = (int64_t)1 << i;
        if (m < range->m_first || m > range->m_last)
            continue;
        diff->points++;
        diff->points_changed += is_changed;
    }
}

static int add_range(const struct pair *pair, struct fp8r_diff_range *range, struct fp8r_tool_error *error)
{
    struct fp8r_table_diff *diff = pair->diff;
    if (diff->count == diff->capacity) {
        size_t capacity = diff->capacity ? 2 * diff->capacity : 64;
        struct fp8r_diff_range *grown = realloc(diff->ranges, capacity * sizeof *grown);
        if (!grown)
            return fp8r_tool_error_memory(error, "the difference of tables");
        diff->ranges = grown;
        diff->capacity = capacity;
    }
    range->entry = pair->old ? pair->old : pair->new;
    classify(pair, range);
    count_range(diff, range);
    diff->ranges[diff->count++] = *range;
    return FP8R_EXIT_GOOD;
}

/* The first segment that ends at m or behind it; NULL where there is none. */
static const struct fp8r_segment *segment_from(const struct fp8r_entry *entry, int64_t m)
{
    for (int i = 0; entry && i < entry->segment_count; i++)
        if (entry->segments[i].m_last >= m)
            return &entry->segments[i];
    return NULL;
}

/* Cuts the range that begins at *start where the segment begins or ends. True where it lies inside. */
static bool cut(const struct fp8r_segment *segment, int64_t start, int64_t *last)
{
    if (!segment)
        return false;
    bool is_inside = segment->m_first <= start;
    int64_t end = is_inside ? segment->m_last : segment->m_first - 1;
    *last = end < *last ? end : *last;
    return is_inside;
}

static int compare_family(const struct pair *pair, struct fp8r_tool_error *error)
{
    int code = FP8R_EXIT_GOOD;
    for (int64_t from = 1, last = 0; code == FP8R_EXIT_GOOD && last < INT64_MAX; from = last + 1) {
        const struct fp8r_segment *old = segment_from(pair->old, from), *new = segment_from(pair->new, from);
        if (!old && !new)
            break;
        int64_t start = !new || (old && old->m_first < new->m_first) ? old->m_first : new->m_first;
        struct fp8r_diff_range range = {.m_first = start > from ? start : from};
        last = INT64_MAX;
        if (cut(old, range.m_first, &last))
            range.before = old;
        if (cut(new, range.m_first, &last))
            range.after = new;
        range.m_last = last;
        code = add_range(pair, &range, error);
        if (last == INT64_MAX)
            break;
    }
    return code;
}

int fp8r_table_compare(const struct fp8r_table *before, const struct fp8r_table *after, struct fp8r_table_diff *diff,
                       struct fp8r_tool_error *error)
{
    int code = FP8R_EXIT_GOOD;
    *diff = (struct fp8r_table_diff){0};
    for (size_t i = 0, j = 0; code == FP8R_EXIT_GOOD && (i < before->count || j < after->count);) {
        int order = i == before->count  ? 1
                    : j == after->count ? -1
                                        : fp8r_key_compare(&before->entries[i].key, &after->entries[j].key);
        struct pair pair = {.before = before,
                            .after = after,
                            .old = order <= 0 ? &before->entries[i] : NULL,
                            .new = order >= 0 ? &after->entries[j] : NULL,
                            .diff = diff};
        code = compare_family(&pair, error);
        i += order <= 0;
        j += order >= 0;
    }
    if (code != FP8R_EXIT_GOOD)
        fp8r_table_diff_fini(diff);
    return code;
}
