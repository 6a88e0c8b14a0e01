/* Progress as it is shown: what is measured again does not take it back.
 * SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

#include <cmocka.h>

#include "cli/progress.h"

static void a_smaller_share_keeps_the_percentage(void **state)
{
    static const double shares[] = {0.44, 0.38, 0.45};
    struct fp8r_progress_line line = {0};
    char text[128] = "";
    (void)state;
    FILE *file = tmpfile();
    int kept = dup(STDERR_FILENO);
    assert_non_null(file);
    assert_true(kept >= 0 && dup2(fileno(file), STDERR_FILENO) >= 0);
    for (size_t i = 0; i < sizeof shares / sizeof *shares; i++) {
        line.last_ns = 0; /* no line is held back */
        fp8r_progress_show(&line, "x", shares[i], 0);
    }
    assert_true(dup2(kept, STDERR_FILENO) >= 0);
    assert_int_equal(close(kept), 0);
    rewind(file);
    assert_true(fread(text, 1, sizeof text - 1, file) > 0);
    assert_int_equal(fclose(file), 0);
    assert_string_equal(text, " 44 %  x\n 44 %  x\n 45 %  x\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_smaller_share_keeps_the_percentage)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
