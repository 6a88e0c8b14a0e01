/* Tables: lookup at every border of a segment, neighbours at the borders of the factor 1.5, merging, and that no two
 * families share an entry. SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "route_sample.h"

static struct fp8r_key family(const char *text)
{
    struct fp8r_key key;
    assert_int_equal(fp8r_family_parse(text, FP8R_MODE_EAGER, &key), FP8R_OK);
    return key;
}

/* A table of one segment a family; the backend's name tells the tables apart. */
static struct fp8r_table table_of(const char *const *families, const char *backend, bool is_quick)
{
    static char text[4096];
    struct fp8r_route_file file;
    int count = 0, used = snprintf(text, sizeof text, SAMPLE_HEADER "protocol %s mode=eager operands=cold\n",
                                   is_quick ? "quick" : "full");
    for (; families[count]; count++)
        used += snprintf(text + used, sizeof text - (size_t)used,
                         "entry %s\nm=1..8 backend=%s config=c rev=r median_us=1 verdict=clear\n", families[count],
                         backend);
    (void)snprintf(text + used, sizeof text - (size_t)used, "end entries=%d\n", count);
    assert_int_equal(fp8r_route_file_parse(backend, text, strlen(text), &file), FP8R_OK);
    return file.table;
}

static const char *backend_of(const struct fp8r_table *table, const char *text)
{
    struct fp8r_key key = family(text);
    const struct fp8r_entry *entry = fp8r_table_find(table, &key);
    return entry ? entry->segments[0].backend : "none";
}

