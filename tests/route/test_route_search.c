/* Where route files are found, which of them wins, and what is said about those that cannot be used. Run with an
 * argument, the program is the child of the test that moves an install: it prints the backend found for a family.
 * SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "route/search.h"
#include "route_sample.h"
#include "scratch.h"

/* What the log was told. */
struct lines {
    int warnings, debug;
    char last_warning[1024], all[16384];
};

static void keep_line(void *user, int level, const char *line)
{
    struct lines *lines = user;
    size_t used = strlen(lines->all);
    lines->warnings += level == FP8R_LOG_WARNING;
    lines->debug += level == FP8R_LOG_DEBUG;
    if (level == FP8R_LOG_WARNING)
        (void)snprintf(lines->last_warning, sizeof lines->last_warning, "%s", line);
    (void)snprintf(lines->all + used, sizeof lines->all - used, "%s\n", line);
}

static struct lines lines;
static const struct fp8r_log log_lines = {.callback = keep_line, .user = &lines};

/* A file with one family, whose backend's name says where it came from. */
static const char *route_text(const char *family, const char *backend, const char *protocol, int threads)
{
    static char text[1024];
    (void)snprintf(text, sizeof text,
                   "fp8route-routes 1\ndevice cpu\nidentity features=avx2+fma+f16c+avx512 threads=%d "
                   "llc_bytes=272629760\nprotocol %s mode=eager operands=cold\nentry %s\n"
                   "m=1..8 backend=%s config=c rev=r median_us=1 verdict=clear\nend entries=1\n",
                   threads, protocol, family, backend);
    return text;
}

static const char *put_route(const char *name, const char *family, const char *backend)
{
    const char *path = scratch_path(name), *text = route_text(family, backend, "full", 2);
    scratch_write(path, text, strlen(text));
    return path;
}

static const char *backend_of(const struct fp8r_table *table, const char *family)
{
    struct fp8r_key key;
    assert_int_equal(fp8r_family_parse(family, FP8R_MODE_EAGER, &key), FP8R_OK);
    const struct fp8r_entry *entry = fp8r_table_find(table, &key);
    return entry ? entry->segments[0].backend : "none";
}

static struct fp8r_table loaded(const char *option, const struct fp8r_environment *environment)
{
    struct fp8r_identity identity = sample_identity();
    struct fp8r_table table = {0};
    memset(&lines, 0, sizeof lines);
    if (fp8r_routes_load(option, false, environment, &identity, &log_lines, &table) != FP8R_OK)
        fail_msg("%s", fp8r_last_error());
    return table;
}

/* The user's file of this machine below SCRATCH/cache, with its directories. */
static const char *user_file(void)
{
    static char path[SCRATCH_BYTES], home[SCRATCH_BYTES];
    struct fp8r_identity identity = sample_identity();
    (void)snprintf(home, sizeof home, "%s", scratch_path("cache"));
    const struct fp8r_environment environment = {.cache_home = home};
    assert_true(fp8r_routes_user_path(&environment, &identity, path, sizeof path));
    (void)mkdir(home, 0700);
    (void)mkdir(scratch_path("cache/fp8route"), 0700);
    return path;
}

static struct fp8r_environment cache_environment(void)
{
    static char home[SCRATCH_BYTES];
    (void)snprintf(home, sizeof home, "%s", scratch_path("cache"));
    return (struct fp8r_environment){.cache_home = home};
}

static void put_user(const char *text)
{
    scratch_write(user_file(), text, strlen(text));
}

