/* Merging: in any order the same bytes, twice the same, and what is refused or left out.
 * SPDX-License-Identifier: Apache-2.0 */
#include "route_text.h"

#include "tune/route_merge.h"

enum { MOST = 4 };
static struct fp8r_merge_summary summary;
static struct fp8r_tool_error failure;

struct source {
    const char *head, *body;
};

/* The merged text, or NULL. */
static char *merge(const struct source *const *sources, size_t count)
{
    static const char *const names[MOST] = {"a.routes", "b.routes", "c.routes", "d.routes"};
    struct fp8r_route_file files[MOST], merged;
    char *text = NULL;
    failure = (struct fp8r_tool_error){0};
    for (size_t i = 0; i < count; i++) route_text_parse(sources[i]->head, sources[i]->body, &files[i]);
    if (fp8r_routes_merge(files, names, count, &merged, &summary, &failure) == 0) {
        text = route_text_of(&merged);
        fp8r_route_file_fini(&merged);
    }
    for (size_t i = 0; i < count; i++) fp8r_route_file_fini(&files[i]);
    return text;
}

#define FULL(facts) ROUTE_HEAD("2", facts, "full")

static const struct source a = {FULL("library blas \"openblas 0.3.21\"\nfact name \"x\"\nfact date \"2026-11-28\"\n"),
                                "Mx64x64\n1..8 cpu:a 1 clear\nMx64x128\n1..8 cpu:a 1 tie"};
static const struct source b = {FULL("fact name \"x\"\nfact date \"2026-11-30\"\nfact commit \"c\"\n"),
                                "Mx64x64\n1..16 cpu:b 1 tie\nMx96x64\n1..8 cpu:a 1 tie"};
static const struct source c = {FULL("library blas \"openblas 0.3.30\"\nfact name \"x\"\nfact date \"2026-11-29\"\n"),
                                "Mx64x64\n1..4 cpu:c 1 clear\n5..16 cpu:d 1 tie\nMx64x128\n1..8 cpu:a 1 clear"};
static const struct source quick = {ROUTE_HEAD("2", "fact name \"x\"\n", "quick"),
                                    "Mx64x64\n1..4096 cpu:q 1 clear\nMx512x64\n1..8 cpu:q 1 tie"};

static void order_does_not_matter(void **state)
{
    (void)state;
    const struct source *const orders[][4] = {{&a, &b, &c, &quick}, {&quick, &c, &b, &a}, {&b, &quick, &a, &c},
                                              {&c, &a, &quick, &b}, {&c, &b, &a, &quick}};
    char *first = merge(orders[0], 4);
    assert_non_null(first);
    for (size_t i = 1; i < sizeof orders / sizeof *orders; i++) {
        char *other = merge(orders[i], 4);
        assert_string_equal(first, other);
        free(other);
    }
    /* more rows: c over a; more of them clear: c over b; full over quick */
    assert_non_null(strstr(first, "entry Mx64x64\n  m=1..4 backend=cpu config=c "));
    assert_non_null(strstr(first, "entry Mx64x128\n  m=1..8 backend=cpu config=a rev=1 median_us=10 gain=1.1..1.2 verdict=clear"));
    assert_non_null(strstr(first, "entry Mx96x64\n"));
    assert_non_null(strstr(first, "entry Mx512x64 quick\n")); /* nobody measured it in full */
    assert_non_null(strstr(first, "library blas \"openblas 0.3.30\"\nfact name \"x\"\nfact date \"2026-11-30\"\nfact commit \"c\"\n"));
    assert_non_null(strstr(first, "protocol full "));
    assert_int_equal(summary.contested, 2);
    free(first);
}

/* Parts merged first, in any grouping; the result merged again; one file alone. */
static void merging_again_changes_nothing(void **state)
{
    (void)state;
    const struct source *const all[] = {&a, &b, &c}, *const left[] = {&a, &b}, *const right[] = {&b, &c};
    char *whole = merge(all, 3), *ab = merge(left, 2), *bc = merge(right, 2), *again;
    static const char *const names[] = {"x", "y"};
    const struct {
        const char *one, *other;
    } pairs[] = {{whole, whole}, {whole, ab}, {bc, whole}, {ab, bc}};
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        struct fp8r_route_file files[2], merged;
        assert_int_equal(fp8r_route_file_parse("x", pairs[i].one, strlen(pairs[i].one), &files[0]), FP8R_OK);
        assert_int_equal(fp8r_route_file_parse("y", pairs[i].other, strlen(pairs[i].other), &files[1]), FP8R_OK);
        assert_int_equal(fp8r_routes_merge(files, names, 2, &merged, &summary, &failure), 0);
        again = route_text_of(&merged);
        assert_string_equal(again, whole);
        if (i == 0) assert_int_equal(summary.contested, 0);
        free(again);
        fp8r_route_file_fini(&merged);
        fp8r_route_file_fini(&files[0]);
        fp8r_route_file_fini(&files[1]);
    }
    const struct source *const twice[] = {&a, &a};
    char *one = merge(twice, 1), *two = merge(twice, 2);
    assert_string_equal(one, two);
    struct fp8r_route_file file;
    route_text_parse(a.head, a.body, &file);
    char *plain = route_text_of(&file);
    assert_string_equal(one, plain);
    fp8r_route_file_fini(&file);
    free(plain);
    free(one);
    free(two);
    free(whole);
    free(ab);
    free(bc);
}

