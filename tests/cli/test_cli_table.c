/* fp8route table as a user runs it: what it prints, and its exit codes.
 * SPDX-License-Identifier: Apache-2.0 */
#include <jansson.h>

#include <fp8route/backend.h>

#include "program.h"
#include "route/route_file.h"
#include "scratch.h"

static char *out, *err; /* of the last run */

static int program(const char *const *words)
{
    free(out);
    free(err);
    struct program run = program_run(words);
    out = run.output;
    err = run.errors;
    return run.exit_code;
}

/* `fp8route table` with an action, up to three options, and the file. */
#define TABLE(path, ...) program((const char *const[]){"table", __VA_ARGS__, path, NULL})

static void expect_in(const char *text, const char *wanted)
{
    if (!strstr(text, wanted))
        fail_msg("\"%s\" is not in:\n%s", wanted, text);
}

/* A file of this machine, as a tuner would write it: identity and revision are asked of the library. */
static void here(struct fp8r_route_file *file)
{
    fp8r_context *context = NULL;
    const fp8r_context_options options = {.struct_size = sizeof options, .flags = FP8R_NO_ROUTE_FILES};
    static struct fp8r_registry no_rows;
    *file = (struct fp8r_route_file){.is_cold = true};
    assert_int_equal(fp8r_context_create((fp8r_device){0}, &options, &context), FP8R_OK);
    fp8r_identity_init(fp8r_context_device(context), &no_rows, &file->identity);
    file->table.entries = calloc(1, sizeof *file->table.entries);
    assert_non_null(file->table.entries);
    struct fp8r_entry *entry = &file->table.entries[file->table.count++];
    assert_int_equal(fp8r_context_backend_count(context) > 0, 1);
    entry->segments = calloc(2, sizeof *entry->segments);
    assert_non_null(entry->segments);
    entry->segment_count = 2;
    for (size_t i = 0; i < fp8r_context_backend_count(context); i++) {
        fp8r_backend_info info = {.struct_size = sizeof info};
        assert_int_equal(fp8r_context_backend(context, i, &info), FP8R_OK);
        if (strcmp(info.name, "reference") != 0)
            continue;
        for (int j = 0; j < 2; j++) {
            struct fp8r_segment *segment = &entry->segments[j];
            *segment = (struct fp8r_segment){.m_first = 1 + 8 * j, .m_last = 8 + 8 * j, .median_us = 12.5, .is_clear = j};
            (void)snprintf(segment->backend, sizeof segment->backend, "reference");
            (void)snprintf(segment->config, sizeof segment->config, "%s", info.configs[0]);
            (void)snprintf(segment->rev, sizeof segment->rev, "%s", info.rev);
        }
    }
    entry->key = (struct fp8r_key){.batch = 1, .n = 4096, .k = 1024, .dtype_a = FP8R_DTYPE_E4M3,
                                   .dtype_b = FP8R_DTYPE_E4M3, .dtype_out = FP8R_DTYPE_BF16,
                                   .scale_a = FP8R_SCALE_ROW, .scale_b = FP8R_SCALE_ROW, .align_bytes = 16};
    fp8r_context_destroy(context);
}

/* The backend's first configuration; as it was where this build holds none. */
static void first_config(const char *backend, char *config, size_t size)
{
    fp8r_context *context = NULL;
    const fp8r_context_options options = {.struct_size = sizeof options, .flags = FP8R_NO_ROUTE_FILES};
    assert_int_equal(fp8r_context_create((fp8r_device){0}, &options, &context), FP8R_OK);
    for (size_t i = 0; i < fp8r_context_backend_count(context); i++) {
        fp8r_backend_info info = {.struct_size = sizeof info};
        assert_int_equal(fp8r_context_backend(context, i, &info), FP8R_OK);
        if (strcmp(info.name, backend) == 0 && info.configs[0])
            (void)snprintf(config, size, "%s", info.configs[0]);
    }
    fp8r_context_destroy(context);
}

static const char *written(const char *name, const struct fp8r_route_file *file)
{
    const char *path = scratch_path(name);
    if (fp8r_route_file_write(path, file) != FP8R_OK)
        fail_msg("%s", fp8r_last_error());
    return path;
}

static json_t *output_json(void)
{
    json_error_t error;
    json_t *root = json_loads(out, JSON_REJECT_DUPLICATES, &error);
    if (!root)
        fail_msg("%s in:\n%s", error.text, out);
    return root;
}

