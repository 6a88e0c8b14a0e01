/* Growth and release of the projection list. Knows nothing of models.
 * SPDX-License-Identifier: Apache-2.0 */
#include "projection.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int list_grow(struct fp8r_projection_list *list, struct fp8r_tool_error *error)
{
    if (list->count < list->capacity) return FP8R_EXIT_GOOD;
    size_t capacity = list->capacity == 0 ? 8 : list->capacity * 2;
    if (capacity > SIZE_MAX / sizeof *list->items)
        return fp8r_tool_error_memory(error, "the projection list");
    struct fp8r_projection *items = realloc(list->items, capacity * sizeof *items);
    if (items == NULL) return fp8r_tool_error_memory(error, "the projection list");
    list->items = items;
    list->capacity = capacity;
    return FP8R_EXIT_GOOD;
}

int fp8r_projection_list_add(struct fp8r_projection_list *list, const struct fp8r_projection *projection,
                             struct fp8r_tool_error *error)
{
    int rc = list_grow(list, error);
    if (rc != FP8R_EXIT_GOOD) return rc;
    size_t name_bytes = strlen(projection->name) + 1;
    char *name = malloc(name_bytes);
    if (name == NULL) return fp8r_tool_error_memory(error, "a projection's name");
    memcpy(name, projection->name, name_bytes);
    list->items[list->count] = *projection;
    list->items[list->count++].name = name;
    return FP8R_EXIT_GOOD;
}

void fp8r_projection_list_truncate(struct fp8r_projection_list *list, size_t count)
{
    while (list->count > count) {
        free((char *)list->items[--list->count].name);
    }
}

/* A product and its place in the list. */
struct placed {
    int64_t n, k, count;
    size_t place;
};

static int shape_order(const void *left, const void *right)
{
    const struct placed *a = left, *b = right;
    if (a->n != b->n) return a->n < b->n ? -1 : 1;
    if (a->k != b->k) return a->k < b->k ? -1 : 1;
    return a->place < b->place ? -1 : a->place > b->place;
}

static int place_order(const void *left, const void *right)
{
    const struct placed *a = left, *b = right;
    return a->place < b->place ? -1 : a->place > b->place;
}

/* The list's products, equal shapes merged into the first, in the list's order; returns how many. */
static size_t products_merge(const struct fp8r_projection_list *list, struct placed *products)
{
    size_t count = 0, distinct = 0;
    for (size_t i = 0; i < list->count; i++) {
        const struct fp8r_projection *item = &list->items[i];
        if (item->is_lookup) continue;
        products[count++] = (struct placed){.n = item->n, .k = item->k, .count = item->count, .place = i};
    }
    qsort(products, count, sizeof *products, shape_order);
    for (size_t i = 0; i < count; i++) {
        struct placed *last = &products[distinct == 0 ? 0 : distinct - 1];
        if (distinct > 0 && last->n == products[i].n && last->k == products[i].k) {
            last->count += products[i].count;
        } else {
            products[distinct++] = products[i];
        }
    }
    qsort(products, distinct, sizeof *products, place_order);
    return distinct;
}

int fp8r_projection_list_families(const struct fp8r_projection_list *list,
                                  struct fp8r_projection_list *families, struct fp8r_tool_error *error)
{
    size_t before = families->count;
    struct placed *products = calloc(list->count + 1, sizeof *products);
    if (products == NULL) return fp8r_tool_error_memory(error, "the families");
    size_t count = products_merge(list, products);
    int rc = FP8R_EXIT_GOOD;
    for (size_t i = 0; i < count && rc == FP8R_EXIT_GOOD; i++) {
        char name[48];
        (void)snprintf(name, sizeof name, "%" PRId64 "x%" PRId64, products[i].n, products[i].k);
        struct fp8r_projection family = list->items[products[i].place];
        family.name = name;
        family.count = products[i].count;
        rc = fp8r_projection_list_add(families, &family, error);
    }
    free(products);
    if (rc != FP8R_EXIT_GOOD) fp8r_projection_list_truncate(families, before);
    return rc;
}

void fp8r_projection_list_fini(struct fp8r_projection_list *list)
{
    fp8r_projection_list_truncate(list, 0);
    free(list->items);
    *list = (struct fp8r_projection_list){0};
}
