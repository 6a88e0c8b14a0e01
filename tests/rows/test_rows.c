/* Every row against the oracle, over the committed case lists (shapes/). A case is a line of problem text.
 * SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "support/rows.h"

static void run_list(const char *path)
{
    char line[256];
    int cases = 0;
    FILE *file = fopen(path, "r");
    if (!file)
        fail_msg("cannot open %s", path);
    while (fgets(line, sizeof line, file)) {
        line[strcspn(line, "#\n")] = '\0';
        line[strcspn(line, " ")] = '\0';
        if (!line[0])
            continue;
        rows_check(&shared_rows, line);
        cases++;
    }
    (void)fclose(file);
    assert_true(cases > 10);
    print_message("%s: %d cases, %ld products so far\n", path, cases, shared_rows.runs);
}

static void odd_shapes(void **state)
{
    (void)state;
    run_list(FP8R_SHAPES "/odd.txt");
}

static void layouts(void **state)
{
    (void)state;
    run_list(FP8R_SHAPES "/layouts.txt");
}

static void types_and_scales(void **state)
{
    (void)state;
    run_list(FP8R_SHAPES "/types.txt");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(odd_shapes),
        cmocka_unit_test(layouts),
        cmocka_unit_test(types_and_scales),
    };
    return cmocka_run_group_tests_name("rows", tests, shared_rows_setup, shared_rows_teardown);
}
