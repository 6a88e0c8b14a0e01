/* Plans by family. A known family costs a hash and a look; a new one is planned under the cache's lock.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "api/plan.h"
#include "base/sizes.h"
#include "base/status.h"
#include "problem/key.h"

_Static_assert(sizeof(fp8r_problem) % 8 == 0, "problems are hashed by words");
_Static_assert(sizeof(fp8r_problem) == 4 * 8 + 6 * 32 + 8 * 4, "problems are hashed whole: no padding");

enum { FIRST_PLANNED_M = 1024 };

/* A bit of the key's flags that no problem has: the family's plan for streams that are capturing. */
static const uint32_t for_capture = 1u << 31;

/* The cache that this thread plans for: a backend that asks it for a product meanwhile would wait for itself. */
static _Thread_local const struct fp8r_cache *planning;

/* What may differ between calls that share a plan is taken out. Whether a batch stride is 0 stays in. */
static void family_key(const fp8r_problem *problem, bool is_capturing, fp8r_problem *key)
{
    *key = *problem;
    key->m = 0;
    key->a.batch_stride = problem->a.batch_stride != 0;
    key->out.batch_stride = problem->out.batch_stride != 0;
    key->scale_a.batch_stride = problem->scale_a.batch_stride != 0;
    key->flags |= is_capturing ? for_capture : 0;
}

/* The slot that holds the key, or the first empty one of its chain; families stay below the slots, so one is found. */
static struct fp8r_family *_Atomic *find_slot(const struct fp8r_cache *cache, const fp8r_problem *key)
{
    uint64_t at = fp8r_hash_words(key, sizeof *key);
    for (;; at++) {
        struct fp8r_family *_Atomic *slot = (struct fp8r_family *_Atomic *)&cache->slots[at % FP8R_CACHE_SLOTS];
        struct fp8r_family *family = atomic_load_explicit(slot, memory_order_acquire);
        if (!family || memcmp(&family->key, key, sizeof *key) == 0)
            return slot;
    }
}

static int64_t planned_m(int64_t m)
{
    int64_t planned = FIRST_PLANNED_M;
    while (planned < m)
        planned = planned > INT64_MAX / 2 ? INT64_MAX : 2 * planned;
    return planned;
}

/* Plans for enough rows; where no plan can be made for more than asked (sizes overflow), for just these. */
static fp8r_status build(struct fp8r_context *context, const fp8r_problem *problem, bool is_capturing,
                         struct fp8r_plan **plan)
{
    fp8r_problem wider = *problem;
    wider.m = planned_m(problem->m);
    if (wider.m > problem->m && fp8r_plan_build(context, &wider, -1, FP8R_CONFIG_ANY, is_capturing, plan) == FP8R_OK)
        return FP8R_OK;
    return fp8r_plan_build(context, problem, -1, FP8R_CONFIG_ANY, is_capturing, plan);
}

/* With the lock held: publishes a plan for the family, or fails. *owned: the cache is full, the caller frees it. */
static fp8r_status plan_family(struct fp8r_context *context, const fp8r_problem *problem, const fp8r_problem *key,
                               struct fp8r_plan **plan, bool *owned)
{
    struct fp8r_cache *cache = &context->cache;
    struct fp8r_family *_Atomic *slot = find_slot(cache, key);
    struct fp8r_family *family = atomic_load(slot);
    struct fp8r_plan *old = family ? atomic_load(&family->plan) : NULL;
    *owned = false;
    if (old && old->problem.m >= problem->m) { /* another thread was first */
        *plan = old;
        return FP8R_OK;
    }
    FP8R_TRY(build(context, problem, (key->flags & for_capture) != 0, plan));
    if (!family && cache->families == FP8R_CACHE_FAMILIES) {
        *owned = true;
        return FP8R_OK;
    }
    struct fp8r_family *made = family ? NULL : calloc(1, sizeof *made);
    if (!family && !made) {
        fp8r_plan_free(*plan);
        return fp8r_fail_memory("a cached plan");
    }
    if (family) { /* published before the old one is retired: a child of fork may find any step as the last */
        atomic_store_explicit(&family->plan, *plan, memory_order_release);
        if (old) {
            old->next = cache->retired;
            cache->retired = old;
        }
        return FP8R_OK;
    }
    made->key = *key;
    atomic_store(&made->plan, *plan);
    cache->families++;
    atomic_store_explicit(slot, made, memory_order_release);
    return FP8R_OK;
}

static struct fp8r_plan *look(const struct fp8r_cache *cache, const fp8r_problem *key, int64_t m)
{
    struct fp8r_family *family = atomic_load_explicit(find_slot(cache, key), memory_order_acquire);
    struct fp8r_plan *plan = family ? atomic_load_explicit(&family->plan, memory_order_acquire) : NULL;
    return plan && plan->problem.m >= m ? plan : NULL;
}

struct fp8r_plan *fp8r_cache_look(const struct fp8r_context *context, const fp8r_problem *problem, bool is_capturing)
{
    fp8r_problem key;
    family_key(problem, is_capturing, &key);
    return look(&context->cache, &key, problem->m);
}

fp8r_status fp8r_cache_find(struct fp8r_context *context, const fp8r_problem *problem, bool is_capturing,
                            struct fp8r_plan **plan, bool *owned)
{
    fp8r_problem key;
    family_key(problem, is_capturing, &key);
    *owned = false;
    *plan = look(&context->cache, &key, problem->m);
    if (*plan)
        return FP8R_OK;
    const struct fp8r_cache *outer = planning;
    if (outer == &context->cache)
        return fp8r_fail(FP8R_ERROR_INVALID_ARGUMENT,
                         "a backend asks for a product while it is asked whether and how it takes one");
    fp8r_lock_take(&context->cache.lock);
    planning = &context->cache;
    fp8r_status status = plan_family(context, problem, &key, plan, owned);
    planning = outer;
    fp8r_lock_give(&context->cache.lock);
    return status;
}

void fp8r_cache_init(struct fp8r_cache *cache)
{
    fp8r_lock_init(&cache->lock);
}

void fp8r_cache_fini(struct fp8r_cache *cache)
{
    for (int i = 0; i < FP8R_CACHE_SLOTS; i++) {
        struct fp8r_family *family = atomic_load(&cache->slots[i]);
        if (family)
            fp8r_plan_free(atomic_load(&family->plan));
        free(family);
    }
    while (cache->retired) {
        struct fp8r_plan *plan = cache->retired;
        cache->retired = plan->next;
        fp8r_plan_free(plan);
    }
    fp8r_lock_fini(&cache->lock);
}
