/* Comparing element by element. SPDX-License-Identifier: Apache-2.0 */
#include "tune/bits.h"

#include <math.h>
#include <string.h>

#include "base/convert.h"
#include "base/dtype.h"
#include "measure/area.h"

/* An element as its code, and as a count of values from zero. */
struct element {
    uint32_t code;
    int64_t order;
    double value;
    bool is_poison;
};

static struct element load(const void *data, int64_t at, int32_t dtype)
{
    size_t bytes = (size_t)fp8r_dtype_bytes(dtype);
    uint32_t sign = 1u << (8 * bytes - 1), all = sign | (sign - 1);
    uint8_t raw[4] = {0};
    struct element element = {.value = (double)fp8r_load(data, at, dtype), .is_poison = true};
    memcpy(raw, (const uint8_t *)data + at * (int64_t)bytes, bytes);
    for (size_t i = 0; i < bytes; i++)
        element.is_poison = element.is_poison && raw[i] == FP8R_POISON;
    if (bytes == 4) {
        memcpy(&element.code, raw, sizeof element.code);
    } else {
        uint16_t half;
        memcpy(&half, raw, sizeof half);
        element.code = half;
    }
    element.order = element.code & sign ? -(int64_t)(element.code & (all ^ sign)) : (int64_t)element.code;
    return element;
}

static void note_difference(const struct fp8r_place *place, const struct element *a, const struct element *b,
                            struct bits_difference *difference)
{
    bool has_ulp = !isnan(a->value) && !isnan(b->value);
    int64_t ulp = !has_ulp ? BITS_NO_ULP : a->order > b->order ? a->order - b->order : b->order - a->order;
    if (difference->different++ == 0) {
        difference->first = *place;
        difference->a = a->value;
        difference->b = b->value;
        difference->first_ulp = difference->most_ulp = ulp;
    } else if (!has_ulp || difference->most_ulp == BITS_NO_ULP) {
        difference->most_ulp = BITS_NO_ULP; /* nothing is further off */
    } else {
        difference->most_ulp = ulp > difference->most_ulp ? ulp : difference->most_ulp;
    }
}

void bits_compare(const fp8r_matrix *out, const void *a, const void *b, struct bits_difference *difference)
{
    struct fp8r_place place;
    for (place.batch = 0; place.batch < out->batch; place.batch++)
        for (place.row = 0; place.row < out->rows; place.row++)
            for (place.col = 0; place.col < out->cols; place.col++) {
                int64_t at = place.batch * out->batch_stride + place.row * out->row_stride +
                             place.col * out->col_stride;
                struct element mine = load(a, at, out->dtype), theirs = load(b, at, out->dtype);
                bool unwritten = mine.is_poison || theirs.is_poison;
                bool equal = mine.code == theirs.code || (isnan(mine.value) && isnan(theirs.value));
                difference->compared++;
                if (!equal || unwritten) note_difference(&place, &mine, &theirs, difference);
            }
}