static void show_prints_the_content(void **state)
{
    (void)state;
    struct fp8r_route_file file;
    here(&file);
    file.fact_count = 1;
    file.facts[0] = (struct fp8r_fact){"name", "a \"machine\""};
    struct fp8r_segment *segment = &file.table.entries[0].segments[1];
    (void)snprintf(segment->runner_up, sizeof segment->runner_up, "blas:sgemm");
    segment->runner_up_us = 250;
    segment->gain_low = 1.5;
    segment->gain_high = 2;
    const char *path = written("show.routes", &file);
    assert_int_equal(TABLE(path, "show"), 0);
    assert_string_equal(err, "");
    expect_in(out, "Mx4096x1024");
    expect_in(out, "9..16");
    expect_in(out, "12.50 us");
    expect_in(out, "blas:sgemm");
    expect_in(out, "1.50..2.00");
    expect_in(out, "a \"machine\"");
    assert_null(strchr(out, '\x1b'));
    assert_int_equal(TABLE(path, "show", "--json"), 0);
    json_t *root = output_json();
    assert_string_equal(json_string_value(json_object_get(root, "schema")), "fp8route.table_show/1");
    assert_string_equal(json_string_value(json_object_get(root, "protocol")), "full");
    assert_string_equal(json_string_value(json_object_get(json_object_get(root, "facts"), "name")), "a \"machine\"");
    json_t *entry = json_array_get(json_object_get(root, "entries"), 0);
    assert_string_equal(json_string_value(json_object_get(entry, "family")), "Mx4096x1024");
    json_t *first = json_array_get(json_object_get(entry, "segments"), 0);
    json_t *second = json_array_get(json_object_get(entry, "segments"), 1);
    assert_true(json_is_null(json_object_get(first, "runner_up")));
    assert_int_equal(json_integer_value(json_object_get(second, "m_last")), 16);
    assert_true(json_real_value(json_object_get(second, "gain_low")) == 1.5);
    assert_string_equal(json_string_value(json_object_get(second, "verdict")), "clear");
    json_decref(root);
    fp8r_route_file_fini(&file);
}

static void check_passes_a_file_of_this_machine(void **state)
{
    (void)state;
    struct fp8r_route_file file;
    here(&file);
    const char *path = written("here.routes", &file);
    assert_int_equal(TABLE(path, "check"), 0);
    expect_in(out, "well formed, 1 entry\n");
    expect_in(out, "0 routes would miss, 0 are stale");
    assert_int_equal(TABLE(path, "check", "--device", "cpu"), 0);
    expect_in(out, "machine: this one");
    assert_int_equal(TABLE(path, "check", "--device", "cpu", "--json"), 0);
    json_t *root = output_json();
    assert_true(json_is_true(json_object_get(root, "good")));
    assert_true(json_is_true(json_object_get(root, "fits")));
    assert_int_equal(json_array_size(json_object_get(root, "findings")), 0);
    json_decref(root);
    fp8r_route_file_fini(&file);
}

/* Another machine's file is well formed; only where it should be this machine's is that a failed check. */
static void check_tells_machines_apart_when_asked(void **state)
{
    (void)state;
    struct fp8r_route_file file;
    here(&file);
    file.identity.threads++;
    const char *path = written("other.routes", &file);
    assert_int_equal(TABLE(path, "check"), 0);
    assert_int_equal(TABLE(path, "check", "--device", "cpu"), 1);
    expect_in(out, "machine: it was measured with threads=");
    assert_int_equal(TABLE(path, "check", "--json", "--device", "cpu"), 1);
    json_t *root = output_json();
    assert_true(json_is_false(json_object_get(root, "fits")));
    assert_non_null(json_string_value(json_object_get(root, "misfit")));
    json_decref(root);
    fp8r_route_file_fini(&file);
}

/* Of routes that are not for here it says nothing more: each of them would be refused. */
static void another_kind_of_device_is_one_line(void **state)
{
    (void)state;
    assert_int_equal(TABLE(FP8R_ROUTES "/h200.routes", "check", "--device", "cpu"), 1);
    expect_in(out, "machine: it was measured on another kind of device");
    expect_in(out, "none of its routes is used here\n");
    assert_null(strstr(out, "cannot run here"));
}

static void expect_finding(const struct fp8r_route_file *file, int code, const char *kind, const char *sentence)
{
    const char *path = written("finding.routes", file);
    assert_int_equal(TABLE(path, "check", "--json"), code);
    json_t *root = output_json(), *findings = json_object_get(root, "findings");
    assert_int_equal(json_array_size(findings), 1);
    json_t *finding = json_array_get(findings, 0);
    assert_string_equal(json_string_value(json_object_get(finding, "kind")), kind);
    assert_string_equal(json_string_value(json_object_get(finding, "family")), "Mx4096x1024");
    assert_int_equal(json_integer_value(json_object_get(finding, "m_first")), 9);
    expect_in(json_string_value(json_object_get(finding, "sentence")), sentence);
    assert_int_equal(json_is_true(json_object_get(root, "good")), code == 0);
    json_decref(root);
    assert_int_equal(TABLE(path, "check"), code);
    expect_in(out, kind);
    expect_in(out, sentence);
}

