/* Longest first to the least loaded: within 4/3 of the best possible share.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tune/deal.h"

#include <math.h>
#include <stdlib.h>

/* A problem's length, roughly: its bytes of weights at 10 a nanosecond, or its operations at 100. */
static double length_of(const struct fp8r_tune_family *family, int64_t m)
{
    double weights = (double)family->key.batch * (double)family->key.n * (double)family->key.k;
    return fmax(weights / 10, 2 * weights * (double)m / 100);
}

/* Everything that is dealt: problem i of all, by length. */
struct dealt {
    double length;
    size_t number;
};

static int compare_dealt(const void *a, const void *b)
{
    const struct dealt *one = a, *other = b;
    if (one->length != other->length)
        return one->length < other->length ? 1 : -1;
    return (one->number > other->number) - (one->number < other->number);
}

size_t deal_count(const struct fp8r_tune_families *families)
{
    size_t count = 0;
    for (size_t i = 0; i < families->count; i++)
        count += families->items[i].m_count;
    return count;
}

bool deal(const struct fp8r_tune_families *families, int shards, int *shard_of)
{
    size_t count = deal_count(families), at = 0;
    struct dealt *dealt = calloc(count + 1, sizeof *dealt);
    double *load = calloc((size_t)shards, sizeof *load);
    for (size_t i = 0; dealt && i < families->count; i++)
        for (size_t j = 0; j < families->items[i].m_count; j++, at++)
            dealt[at] = (struct dealt){length_of(&families->items[i], families->items[i].ms[j]), at};
    if (dealt && load) {
        qsort(dealt, count, sizeof *dealt, compare_dealt);
        for (size_t i = 0; i < count; i++) {
            int least = 0;
            for (int j = 1; j < shards; j++)
                least = load[j] < load[least] ? j : least;
            load[least] += dealt[i].length;
            shard_of[dealt[i].number] = least + 1;
        }
    }
    bool done = dealt && load;
    free(dealt);
    free(load);
    return done;
}
