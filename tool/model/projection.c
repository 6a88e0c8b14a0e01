/* Growth and release of the projection list. Knows nothing of models.
 * SPDX-License-Identifier: Apache-2.0 */
#include "projection.h"

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

void fp8r_projection_list_fini(struct fp8r_projection_list *list)
{
    fp8r_projection_list_truncate(list, 0);
    free(list->items);
    *list = (struct fp8r_projection_list){0};
}
