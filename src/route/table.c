/* Tables of measured routes: lookup, neighbours and merging. Knows keys and their order, nothing of files.
 * SPDX-License-Identifier: Apache-2.0 */
#include "route/table.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "problem/grammar.h"

static void entry_fini(struct fp8r_entry *entry)
{
    free(entry->segments);
    *entry = (struct fp8r_entry){0};
}

void fp8r_table_fini(struct fp8r_table *table)
{
    for (size_t i = 0; i < table->count; i++)
        entry_fini(&table->entries[i]);
    for (int i = 0; i < table->file_count; i++)
        free(table->files[i]);
    free(table->entries);
    free(table->files);
    *table = (struct fp8r_table){0};
}

fp8r_status fp8r_entry_family(const struct fp8r_entry *entry, char text[FP8R_FAMILY_BYTES])
{
    return fp8r_family_format(&entry->key, text, FP8R_FAMILY_BYTES);
}

/* Index of the first entry that is not below the key. */
static size_t lower_bound(const struct fp8r_table *table, const struct fp8r_key *key)
{
    size_t low = 0, high = table->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (fp8r_key_compare(&table->entries[middle].key, key) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

const struct fp8r_entry *fp8r_table_find(const struct fp8r_table *table, const struct fp8r_key *key)
{
    size_t at = lower_bound(table, key);
    return at < table->count && fp8r_key_equal(&table->entries[at].key, key) ? &table->entries[at] : NULL;
}

/* In what a product's kin may differ from it, dearest last: the promise that weights are static, either way; no bias; no
 * quantising, which gives every row a scale. */
enum { OTHER_PROMISE = 1, NO_BIAS = 2, NO_QUANTISING = 4, KIN_MASKS = 8 };

/* False where the product has not got what this kin would do without. */
static bool kin_of(const struct fp8r_key *key, unsigned mask, struct fp8r_key *kin)
{
    const bool is_half = key->dtype_a == FP8R_DTYPE_BF16 || key->dtype_a == FP8R_DTYPE_FP16;
    *kin = *key;
    if (mask & OTHER_PROMISE)
        kin->weights_static = !key->weights_static;
    if (mask & NO_BIAS)
        kin->dtype_bias = FP8R_DTYPE_NONE;
    if (mask & NO_QUANTISING) {
        kin->dtype_a = FP8R_DTYPE_E4M3;
        kin->scale_a = FP8R_SCALE_ROW;
    }
    return (!(mask & NO_BIAS) || key->dtype_bias != FP8R_DTYPE_NONE) && (!(mask & NO_QUANTISING) || is_half);
}

const struct fp8r_entry *fp8r_table_find_kin(const struct fp8r_table *table, const struct fp8r_key *key)
{
    const struct fp8r_entry *entry = fp8r_table_find(table, key);
    struct fp8r_key kin;
    for (unsigned mask = 1; !entry && mask < KIN_MASKS; mask++)
        if (kin_of(key, mask, &kin))
            entry = fp8r_table_find(table, &kin);
    return entry;
}

const struct fp8r_segment *fp8r_entry_segment(const struct fp8r_entry *entry, int64_t m)
{
    int low = 0, high = entry->segment_count;
    while (low < high) {
        int middle = low + (high - low) / 2;
        if (entry->segments[middle].m_last < m)
            low = middle + 1;
        else
            high = middle;
    }
    return low < entry->segment_count && entry->segments[low].m_first <= m ? &entry->segments[low] : NULL;
}

static int64_t *axis_extent(struct fp8r_key *key, enum fp8r_axis axis)
{
    return axis == FP8R_AXIS_N ? &key->n : &key->k;
}

/* Does the entry's key equal `key` in all but the axis? Then its extent there. */
static bool differs_in_axis(const struct fp8r_entry *entry, const struct fp8r_key *key, enum fp8r_axis axis,
                            int64_t *extent)
{
    struct fp8r_key same = entry->key;
    *extent = *axis_extent(&same, axis);
    struct fp8r_key wanted = *key;
    *axis_extent(&same, axis) = *axis_extent(&wanted, axis);
    return fp8r_key_equal(&same, &wanted) && *extent != *axis_extent(&wanted, axis);
}

/* The order of keys puts all candidates into one run that starts at the smallest extent allowed. */
bool fp8r_table_neighbours(const struct fp8r_table *table, const struct fp8r_key *key, enum fp8r_axis axis,
                           const struct fp8r_entry **below, const struct fp8r_entry **above)
{
    struct fp8r_key first = *key, last = *key;
    int64_t at = *axis_extent(&first, axis);
    int64_t lowest = at - at / 3;                                       /* 1.5 * lowest >= at, in whole numbers */
    int64_t highest = at > INT64_MAX - at / 2 ? INT64_MAX : at + at / 2; /* highest <= 1.5 * at */
    const struct fp8r_entry *found_below = NULL, *found_above = NULL;
    *axis_extent(&first, axis) = lowest;
    *axis_extent(&last, axis) = highest;
    if (axis == FP8R_AXIS_N) /* K comes after N in the order */
        first.k = 0;
    first.batch = 0;
    for (size_t i = lower_bound(table, &first); i < table->count && !found_above; i++) {
        const struct fp8r_entry *entry = &table->entries[i];
        int64_t extent;
        if (fp8r_key_compare(&entry->key, &last) > 0)
            break;
        if (differs_in_axis(entry, key, axis, &extent))
            *(extent < at ? &found_below : &found_above) = entry;
    }
    if (!found_below || !found_above)
        return false;
    *below = found_below;
    *above = found_above;
    return true;
}

const struct fp8r_entry *fp8r_entry_preferred(const struct fp8r_entry *earlier, const struct fp8r_entry *later)
{
    return earlier->is_quick && !later->is_quick ? later : earlier;
}

/* Both lists are sorted; the result is written to `entries`, which has room for all. Losers are freed. */
static size_t merge_entries(struct fp8r_table *into, struct fp8r_table *from, struct fp8r_entry *entries)
{
    size_t i = 0, j = 0, count = 0;
    for (size_t k = 0; k < from->count; k++)
        from->entries[k].file += into->file_count;
    while (i < into->count && j < from->count) {
        struct fp8r_entry *earlier = &into->entries[i], *later = &from->entries[j];
        int order = fp8r_key_compare(&earlier->key, &later->key);
        if (order == 0) {
            const bool is_earlier = fp8r_entry_preferred(earlier, later) == earlier;
            entries[count++] = is_earlier ? *earlier : *later;
            entry_fini(is_earlier ? later : earlier);
        } else {
            entries[count++] = order < 0 ? *earlier : *later;
        }
        i += order <= 0;
        j += order >= 0;
    }
    for (; i < into->count; i++)
        entries[count++] = into->entries[i];
    for (; j < from->count; j++)
        entries[count++] = from->entries[j];
    return count;
}

bool fp8r_table_merge(struct fp8r_table *into, struct fp8r_table *from)
{
    if (from->count > SIZE_MAX / sizeof *into->entries - into->count || from->file_count > INT_MAX - into->file_count)
        return false;
    size_t room = into->count + from->count;
    int file_count = into->file_count + from->file_count;
    struct fp8r_entry *entries = malloc((room ? room : 1) * sizeof *entries);
    char **files = malloc((file_count ? (size_t)file_count : 1) * sizeof *files);
    if (!entries || !files) {
        free(entries);
        free(files);
        return false;
    }
    for (int i = 0; i < file_count; i++)
        files[i] = i < into->file_count ? into->files[i] : from->files[i - into->file_count];
    size_t count = merge_entries(into, from, entries);
    free(into->entries);
    free(into->files);
    free(from->entries);
    free(from->files);
    *into = (struct fp8r_table){.entries = entries, .count = count, .files = files, .file_count = file_count};
    *from = (struct fp8r_table){0};
    return true;
}
