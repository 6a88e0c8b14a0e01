/* Open addressing. SPDX-License-Identifier: Apache-2.0 */
#include "tune/pair_set.h"

#include <stdlib.h>

#include "problem/key.h"

/* The pair's slot, or the empty one where it would go. There is always an empty one. */
static struct fp8r_pair *find(const struct fp8r_pair_set *set, const struct fp8r_pair *pair)
{
    for (uint64_t at = fp8r_hash_words(pair, sizeof *pair);; at++) {
        struct fp8r_pair *slot = &set->slots[at & (set->slot_count - 1)];
        if ((slot->n == pair->n && slot->k == pair->k) || (slot->n == 0 && slot->k == 0)) return slot;
    }
}

static bool grow(struct fp8r_pair_set *set)
{
    struct fp8r_pair_set grown = {.slot_count = set->slot_count ? 2 * set->slot_count : 64, .count = set->count};
    grown.slots = calloc(grown.slot_count, sizeof *grown.slots);
    if (!grown.slots) return false;
    for (size_t i = 0; i < set->slot_count; i++)
        if (set->slots[i].n != 0 || set->slots[i].k != 0) *find(&grown, &set->slots[i]) = set->slots[i];
    free(set->slots);
    *set = grown;
    return true;
}

bool fp8r_pair_set_has(const struct fp8r_pair_set *set, int64_t n, int64_t k)
{
    const struct fp8r_pair pair = {n, k};
    if (set->count == 0) return false;
    const struct fp8r_pair *slot = find(set, &pair);
    return slot->n == n && slot->k == k;
}

bool fp8r_pair_set_add(struct fp8r_pair_set *set, int64_t n, int64_t k)
{
    const struct fp8r_pair pair = {n, k};
    if (fp8r_pair_set_has(set, n, k)) return true;
    if (2 * (set->count + 1) > set->slot_count && !grow(set)) return false;
    *find(set, &pair) = pair;
    set->count++;
    return true;
}

void fp8r_pair_set_fini(struct fp8r_pair_set *set)
{
    free(set->slots);
    *set = (struct fp8r_pair_set){0};
}
