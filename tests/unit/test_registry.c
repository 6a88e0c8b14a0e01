/* The registry: the one list, the order, and each way in which an outside backend can break the contract.
 * SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "backend/registry.h"
#include "support/fake.h"

static struct fp8r_registry registry;
static struct fake fake;

static void listed_rows_are_ordered_and_whole(void **state)
{
    (void)state;
    assert_int_equal(fp8r_registry_init(&registry, NULL, 0), FP8R_OK);
    assert_true(registry.count >= 6);
    for (int i = 0; i < registry.count; i++) {
        const fp8r_backend *backend = &registry.rows[i].backend;
        assert_true(i == 0 || registry.rows[i - 1].backend.priority >= backend->priority);
        assert_int_equal(fp8r_registry_find(&registry, backend->name, strlen(backend->name)), i);
        assert_true(backend->description[0] && backend->capability_count > 0);
        if (!registry.rows[i].is_built)
            continue;
        assert_true(strlen(backend->rev) == 12 && backend->configs[0] && backend->supports && backend->pick && backend->run);
        for (int c = 0; backend->configs[c]; c++)
            assert_int_equal(fp8r_row_config(&registry.rows[i], backend->configs[c]), c);
    }
    assert_string_equal(registry.rows[registry.count - 1].backend.name, "reference");
}

static void outside_backends_find_their_place(void **state)
{
    const fp8r_backend high = fake_backend(&fake, "high", 1000), equal = fake_backend(&fake, "equal", 50);
    const fp8r_backend *const outside[] = {&equal, &high};
    (void)state;
    assert_int_equal(fp8r_registry_init(&registry, outside, 2), FP8R_OK);
    assert_string_equal(registry.rows[0].backend.name, "high");
    assert_int_equal(fp8r_registry_find(&registry, "equal", 5), fp8r_registry_find(&registry, "cpu", 3) + 1);
    assert_int_equal(fp8r_registry_find(&registry, "hig", 3), -1);
}

/* One change to a good contract, and the word that the refusal must say. */
enum change { ABI, SIZE, NAME_NULL, NAME_EMPTY, NAME_UPPER, NAME_LONG, TAKEN, NO_WINDOW, EMPTY_WINDOW, KIND, NO_CONFIGS,
              NO_CONFIG, CONFIG_NAME, CONFIG_TWICE, NO_SUPPORTS, NO_PICK, NO_RUN, NO_DESTROY, NO_REV, CHANGES };

static void broken_contracts_are_refused(void **state)
{
    static const char *const none[] = {NULL}, *const bad[] = {"a b", NULL}, *const twice[] = {"x", "x", NULL};
    static const fp8r_capability empty = {.kind = FP8R_DEVICE_CPU, .arch_min = 5, .arch_max = 4}, kind = {.kind = 7};
    static const char *const words[CHANGES] = {"abi_version", "struct_size", "name", "name", "name", "name", "taken",
        "capability", "capability", "capability", "configs", "configs", "configuration name", "configurations have one name",
        "supports", "pick", "run", "destroy", "rev"};
    (void)state;
    for (int change = 0; change < CHANGES; change++) {
        fp8r_backend it = fake_backend(&fake, "fake", 1);
        const fp8r_backend *const outside[] = {&it};
        it.abi_version += change == ABI;
        it.struct_size -= change == SIZE;
        it.name = change == NAME_NULL ? NULL : change == NAME_EMPTY ? "" : change == NAME_UPPER ? "Fake" : change == TAKEN ? "cpu"
                : change == NAME_LONG ? "a23456789012345678901234567890123456789012345678901234567890123x" : it.name;
        it.capability_count = change == NO_WINDOW ? 0 : 1;
        it.capabilities = change == EMPTY_WINDOW ? &empty : change == KIND ? &kind : it.capabilities;
        it.configs = change == NO_CONFIGS ? NULL : change == NO_CONFIG ? none : change == CONFIG_NAME ? bad
                   : change == CONFIG_TWICE ? twice : it.configs;
        it.supports = change == NO_SUPPORTS ? NULL : it.supports;
        it.pick = change == NO_PICK ? NULL : it.pick;
        it.run = change == NO_RUN ? NULL : it.run;
        it.destroy = change == NO_DESTROY ? NULL : it.destroy;
        it.rev = change == NO_REV ? NULL : it.rev;
        fp8r_status status = fp8r_registry_init(&registry, outside, 1);
        if (status != FP8R_ERROR_INVALID_ARGUMENT || !strstr(fp8r_last_error(), words[change]) ||
            !strstr(fp8r_last_error(), "options.backends[0]"))
            fail_msg("change %d: %s, \"%s\"", change, fp8r_status_name(status), fp8r_last_error());
    }
    const fp8r_backend *const missing[] = {NULL};
    assert_int_equal(fp8r_registry_init(&registry, missing, 1), FP8R_ERROR_INVALID_ARGUMENT);
    assert_int_equal(fp8r_registry_init(&registry, NULL, 1), FP8R_ERROR_INVALID_ARGUMENT);
}