static void segments_are_found_at_their_borders(void **state)
{
    (void)state;
    struct fp8r_segment segments[] = {{.m_first = 2, .m_last = 4}, {.m_first = 5, .m_last = 5},
                                      {.m_first = 8, .m_last = 16}, {.m_first = 17, .m_last = INT64_MAX - 1}};
    const struct fp8r_entry entry = {.segments = segments, .segment_count = 4};
    const struct {
        int64_t m;
        int expected; /* -1: none */
    } cases[] = {{INT64_MIN, -1}, {0, -1}, {1, -1}, {2, 0},  {3, 0},  {4, 0},  {5, 1},         {6, -1},
                 {7, -1},         {8, 2},  {9, 2},  {16, 2}, {17, 3}, {18, 3}, {INT64_MAX - 1, 3}, {INT64_MAX, -1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct fp8r_segment *expected = cases[i].expected < 0 ? NULL : &segments[cases[i].expected];
        assert_ptr_equal(fp8r_entry_segment(&entry, cases[i].m), expected);
    }
    const struct fp8r_entry empty = {0};
    assert_null(fp8r_entry_segment(&empty, 1));
}

static void empty_table_has_no_answer(void **state)
{
    (void)state;
    struct fp8r_table table = {0};
    struct fp8r_key key = family("Mx64x64");
    const struct fp8r_entry *below = NULL, *above = NULL;
    assert_null(fp8r_table_find(&table, &key));
    assert_false(fp8r_table_neighbours(&table, &key, FP8R_AXIS_N, &below, &above));
    assert_false(fp8r_table_neighbours(&table, &key, FP8R_AXIS_K, &below, &above));
    fp8r_table_fini(&table);
}

/* Everything a family's text can say, one change at a time, and the mode: no two find each other's entry. */
static void every_difference_is_another_entry(void **state)
{
    (void)state;
    static const char *const families[] = {
        "Mx4096x1024",           "2*Mx4096x1024",         "Mx4112x1024",          "Mx4096x1040",
        "Mx4096x1024:a=e5m2",    "Mx4096x1024:a=bf16",    "Mx4096x1024:a=fp16",   "Mx4096x1024:fp16",
        "Mx4096x1024:fp32",      "Mx4096x1024:bias",      "Mx4096x1024:bias=fp16", "Mx4096x1024:bias=fp32",
        "Mx4096x1024:sa=none",   "Mx4096x1024:sa=tensor", "Mx4096x1024:sb=tensor", "Mx4096x1024:sb=none",
        "Mx4096x1024:tensor",    "Mx4096x1024:ta",        "Mx4096x1024:tb",       "Mx4096x1024:to",
        "Mx4096x1024:lda=pad",   "Mx4096x1024:ldb=pad",   "Mx4096x1024:ldo=pad",  "Mx4096x1024:ta:lda=pad",
        "Mx4096x1024:ia=any",    "Mx4096x1024:ib=any",    "Mx4096x1024:io=any",   "Mx4096x1024:align=8",
        "Mx4096x1024:align=4",   "Mx4096x1024:precise",   "Mx4096x1024:invariant", "Mx4096x1024:static",
        "2*Mx4096x1024:sa=batch", "2*Mx4096x1024:sb=batch", NULL};
    struct fp8r_table table = table_of(families, "cpu", false);
    size_t count = sizeof families / sizeof *families - 1;
    assert_int_equal(table.count, count);
    for (size_t i = 0; i < count; i++) {
        struct fp8r_key key = family(families[i]);
        const struct fp8r_entry *entry = fp8r_table_find(&table, &key);
        assert_non_null(entry);
        assert_true(fp8r_key_equal(&entry->key, &key));
        key.mode = FP8R_MODE_GRAPH;
        assert_null(fp8r_table_find(&table, &key));
    }
    fp8r_table_fini(&table);
}

/* The same by bytes: whatever changes in the struct, the entry is not found. */
static void every_byte_of_the_key_counts(void **state)
{
    (void)state;
    struct fp8r_table table = table_of((const char *const[]){"Mx4096x1024", NULL}, "cpu", false);
    for (size_t i = 0; i < sizeof(struct fp8r_key); i++) {
        struct fp8r_key key = family("Mx4096x1024");
        ((unsigned char *)&key)[i] ^= 1;
        assert_null(fp8r_table_find(&table, &key));
    }
    fp8r_table_fini(&table);
}

static void expect_neighbours(const struct fp8r_table *table, const char *text, enum fp8r_axis axis, int64_t below,
                              int64_t above)
{
    struct fp8r_key key = family(text);
    const struct fp8r_entry *low = NULL, *high = NULL;
    bool found = fp8r_table_neighbours(table, &key, axis, &low, &high);
    if (below == 0) {
        assert_false(found);
        return;
    }
    assert_true(found);
    assert_int_equal(axis == FP8R_AXIS_N ? low->key.n : low->key.k, below);
    assert_int_equal(axis == FP8R_AXIS_N ? high->key.n : high->key.k, above);
    key.n = low->key.n;
    key.k = low->key.k;
    assert_true(fp8r_key_equal(&key, &low->key));
    key.n = high->key.n;
    key.k = high->key.k;
    assert_true(fp8r_key_equal(&key, &high->key));
}

static void neighbours_by_n(void **state)
{
    (void)state;
    static const char *const families[] = {
        "Mx1024x512", "Mx2048x512",  "Mx3072x512",       "Mx4608x512",       "Mx1536x512", "Mx2048x528",
        "Mx2560x528", "2*Mx2112x512", "Mx2304x512:fp16", "Mx2688x512:fp16", NULL};
    struct fp8r_table table = table_of(families, "cpu", false);
    expect_neighbours(&table, "Mx2560x512", FP8R_AXIS_N, 2048, 3072);
    expect_neighbours(&table, "Mx2048x512", FP8R_AXIS_N, 1536, 3072); /* itself does not count */
    expect_neighbours(&table, "Mx3072x512", FP8R_AXIS_N, 2048, 4608); /* exactly 1.5 on both sides */
    expect_neighbours(&table, "Mx3088x512", FP8R_AXIS_N, 3072, 4608);
    expect_neighbours(&table, "Mx3056x512", FP8R_AXIS_N, 2048, 3072);
    expect_neighbours(&table, "Mx1280x512", FP8R_AXIS_N, 1024, 1536);
    expect_neighbours(&table, "Mx1024x512", FP8R_AXIS_N, 0, 0); /* nothing below */
    expect_neighbours(&table, "Mx4624x512", FP8R_AXIS_N, 0, 0); /* nothing above */
    expect_neighbours(&table, "Mx2496x512:fp16", FP8R_AXIS_N, 2304, 2688);
    expect_neighbours(&table, "Mx2496x512:fp32", FP8R_AXIS_N, 0, 0);
    expect_neighbours(&table, "2*Mx2560x512", FP8R_AXIS_N, 0, 0);
    expect_neighbours(&table, "Mx2304x528", FP8R_AXIS_N, 2048, 2560);
    expect_neighbours(&table, "Mx2304x520", FP8R_AXIS_N, 0, 0);
    fp8r_table_fini(&table);
}

static void neighbours_by_k(void **state)
{
    (void)state;
    static const char *const families[] = {"Mx512x1024", "Mx512x1536", "Mx512x2304", "2*Mx512x1280", "Mx528x1280", NULL};
    struct fp8r_table table = table_of(families, "cpu", false);
    expect_neighbours(&table, "Mx512x1536", FP8R_AXIS_K, 1024, 2304);
    expect_neighbours(&table, "Mx512x1552", FP8R_AXIS_K, 1536, 2304);
    expect_neighbours(&table, "Mx512x1520", FP8R_AXIS_K, 1024, 1536);
    expect_neighbours(&table, "Mx512x1024", FP8R_AXIS_K, 0, 0);
    expect_neighbours(&table, "Mx512x2320", FP8R_AXIS_K, 0, 0);
    expect_neighbours(&table, "Mx520x1152", FP8R_AXIS_K, 0, 0);
    fp8r_table_fini(&table);
}

/* One element beyond the factor on either side; sizes where 1.5 times the extent is no whole number. */
static void neighbours_end_at_the_factor(void **state)
{
    (void)state;
    struct fp8r_table table = table_of((const char *const[]){"Mx48x64", "Mx96x64", NULL}, "cpu", false);
    const struct fp8r_entry *below, *above;
    struct fp8r_key key = family("Mx64x64");
    const struct {
        int64_t n;
        bool found;
    } cases[] = {{63, false}, {64, true}, {65, true}, {71, true}, {72, true}, {73, false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        key.n = cases[i].n;
        assert_int_equal(fp8r_table_neighbours(&table, &key, FP8R_AXIS_N, &below, &above), cases[i].found);
    }
    fp8r_table_fini(&table);
    key = family("Mx64x64");
    table = table_of((const char *const[]){"Mx64x64", NULL}, "cpu", false);
    key.n = INT64_MAX; /* the factor must not overflow */
    assert_false(fp8r_table_neighbours(&table, &key, FP8R_AXIS_N, &below, &above));
    fp8r_table_fini(&table);
}

static void merged(const char *const *earlier, bool earlier_quick, const char *const *later, bool later_quick,
                   struct fp8r_table *into)
{
    struct fp8r_table from = table_of(later, "later", later_quick);
    *into = table_of(earlier, "earlier", earlier_quick);
    assert_true(fp8r_table_merge(into, &from));
    assert_int_equal(from.count, 0);
    assert_null(from.entries);
    assert_null(from.files);
    for (size_t i = 1; i < into->count; i++)
        assert_true(fp8r_key_compare(&into->entries[i - 1].key, &into->entries[i].key) < 0);
    for (size_t i = 0; i < into->count; i++)
        assert_string_equal(into->files[into->entries[i].file], into->entries[i].segments[0].backend);
    fp8r_table_fini(&from);
}

static void merging_prefers_the_earlier_but_not_the_quick(void **state)
{
    (void)state;
    static const char *const one[] = {"Mx64x64", "Mx128x64", NULL}, *const other[] = {"Mx128x64", "Mx32x64", NULL};
    for (int quick = 0; quick < 4; quick++) {
        struct fp8r_table table;
        merged(one, quick & 1, other, quick & 2, &table);
        assert_int_equal(table.count, 3);
        assert_int_equal(table.file_count, 2);
        assert_string_equal(backend_of(&table, "Mx64x64"), "earlier");
        assert_string_equal(backend_of(&table, "Mx32x64"), "later");
        assert_string_equal(backend_of(&table, "Mx128x64"), quick == 1 ? "later" : "earlier");
        assert_string_equal(backend_of(&table, "Mx96x64"), "none");
        fp8r_table_fini(&table);
    }
}

static void merging_with_nothing(void **state)
{
    (void)state;
    static const char *const one[] = {"Mx64x64", NULL}, *const none[] = {NULL};
    struct fp8r_table table, blank = {0}, other = {0};
    merged(one, false, none, false, &table);
    assert_int_equal(table.count, 1);
    assert_true(fp8r_table_merge(&blank, &table));
    assert_string_equal(backend_of(&blank, "Mx64x64"), "earlier");
    assert_int_equal(blank.file_count, 2);
    assert_true(fp8r_table_merge(&blank, &other));
    assert_int_equal(blank.count, 1);
    fp8r_table_fini(&blank);
    assert_true(fp8r_table_merge(&blank, &other));
    fp8r_table_fini(&blank);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(segments_are_found_at_their_borders),
        cmocka_unit_test(empty_table_has_no_answer),
        cmocka_unit_test(every_difference_is_another_entry),
        cmocka_unit_test(every_byte_of_the_key_counts),
        cmocka_unit_test(neighbours_by_n),
        cmocka_unit_test(neighbours_by_k),
        cmocka_unit_test(neighbours_end_at_the_factor),
        cmocka_unit_test(merging_prefers_the_earlier_but_not_the_quick),
        cmocka_unit_test(merging_with_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