/* Where nothing else tells two contents apart, the order of their fields does: any one difference. */
static void any_difference_is_decided(void **state)
{
    (void)state;
    static const char *const bodies[][2] = {{"Mx64x64\n1..8 cpu:a 1 tie", "Mx64x64\n2..9 cpu:a 1 tie"},
                                            {"Mx64x64\n1..8 blas:a 1 tie", "Mx64x64\n1..8 cpu:a 1 tie"},
                                            {"Mx64x64\n1..8 cpu:a 1 tie", "Mx64x64\n1..8 cpu:b 1 tie"},
                                            {"Mx64x64\n1..8 cpu:a 1 tie", "Mx64x64\n1..8 cpu:a 2 tie"},
                                            {"Mx64x64\n1..8 cpu:a 1 clear", "Mx64x64\n1..8 cpu:a 1 tie"},
                                            {"Mx64x64\n1..4 cpu:a 1 tie\n5..8 cpu:a 1 tie", "Mx64x64\n1..8 cpu:a 1 tie"}};
    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
        const struct source first = {FULL(""), bodies[i][0]}, second = {FULL(""), bodies[i][1]};
        const struct source *const one[] = {&first, &second}, *const other[] = {&second, &first};
        char *x = merge(one, 2), *y = merge(other, 2), *alone = merge(one, 1);
        assert_string_equal(x, y);
        assert_string_equal(x, alone);
        assert_int_equal(summary.contested, 0);
        free(x);
        free(y);
        free(alone);
    }
}

static void quick_files_alone_stay_quick(void **state)
{
    (void)state;
    const struct source *const sources[] = {&quick, &quick};
    char *text = merge(sources, 2);
    assert_non_null(strstr(text, "protocol quick "));
    assert_non_null(strstr(text, "Mx512x64"));
    free(text);
}

static void machines_are_never_merged(void **state)
{
    (void)state;
    const struct source others[] = {
        {ROUTE_HEAD("4", "", "full"), ""},
        {FULL("library blas \"openblas 1.0\"\n"), ""},
        {"fp8route-routes 1\ndevice cpu\nidentity features=avx2+fma threads=2 llc_bytes=1048576\nprotocol full mode=graph "
         "operands=cold\n", ""},
        {"fp8route-routes 1\ndevice cpu\nidentity features=avx2+fma threads=2 llc_bytes=1048576\nprotocol full mode=eager "
         "operands=warm\n", ""},
        {"fp8route-routes 1\ndevice cpu\nidentity features=avx2+fma threads=2 llc_bytes=1048576\nprotocol full mode=eager "
         "operands=cold behind=both\n", ""},
        {"fp8route-routes 1\ndevice cuda\nidentity arch=90 sm_count=132 bandwidth_gbs=5000\nprotocol full mode=eager "
         "operands=cold\n", ""}};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        const struct source *const one[] = {&a, &b, &others[i]}, *const other[] = {&others[i], &b, &a};
        assert_null(merge(one, 3));
        assert_int_equal(failure.exit_code, FP8R_EXIT_BAD_DATA);
        assert_non_null(strstr(failure.text, "of different machines or modes, which are never merged"));
        assert_non_null(strstr(failure.text, "threads=2"));
        assert_null(merge(other, 3));
    }
}

/* More facts than a file holds: those of the lowest names, in any order; more libraries are an error. */
static void room_is_kept(void **state)
{
    (void)state;
    char heads[2][2048];
    for (int i = 0; i < 2; i++) {
        size_t used = (size_t)snprintf(heads[i], sizeof heads[i], "fp8route-routes 1\ndevice cpu\nidentity features=avx2+fma "
                                                                  "threads=2 llc_bytes=1048576\n");
        for (int j = 0; j < 10; j++)
            used += (size_t)snprintf(heads[i] + used, sizeof heads[i] - used, "fact f%d \"%d\"\n", 10 + 2 * j + i, i);
        (void)snprintf(heads[i] + used, sizeof heads[i] - used, "protocol full mode=eager operands=cold\n");
    }
    const struct source one = {heads[0], ""}, other = {heads[1], ""};
    const struct source *const forth[] = {&one, &other}, *const back[] = {&other, &one};
    char *x = merge(forth, 2), *y = merge(back, 2);
    assert_string_equal(x, y);
    assert_non_null(strstr(x, "fact f25 "));
    assert_null(strstr(x, "fact f26 "));
    free(x);
    free(y);
    const struct source few = {FULL("library a \"v 1\"\nlibrary b \"v 1\"\nlibrary c \"v 1\"\nlibrary d \"v 1\"\n"), ""};
    const struct source more = {FULL("library e \"v 1\"\nlibrary f \"v 1\"\nlibrary g \"v 1\"\nlibrary h \"v 1\"\nlibrary i "
                                     "\"v 1\"\n"), ""};
    const struct source *const nine[] = {&few, &more};
    assert_null(merge(nine, 2));
    assert_non_null(strstr(failure.text, "more than 8 libraries"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(order_does_not_matter),        cmocka_unit_test(merging_again_changes_nothing),
        cmocka_unit_test(any_difference_is_decided),    cmocka_unit_test(quick_files_alone_stay_quick),
        cmocka_unit_test(machines_are_never_merged),    cmocka_unit_test(room_is_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
