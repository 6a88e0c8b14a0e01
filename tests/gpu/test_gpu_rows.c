/* Every configuration of every row over the case lists, and the field reports that a problem's text can hold (docs/
 * field-reports.md), through plans on a GPU: exact and random data against the oracle, poison around out, fewer rows than were
 * planned; and by scaled_mm, which must take all of them.
 * SPDX-License-Identifier: Apache-2.0 */
#include "gpu_rows.h"
#include "gpu_sample.h"

static struct gpu_rows rows;

static void check(const char *text)
{
    gpu_rows_check(&rows, text);
}

static void check_list(const char *path)
{
    char line[256];
    const long before = rows.runs;
    FILE *file = fopen(path, "r");
    if (!file) fail_msg("cannot open %s", path);
    while (fgets(line, sizeof line, file)) {
        line[strcspn(line, "# \n")] = '\0';
        if (line[0]) check(line);
    }
    (void)fclose(file);
    assert_true(rows.runs - before > 100);
    print_message("%s: %ld products\n", path, rows.runs - before);
}

static void odd(void **state)
{
    (void)state;
    check_list(FP8R_SHAPES "/odd.txt");
}

static void layouts(void **state)
{
    (void)state;
    check_list(FP8R_SHAPES "/layouts.txt");
}

static void types(void **state)
{
    (void)state;
    check_list(FP8R_SHAPES "/types.txt");
}

static void field_reports(void **state)
{
    static const char *const texts[] = {
        /* A3 */ "2x64x64", "33x64x64", "7x17x100", "20x40x15",
        /* A5 */ "256x1280x3420", "256x3420x1280",
        /* A6 */ "1088x520x272", "127x136x272:bias", "129x136x272",
        /* A7 */ "5x257x528", "5x255x48", "5x7x272", "5x9x16",
        /* A8 */ "8x1024x8192", "8x1536x8192:precise",
        /* A9 */ "64x576x192", "128x1152x1152", "65x1344x64", "1x640x128",
        /* B1 */ "64x64x48:lda=1024", "64x64x48:ldb=1024", "48x64x64:ldo=1024",
        /* B3 */ "16x24x32", "16x24x32:ta", "16x24x32:tb", "16x24x32:ta:tb",
        /* B6 */ "3*16x32x64:bo=1000:ldo=40", "3*16x32x64:bb=4096", "3*16x32x64:bb=0",
        /* C7 */ "9x40x64:bias=fp32", "9x40x64:fp32:bias=bf16", "9x40x64:bias=fp16", "9x40x64:fp16:bias=bf16",
        /* C8 */ "63x640x1024:fp16:bias", "4x6400x512:fp16:bias",
        /* I1 */ "24x640x512", "48x640x512", "96x640x512", "192x640x512", "300x640x512",
        /* J13 */ "5x32x1368:a=bf16", "5x32x1076:a=bf16", "5x32x7:a=fp16", "3x32x1368:a=fp16"};
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        check(texts[i]);
}

/* Field report F6: operands of a flat buffer, each aligned less in turn. */
static void f6_operands_at_any_address(void **state)
{
    static const int aligns[] = {1, 2, 4, 8, 16, 32, 64};
    (void)state;
    for (size_t i = 0; i < sizeof aligns / sizeof *aligns; i++) {
        char text[64];
        (void)snprintf(text, sizeof text, "40x136x272:bias:fp32:align=%d", aligns[i]);
        check(text);
    }
}

/* Field report A8 as it was reported, with weights that fill the device. */
static void a8_the_reported_shapes(void **state)
{
    (void)state;
    gpu_rows_check_data(&rows, "8x8192x8192", SAMPLE_EXACT);
    gpu_rows_check_data(&rows, "8x12288x8192", SAMPLE_EXACT);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(odd),
                                       cmocka_unit_test(layouts),
                                       cmocka_unit_test(types),
                                       cmocka_unit_test(field_reports),
                                       cmocka_unit_test(f6_operands_at_any_address),
                                       cmocka_unit_test(a8_the_reported_shapes)};
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    (void)gpu_facts();
    gpu_rows_init(&rows, gpu_routed_context());
    const int failed = cmocka_run_group_tests_name("all rows on a GPU", tests, NULL, NULL);
    gpu_rows_fini(&rows);
    return failed;
}