static void the_user_file_is_named_by_the_machine(void **state)
{
    (void)state;
    char path[256], home[] = "/home/u/.cache", relative[] = ".cache", expected[256], hash[17];
    struct fp8r_environment environment = {.cache_home = home};
    struct fp8r_identity identity = sample_identity();
    fp8r_identity_hash(&identity, hash);
    (void)snprintf(expected, sizeof expected, "/home/u/.cache/fp8route/cpu-%s.routes", hash);
    assert_true(fp8r_routes_user_path(&environment, &identity, path, sizeof path));
    assert_string_equal(path, expected);
    assert_true(fp8r_routes_user_path(&environment, &identity, path, strlen(expected) + 1));
    assert_false(fp8r_routes_user_path(&environment, &identity, path, strlen(expected)));
    identity.kind = FP8R_DEVICE_CUDA;
    assert_true(fp8r_routes_user_path(&environment, &identity, path, sizeof path));
    assert_non_null(strstr(path, "/fp8route/cuda-"));
    environment.cache_home = relative;
    assert_false(fp8r_routes_user_path(&environment, &identity, path, sizeof path));
    environment.cache_home = NULL;
    assert_false(fp8r_routes_user_path(&environment, &identity, path, sizeof path));
}

/* Each family is in fewer places than the one before: every place is seen to win once. */
static void earlier_places_win(void **state)
{
    (void)state;
    char option[SCRATCH_BYTES], named[SCRATCH_BYTES], text[2048];
    struct fp8r_environment environment = cache_environment();
    (void)snprintf(option, sizeof option, "%s", put_route("option.routes", "Mx64x64", "option"));
    (void)snprintf(named, sizeof named, "%s", put_route("named.routes", "Mx64x64", "named"));
    environment.table = named;
    put_user(route_text("Mx64x64", "user", "full", 2));
    struct fp8r_table table = loaded(option, &environment);
    assert_string_equal(backend_of(&table, "Mx64x64"), "option");
    assert_int_equal(table.file_count >= 3, true);
    assert_string_equal(table.files[0], option);
    assert_string_equal(table.files[1], named);
    assert_string_equal(table.files[2], user_file());
    fp8r_table_fini(&table);
    table = loaded(NULL, &environment);
    assert_string_equal(backend_of(&table, "Mx64x64"), "named");
    fp8r_table_fini(&table);
    environment.table = NULL;
    table = loaded(NULL, &environment);
    assert_string_equal(backend_of(&table, "Mx64x64"), "user");
    fp8r_table_fini(&table);
    /* Quick ones come first only where no full one is. */
    (void)snprintf(text, sizeof text, "%s", route_text("Mx64x64", "quick", "quick", 2));
    scratch_write(named, text, strlen(text));
    environment.table = named;
    table = loaded(NULL, &environment);
    assert_string_equal(backend_of(&table, "Mx64x64"), "user");
    fp8r_table_fini(&table);
    put_user(route_text("Mx64x64", "user", "quick", 2));
    table = loaded(NULL, &environment);
    assert_string_equal(backend_of(&table, "Mx64x64"), "quick");
    assert_int_equal(lines.warnings, 0);
    fp8r_table_fini(&table);
}

static void only_the_option_is_read_when_asked(void **state)
{
    (void)state;
    struct fp8r_environment environment = cache_environment();
    struct fp8r_identity identity = sample_identity();
    struct fp8r_table table;
    put_user(route_text("Mx64x64", "user", "full", 2));
    assert_int_equal(fp8r_routes_load(NULL, true, &environment, &identity, &log_lines, &table), FP8R_OK);
    assert_int_equal(table.count, 0);
    assert_int_equal(table.file_count, 0);
    fp8r_table_fini(&table);
    const char *option = put_route("only.routes", "Mx128x64", "option");
    assert_int_equal(fp8r_routes_load(option, true, &environment, &identity, &log_lines, &table), FP8R_OK);
    assert_string_equal(backend_of(&table, "Mx128x64"), "option");
    assert_string_equal(backend_of(&table, "Mx64x64"), "none");
    fp8r_table_fini(&table);
}