static void a_context_holds_so_many(void **state)
{
    static char names[FP8R_ROWS_MAX][16];
    static fp8r_backend backends[FP8R_ROWS_MAX];
    const fp8r_backend *outside[FP8R_ROWS_MAX];
    (void)state;
    for (int i = 0; i < FP8R_ROWS_MAX; i++) {
        names[i][0] = 'f';
        names[i][1] = (char)('a' + i / 26);
        names[i][2] = (char)('a' + i % 26);
        backends[i] = fake_backend(&fake, names[i], i);
        outside[i] = &backends[i];
    }
    assert_int_equal(fp8r_registry_init(&registry, NULL, 0), FP8R_OK);
    size_t room = (size_t)(FP8R_ROWS_MAX - registry.count);
    assert_int_equal(fp8r_registry_init(&registry, outside, room), FP8R_OK);
    assert_int_equal(fp8r_registry_init(&registry, outside, room + 1), FP8R_ERROR_INVALID_ARGUMENT);
    assert_non_null(strstr(fp8r_last_error(), "backend_count"));
}

static void names_resolve(void **state)
{
    const fp8r_backend it = fake_backend(&fake, "fake", 1);
    const fp8r_backend *const outside[] = {&it};
    int row = -5, config = -5;
    (void)state;
    assert_int_equal(fp8r_registry_init(&registry, outside, 1), FP8R_OK);
    assert_int_equal(fp8r_registry_resolve(&registry, "fake", &row, &config), FP8R_OK);
    assert_true(row == fp8r_registry_find(&registry, "fake", 4) && config == FP8R_CONFIG_ANY);
    assert_int_equal(fp8r_registry_resolve(&registry, "fake:two", &row, &config), FP8R_OK);
    assert_int_equal(config, 1);
    assert_int_equal(fp8r_registry_resolve(&registry, "fake:three", &row, &config), FP8R_ERROR_NOT_FOUND);
    assert_non_null(strstr(fp8r_last_error(), "three"));
    assert_int_equal(fp8r_registry_resolve(&registry, "fak", &row, &config), FP8R_ERROR_NOT_FOUND);
    assert_non_null(strstr(fp8r_last_error(), "reference")); /* names what there is */
    assert_int_equal(fp8r_registry_resolve(&registry, "", &row, &config), FP8R_ERROR_NOT_FOUND);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(listed_rows_are_ordered_and_whole),
        cmocka_unit_test(outside_backends_find_their_place),
        cmocka_unit_test(broken_contracts_are_refused),
        cmocka_unit_test(a_context_holds_so_many),
        cmocka_unit_test(names_resolve),
    };
    return cmocka_run_group_tests_name("registry", tests, NULL, NULL);
}
