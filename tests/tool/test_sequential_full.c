/* The promises of the sequential decision, simulated ten times as often as in test_sequential.c.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tool/sequential_simulation.h"

static void tune_promises(void **state)
{
    (void)state;
    tune_errors(10);
}

static void gate_promises(void **state)
{
    (void)state;
    gate_errors(10);
}

static void spread(void **state)
{
    (void)state;
    spread_is_noisy(10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(tune_promises), cmocka_unit_test(gate_promises),
                                       cmocka_unit_test(spread)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