/* A bad option is the call's error and leaves the table alone. */
static void the_option_must_be_good(void **state)
{
    (void)state;
    const struct fp8r_environment none = {0};
    struct fp8r_identity identity = sample_identity();
    struct fp8r_table table = {.count = 77};
    const struct {
        const char *path, *text, *message;
        fp8r_status status;
    } cases[] = {{"no.routes", NULL, "cannot be opened: No such file", FP8R_ERROR_IO},
                 {"bad.routes", "hello\n", "line 1: \"hello\" does not belong here", FP8R_ERROR_FORMAT},
                 {"foreign.routes", "", "it was measured with threads=3, here it is 2", FP8R_ERROR_FORMAT},
                 {".", NULL, "it is not a regular file", FP8R_ERROR_IO}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *path = scratch_path(cases[i].path);
        const char *text = cases[i].text && !*cases[i].text ? route_text("Mx64x64", "f", "full", 3) : cases[i].text;
        if (text)
            scratch_write(path, text, strlen(text));
        assert_int_equal(fp8r_routes_load(path, false, &none, &identity, &log_lines, &table), cases[i].status);
        if (!strstr(fp8r_last_error(), cases[i].message) || !strstr(fp8r_last_error(), path))
            fail_msg("\"%s\" does not say \"%s\"", fp8r_last_error(), cases[i].message);
        assert_int_equal(table.count, 77);
    }
}

/* FP8ROUTE_TABLE: exactly one warning, and everything else works. */
static void the_variable_warns_once(void **state)
{
    (void)state;
    static const char *const texts[] = {NULL, "", "fp8route-routes 9\n", "foreign"};
    char path[SCRATCH_BYTES];
    struct fp8r_environment environment = cache_environment();
    put_user(route_text("Mx64x64", "user", "full", 2));
    (void)snprintf(path, sizeof path, "%s", scratch_path("variable.routes"));
    environment.table = path;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        const char *text = i == 3 ? route_text("Mx64x64", "foreign", "full", 3) : texts[i];
        if (text)
            scratch_write(path, text, strlen(text));
        struct fp8r_table table = loaded(NULL, &environment);
        assert_string_equal(backend_of(&table, "Mx64x64"), "user");
        assert_int_equal(lines.warnings, 1);
        assert_non_null(strstr(lines.last_warning, path));
        fp8r_table_fini(&table);
    }
}

/* The cache file cut at every byte, foreign, from another version, not a file, or gone: passed over in silence, and whole
 * again after the next save. */
static void bad_user_files_are_misses(void **state)
{
    (void)state;
    struct fp8r_environment environment = cache_environment();
    char text[1024];
    const char *path = user_file();
    (void)snprintf(text, sizeof text, "%s", route_text("Mx64x64", "user", "full", 2));
    for (size_t size = 0; size <= strlen(text); size++) {
        scratch_write(path, text, size);
        struct fp8r_table table = loaded(NULL, &environment);
        assert_string_equal(backend_of(&table, "Mx64x64"), size == strlen(text) ? "user" : "none");
        assert_int_equal(lines.warnings, 0);
        assert_true(lines.debug > 0);
        fp8r_table_fini(&table);
    }
    put_user(route_text("Mx64x64", "user", "full", 3));
    struct fp8r_table table = loaded(NULL, &environment);
    assert_string_equal(backend_of(&table, "Mx64x64"), "none");
    assert_non_null(strstr(lines.all, "it was measured with threads=3, here it is 2"));
    fp8r_table_fini(&table);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkdir(path, 0700), 0);
    table = loaded(NULL, &environment);
    assert_int_equal(lines.warnings, 0);
    fp8r_table_fini(&table);
    assert_int_equal(rmdir(path), 0);
    const struct fp8r_environment homeless = {0};
    table = loaded(NULL, &homeless);
    assert_string_equal(backend_of(&table, "Mx64x64"), "none");
    assert_int_equal(lines.warnings, 0);
    fp8r_table_fini(&table);
}

static void directories_are_read_in_order(void **state)
{
    (void)state;
    struct fp8r_identity identity = sample_identity();
    struct fp8r_table table = {0};
    const char *directory = scratch_path("etc");
    memset(&lines, 0, sizeof lines);
    assert_int_equal(fp8r_routes_load_directory(directory, &identity, &log_lines, &table), FP8R_OK);
    assert_int_equal(table.count, 0);
    assert_int_equal(mkdir(directory, 0700), 0);
    put_route("etc/20.routes", "Mx64x64", "second");
    put_route("etc/10.routes", "Mx64x64", "first");
    put_route("etc/30.routes", "Mx128x64", "third");
    put_route("etc/05.routes.bak", "Mx64x64", "backup");
    put_route("etc/.hidden.routes", "Mx64x64", "hidden");
    scratch_write(scratch_path("etc/00.routes"), "rubbish", 7);
    assert_int_equal(mkdir(scratch_path("etc/01.routes"), 0700), 0);
    assert_int_equal(fp8r_routes_load_directory(directory, &identity, &log_lines, &table), FP8R_OK);
    assert_int_equal(table.count, 2);
    assert_int_equal(table.file_count, 3);
    assert_string_equal(backend_of(&table, "Mx64x64"), "first");
    assert_string_equal(backend_of(&table, "Mx128x64"), "third");
    assert_int_equal(lines.warnings, 0);
    fp8r_table_fini(&table);
}