static void check_finds_routes_that_would_miss(void **state)
{
    (void)state;
    struct fp8r_route_file file;
    here(&file);
    struct fp8r_segment *segment = &file.table.entries[0].segments[1], good = *segment;
    (void)snprintf(segment->backend, sizeof segment->backend, "quantum");
    expect_finding(&file, 1, "unknown_backend", "there is no backend quantum here");
    *segment = good;
    (void)snprintf(segment->config, sizeof segment->config, "warp");
    expect_finding(&file, 1, "unknown_config", "backend reference has no configuration warp");
    *segment = good;
    (void)snprintf(segment->rev, sizeof segment->rev, "old");
    expect_finding(&file, 0, "stale", "measured with revision \"old\" of reference, which is \"");
    fp8r_route_file_fini(&file);
}

/* Of a GPU's backend: in builds that hold its code and in others it is refused here, not unknown. */
static void check_refuses_another_devices_backend(void **state)
{
    (void)state;
    struct fp8r_route_file file;
    here(&file);
    struct fp8r_segment *segment = &file.table.entries[0].segments[1];
    (void)snprintf(segment->backend, sizeof segment->backend, "sm90");
    (void)snprintf(segment->rev, sizeof segment->rev, "%s", "");
    first_config("sm90", segment->config, sizeof segment->config);
    const char *path = written("sm90.routes", &file);
    assert_int_equal(TABLE(path, "check", "--device", "cpu"), 1);
    expect_in(out, "refused");
    expect_in(out, "backend sm90 cannot run here: runs on CUDA devices only");
    fp8r_route_file_fini(&file);
}

static void expect_bad_data(const char *path, const char *message)
{
    static const char *const actions[][2] = {{"show"}, {"check"}, {"show", "--json"}, {"check", "--json"}};
    for (size_t i = 0; i < sizeof actions / sizeof *actions; i++) {
        const char *const words[] = {"table", actions[i][0], path, actions[i][1], NULL};
        expect_refusal(words, 5, (const char *const[]){path, message, NULL});
    }
}

static void bad_files_are_bad_data(void **state)
{
    (void)state;
    const char *bad = scratch_path("bad.routes");
    scratch_write(bad, "fp8route-routes 1\ndevice tpu\n", 29);
    expect_bad_data(bad, ", line 2: device tpu is unknown: expected cpu or cuda");
    expect_bad_data("/nowhere/x.routes", "cannot be opened: No such file");
    expect_bad_data(scratch_root, "it is not a regular file");
}

static void wrong_words_are_usage(void **state)
{
    (void)state;
    struct fp8r_route_file file;
    here(&file);
    const char *path = written("usage.routes", &file);
    const struct {
        const char *words[6], *message;
    } cases[] = {{{"table"}, "something is missing"},
                 {{"table", "shew", path}, "unknown action \"shew\""},
                 {{"table", "show", path, "b"}, "unexpected \"b\""},
                 {{"table", "check", "--device", "tpu", path}, "--device is \"tpu\""}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        expect_refusal(cases[i].words, 2, (const char *const[]){cases[i].message, NULL});
    fp8r_route_file_fini(&file);
}

/* Without a FILE: the user's own for this machine. */
static void the_users_file_is_the_default(void **state)
{
    (void)state;
    static const char *const show[] = {"table", "show", NULL}, *const check[] = {"table", "check", NULL};
    struct fp8r_route_file file;
    char name[128], hash[17];
    here(&file);
    fp8r_identity_hash(&file.identity, hash);
    (void)snprintf(name, sizeof name, "cache/fp8route/cpu-%s.routes", hash);
    assert_int_equal(setenv("XDG_CACHE_HOME", scratch_path("cache"), 1), 0);
    expect_refusal(show, 5, (const char *const[]){name, "is not there: fp8route tune writes it", NULL});
    written(name, &file);
    assert_int_equal(program(show), 0);
    expect_in(out, name);
    assert_int_equal(unsetenv("XDG_CACHE_HOME"), 0);
    assert_int_equal(unsetenv("HOME"), 0);
    expect_refusal(check, 2, (const char *const[]){"name the route file", NULL});
    fp8r_route_file_fini(&file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(show_prints_the_content),
        cmocka_unit_test(check_passes_a_file_of_this_machine),
        cmocka_unit_test(check_tells_machines_apart_when_asked),
        cmocka_unit_test(another_kind_of_device_is_one_line),
        cmocka_unit_test(check_finds_routes_that_would_miss),
        cmocka_unit_test(check_refuses_another_devices_backend),
        cmocka_unit_test(bad_files_are_bad_data),
        cmocka_unit_test(wrong_words_are_usage),
        cmocka_unit_test(the_users_file_is_the_default),
    };
    int failures = cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
    free(out);
    free(err);
    return failures;
}
