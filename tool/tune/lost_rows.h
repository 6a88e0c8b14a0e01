/* What a route file held for M that a family's new entry does not reach: the new one replaces the old one whole, so these rows go.
 * Found before the tables are merged, said once the file is written.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_LOST_ROWS_H
#define FP8R_LOST_ROWS_H

#include <stdbool.h>
#include <stddef.h>

#include "route/table.h"

enum { FP8R_LOST_ROWS_BYTES = FP8R_FAMILY_BYTES + 256 };

struct fp8r_lost_rows {
    char (*lines)[FP8R_LOST_ROWS_BYTES]; /* one a family */
    size_t count;
};

/* held: what the file has; made, then rest (may be NULL): as fp8r_route_update_write takes them. Empty where nothing goes. False: no
 * memory, and lost is empty. */
bool fp8r_lost_rows_init(struct fp8r_lost_rows *lost, const struct fp8r_table *held, const struct fp8r_table *made,
                         const struct fp8r_table *rest);
void fp8r_lost_rows_fini(struct fp8r_lost_rows *lost);

#endif
