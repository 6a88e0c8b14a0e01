/* From a number of rows to the tile made for exactly that many, and through the panels. Included by one kernel file a set,
 * which has defined ROWS (at most 14), COLUMNS and packed_rows.
 * SPDX-License-Identifier: Apache-2.0 */
#define CASE(n)                                                                                              \
    case n:                                                                                                  \
        if (n < ROWS) packed_rows(n, count, a, b, sums, ld, first);                                          \
        break;

static void packed_panel(int rows, int64_t count, const void *a, const void *b, float *sums, int64_t ld,
                         bool first)
{
    if (rows == ROWS) {
        packed_rows(ROWS, count, a, b, sums, ld, first);
        return;
    }
    switch (rows) {
        CASE(1)
        CASE(2)
        CASE(3)
        CASE(4)
        CASE(5)
        CASE(6)
        CASE(7)
        CASE(8)
        CASE(9)
        CASE(10)
        CASE(11)
        CASE(12)
        CASE(13)
    }
}
#undef CASE

static void packed(int rows, int64_t count, const void *a, const void *b, int64_t panels, int64_t panel_bytes,
                   float *sums, int64_t ld, bool first)
{
    for (int64_t p = 0; p < panels; p++)
        packed_panel(rows, count, a, (const char *)b + p * panel_bytes, sums + p * COLUMNS, ld, first);
}
