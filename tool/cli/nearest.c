/* The name that a mistyped one probably meant. Knows nothing of options or verbs.
 * SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "cli/options.h"

enum { NAME_MAX_BYTES = 32 };

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Edit distance with one row of memory; a swap of two letters counts two. Longer names are far from
 * everything. */
static size_t distance(const char *a, const char *b)
{
    size_t row[NAME_MAX_BYTES + 1], length = strlen(b);
    if (length > NAME_MAX_BYTES || strlen(a) > NAME_MAX_BYTES) return NAME_MAX_BYTES;
    for (size_t j = 0; j <= length; j++)
        row[j] = j;
    for (size_t i = 0; a[i]; i++) {
        size_t diagonal = row[0];
        row[0] = i + 1;
        for (size_t j = 0; j < length; j++) {
            size_t above = row[j + 1];
            row[j + 1] = least(diagonal + (a[i] != b[j]), least(above, row[j]) + 1);
            diagonal = above;
        }
    }
    return row[length];
}

/* What starts a name, or is a third of it away, is near. */
const char *fp8r_nearest_name(const char *text, const char *(*name_at)(const void *names, size_t index),
                              const void *names, size_t count)
{
    const char *nearest = NULL;
    size_t best = NAME_MAX_BYTES, length = strlen(text);
    for (size_t i = 0; i < count; i++) {
        const char *name = name_at(names, i);
        size_t edits = length >= 2 && strncmp(text, name, length) == 0 ? 0 : distance(text, name);
        if (edits < best) {
            best = edits;
            nearest = name;
        }
    }
    return nearest && best <= (strlen(nearest) + 2) / 3 ? nearest : NULL;
}