static void copy_file(const char *from, const char *to)
{
    static char buffer[1 << 16];
    FILE *in = fopen(from, "rb"), *out = fopen(to, "wb");
    assert_non_null(in);
    assert_non_null(out);
    for (size_t got; (got = fread(buffer, 1, sizeof buffer, in)) > 0;)
        assert_int_equal(fwrite(buffer, 1, got, out), got);
    (void)fclose(in);
    assert_int_equal(fclose(out), 0);
    assert_int_equal(chmod(to, 0700), 0);
}

/* The line that the program at path prints as a child. */
static void child_says(const char *path, const char *expected)
{
    char command[SCRATCH_BYTES + 16], line[64] = "";
    (void)snprintf(command, sizeof command, "'%s' child", path);
    FILE *child = popen(command, "r");
    assert_non_null(child);
    char *got = fgets(line, sizeof line, child);
    int status = pclose(child);
    assert_non_null(got);
    assert_int_equal(status, 0);
    assert_string_equal(line, expected);
}

/* An install is found by where it is now: moved as a whole, its routes move with it. */
static void moved_installs_keep_their_routes(void **state)
{
    (void)state;
    static const char *const directories[] = {"one",       "one/lib",       "one/lib/triplet",
                                              "one/share", "one/share/fp8route", "one/share/fp8route/routes"};
    for (size_t i = 0; i < sizeof directories / sizeof *directories; i++)
        assert_int_equal(mkdir(scratch_path(directories[i]), 0700), 0);
    copy_file("/proc/self/exe", scratch_path("one/lib/program"));
    copy_file("/proc/self/exe", scratch_path("one/lib/triplet/program"));
    child_says(scratch_path("one/lib/program"), "none\n");
    put_route("one/share/fp8route/routes/x.routes", "Mx64x64", "shipped");
    child_says(scratch_path("one/lib/program"), "shipped\n");
    child_says(scratch_path("one/lib/triplet/program"), "shipped\n");
    assert_int_equal(rename(scratch_path("one"), scratch_path("two")), 0);
    child_says(scratch_path("two/lib/program"), "shipped\n");
    child_says(scratch_path("two/lib/triplet/program"), "shipped\n");
    assert_int_equal(symlink(scratch_path("two/lib/program"), scratch_path("link")), 0);
    child_says(scratch_path("link"), "shipped\n");
    scratch_remove(scratch_path("two/share"));
    child_says(scratch_path("two/lib/program"), "none\n");
}

static int child(void)
{
    const struct fp8r_environment none = {0};
    struct fp8r_identity identity = sample_identity();
    struct fp8r_table table;
    if (fp8r_routes_load(NULL, false, &none, &identity, &log_lines, &table) != FP8R_OK)
        return 1;
    (void)puts(backend_of(&table, "Mx64x64"));
    fp8r_table_fini(&table);
    return 0;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_user_file_is_named_by_the_machine),
        cmocka_unit_test(earlier_places_win),
        cmocka_unit_test(only_the_option_is_read_when_asked),
        cmocka_unit_test(the_option_must_be_good),
        cmocka_unit_test(the_variable_warns_once),
        cmocka_unit_test(bad_user_files_are_misses),
        cmocka_unit_test(directories_are_read_in_order),
        cmocka_unit_test(moved_installs_keep_their_routes),
    };
    if (argc == 2 && strcmp(argv[1], "child") == 0)
        return child();
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
