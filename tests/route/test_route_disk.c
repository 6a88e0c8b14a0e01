/* Route files on the disk: what cannot be read or written is said, and a writer never leaves half a file.
 * SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "route_sample.h"
#include "scratch.h"
#include "support/child.h"

static const char sample[] = SAMPLE_TEXT;

static struct fp8r_route_file sample_file(void)
{
    struct fp8r_route_file file;
    assert_int_equal(sample_parse(sample, &file), FP8R_OK);
    return file;
}

static void expect_read(const char *path, fp8r_status status, const char *message)
{
    struct fp8r_route_file file;
    assert_int_equal(fp8r_route_file_read(path, &file), status);
    if (!strstr(fp8r_last_error(), message) || !strstr(fp8r_last_error(), path))
        fail_msg("\"%s\" does not say \"%s\"", fp8r_last_error(), message);
}

static void expect_sample(const char *path)
{
    struct fp8r_route_file file;
    if (fp8r_route_file_read(path, &file) != FP8R_OK)
        fail_msg("%s", fp8r_last_error());
    assert_int_equal(file.table.count, 2);
    assert_string_equal(file.table.files[0], path);
    fp8r_route_file_fini(&file);
}

static void what_is_written_is_read(void **state)
{
    (void)state;
    struct fp8r_route_file file = sample_file();
    char text[sizeof sample + 1] = "";
    const char *path = scratch_path("deep/er/x.routes");
    for (int i = 0; i < 2; i++) /* made with its directories, then replaced */
        assert_int_equal(fp8r_route_file_write(path, &file), FP8R_OK);
    expect_sample(path);
    FILE *stream = fopen(path, "rb");
    assert_non_null(stream);
    assert_int_equal(fread(text, 1, sizeof text, stream), sizeof sample - 1);
    (void)fclose(stream);
    assert_memory_equal(text, sample, sizeof sample - 1);
    assert_int_equal(scratch_count(scratch_path("deep/er")), 1); /* no temporary file stays */
    fp8r_route_file_fini(&file);
}

/* A path without a directory, from inside it. */
static void bare_names_are_written_here(void **state)
{
    (void)state;
    struct fp8r_route_file file = sample_file();
    int here = open(".", O_RDONLY | O_DIRECTORY);
    assert_true(here >= 0);
    assert_int_equal(chdir(scratch_root), 0);
    fp8r_status status = fp8r_route_file_write("bare.routes", &file);
    assert_int_equal(fchdir(here), 0);
    (void)close(here);
    assert_int_equal(status, FP8R_OK);
    expect_sample(scratch_path("bare.routes"));
    fp8r_route_file_fini(&file);
}

static void what_is_no_file_is_refused(void **state)
{
    (void)state;
    expect_read(scratch_path("missing"), FP8R_ERROR_IO, "cannot be opened: No such file or directory");
    expect_read(scratch_root, FP8R_ERROR_IO, "it is not a regular file");
    expect_read("/dev/zero", FP8R_ERROR_IO, "it is not a regular file");
    const char *pipe_path = scratch_path("pipe"), *big = scratch_path("big"), *empty = scratch_path("empty");
    assert_int_equal(mkfifo(pipe_path, 0600), 0);
    expect_read(pipe_path, FP8R_ERROR_IO, "it is not a regular file"); /* and does not wait for a writer */
    scratch_write(empty, "", 0);
    expect_read(empty, FP8R_ERROR_FORMAT, "it was cut short");
    scratch_write(big, "", 0);
    assert_int_equal(truncate(big, (64 << 20) + 1), 0);
    expect_read(big, FP8R_ERROR_FORMAT, "a route file has at most 64 MiB");
    assert_int_equal(truncate(big, 64 << 20), 0);
    expect_read(big, FP8R_ERROR_FORMAT, "line 1: ");
    (void)unlink(big);
}

/* Nothing that a reader would refuse takes the place of what was there. */
static void what_is_too_large_is_not_written(void **state)
{
    enum { SEGMENTS = 1000, ENTRIES = 1000 };
    (void)state;
    struct fp8r_route_file file = sample_file(), large = file;
    struct fp8r_segment *const segments = calloc(SEGMENTS, sizeof *segments);
    struct fp8r_entry *const entries = calloc(ENTRIES, sizeof *entries);
    const char *path = scratch_path("large.routes");
    assert_non_null(segments);
    assert_non_null(entries);
    for (int i = 0; i < SEGMENTS; i++)
        segments[i] = file.table.entries[0].segments[0];
    for (int i = 0; i < ENTRIES; i++) {
        entries[i] = file.table.entries[0];
        entries[i].segments = segments;
        entries[i].segment_count = SEGMENTS;
    }
    large.table.entries = entries;
    large.table.count = ENTRIES;
    assert_int_equal(fp8r_route_file_write(path, &file), FP8R_OK);
    assert_int_equal(fp8r_route_file_write(path, &large), FP8R_ERROR_FORMAT);
    assert_non_null(strstr(fp8r_last_error(), "a route file has at most 64 MiB"));
    expect_sample(path);
    free(segments);
    free(entries);
    fp8r_route_file_fini(&file);
}

static void cut_files_are_refused(void **state)
{
    (void)state;
    const char *path = scratch_path("cut");
    for (size_t size = 0; size < sizeof sample - 1; size += 7) {
        scratch_write(path, sample, size);
        expect_read(path, FP8R_ERROR_FORMAT, "");
    }
    scratch_write(path, sample, sizeof sample - 1);
    expect_sample(path);
}

/* As somebody without rights: root may everything, so it becomes nobody for a moment. */
static void rights_are_missed_politely(void **state)
{
    (void)state;
    struct fp8r_route_file file = sample_file(), read;
    const char *secret = scratch_path("secret"), *inside = scratch_path("locked/x.routes");
    const char *deeper = scratch_path("locked/a/b/x.routes");
    scratch_write(secret, sample, sizeof sample - 1);
    assert_int_equal(mkdir(scratch_path("locked"), 0500), 0);
    assert_int_equal(chmod(secret, 0), 0);
    bool is_root = geteuid() == 0;
    if (is_root)
        assert_int_equal(seteuid(65534), 0);
    fp8r_status read_status = fp8r_route_file_read(secret, &read);
    bool read_says = strstr(fp8r_last_error(), "Permission denied") != NULL;
    fp8r_status write_status = fp8r_route_file_write(inside, &file);
    bool write_says = strstr(fp8r_last_error(), "cannot be made: Permission denied") != NULL;
    fp8r_status deep_status = fp8r_route_file_write(deeper, &file); /* the folder is at fault, not a file that cannot be in it */
    bool deep_says = strstr(fp8r_last_error(), "cannot be made: Permission denied") && !strstr(fp8r_last_error(), ".tmp");
    if (is_root)
        assert_int_equal(seteuid(0), 0);
    assert_int_equal(read_status, FP8R_ERROR_IO);
    assert_true(read_says);
    assert_int_equal(write_status, FP8R_ERROR_IO);
    assert_true(write_says);
    assert_int_equal(deep_status, FP8R_ERROR_IO);
    assert_true(deep_says);
    assert_int_equal(scratch_count(scratch_path("locked")), 0);
    fp8r_route_file_fini(&file);
}

static void what_must_not_be_replaced_is_not(void **state)
{
    (void)state;
    struct fp8r_route_file file = sample_file();
    const char *pipe_path = scratch_path("pipe2"), *directory = scratch_path("folder");
    assert_int_equal(mkfifo(pipe_path, 0600), 0);
    assert_int_equal(mkdir(directory, 0700), 0);
    assert_int_equal(fp8r_route_file_write(pipe_path, &file), FP8R_ERROR_IO);
    assert_non_null(strstr(fp8r_last_error(), "not a regular file"));
    assert_int_equal(fp8r_route_file_write(directory, &file), FP8R_ERROR_IO);
    assert_int_equal(fp8r_route_file_write(scratch_path("pipe2/x.routes"), &file), FP8R_ERROR_IO);
    assert_int_equal(fp8r_route_file_probe(pipe_path), FP8R_ERROR_IO); /* asking says the same */
    assert_int_equal(fp8r_route_file_probe(directory), FP8R_ERROR_IO);
    assert_int_equal(fp8r_route_file_probe(scratch_path("pipe2/x.routes")), FP8R_ERROR_IO);
    assert_int_equal(fp8r_route_file_probe(scratch_path("folder/deep/x.routes")), FP8R_OK);
    assert_int_equal(scratch_count(scratch_path("folder/deep")), 0);
    assert_int_equal(fp8r_route_file_write("/dev/full", &file), FP8R_ERROR_IO);
    fp8r_route_file_fini(&file);
}

static void a_link_stays_and_its_file_is_replaced(void **state)
{
    (void)state;
    struct fp8r_route_file file = sample_file();
    const char *target = scratch_path("behind/x.routes"), *link = scratch_path("link.routes");
    const char *lost = scratch_path("lost.routes"), *pipe_link = scratch_path("pipe.routes");
    struct stat facts;
    assert_int_equal(mkdir(scratch_path("behind"), 0700), 0);
    scratch_write(target, "old", 3);
    assert_int_equal(symlink("behind/x.routes", link), 0);
    assert_int_equal(fp8r_route_file_probe(link), FP8R_OK);
    assert_int_equal(fp8r_route_file_write(link, &file), FP8R_OK);
    assert_int_equal(lstat(link, &facts), 0);
    assert_true(S_ISLNK(facts.st_mode));
    expect_sample(target);
    assert_int_equal(scratch_count(scratch_path("behind")), 1);
    assert_int_equal(symlink("nowhere", lost), 0);
    assert_int_equal(fp8r_route_file_probe(lost), FP8R_ERROR_IO);
    assert_int_equal(fp8r_route_file_write(lost, &file), FP8R_ERROR_IO);
    assert_non_null(strstr(fp8r_last_error(), "symbolic link that cannot be followed"));
    assert_int_equal(lstat(lost, &facts), 0);
    assert_true(S_ISLNK(facts.st_mode));
    assert_int_equal(mkfifo(scratch_path("pipe3"), 0600), 0);
    assert_int_equal(symlink("pipe3", pipe_link), 0);
    assert_int_equal(fp8r_route_file_write(pipe_link, &file), FP8R_ERROR_IO);
    fp8r_route_file_fini(&file);
}

/* What no reader would take is not written, and what was there stays. */
static void broken_content_is_not_written(void **state)
{
    (void)state;
    const char *path = scratch_path("kept.routes");
    struct fp8r_route_file file = sample_file();
    assert_int_equal(fp8r_route_file_write(path, &file), FP8R_OK);
    struct fp8r_segment *segment = &file.table.entries[0].segments[0], good = *segment;
    struct fp8r_segment bad[6];
    for (int i = 0; i < 6; i++)
        bad[i] = good;
    bad[0].median_us = NAN;
    bad[1].m_last = 0;
    bad[2].m_last = 1000; /* overlaps the next */
    (void)snprintf(bad[3].config, sizeof bad[3].config, "two words");
    bad[4].backend[0] = '\0';
    bad[5].gain_low = -1;
    for (int i = 0; i < 6; i++) {
        *segment = bad[i];
        assert_int_equal(fp8r_route_file_write(path, &file), FP8R_ERROR_FORMAT);
        assert_int_equal(fp8r_route_file_write(scratch_path("new.routes"), &file), FP8R_ERROR_FORMAT);
    }
    *segment = good;
    (void)snprintf(file.facts[0].name, sizeof file.facts[0].name, "No Name");
    assert_int_equal(fp8r_route_file_write(path, &file), FP8R_ERROR_FORMAT);
    expect_sample(path);
    assert_int_equal(access(scratch_path("new.routes"), F_OK), -1);
    fp8r_route_file_fini(&file);
}

/* A temporary name that somebody left behind, or holds right now, is passed by. */
static void leftovers_do_not_block(void **state)
{
    (void)state;
    char name[64];
    const char *path = scratch_path("left/x.routes");
    struct fp8r_route_file file = sample_file();
    assert_int_equal(mkdir(scratch_path("left"), 0700), 0);
    for (int i = 0; i < 3; i++) {
        (void)snprintf(name, sizeof name, "left/x.routes.%ld-%d.tmp", (long)getpid(), i);
        scratch_write(scratch_path(name), "half", 4);
    }
    assert_int_equal(fp8r_route_file_write(path, &file), FP8R_OK);
    expect_sample(path);
    assert_int_equal(scratch_count(scratch_path("left")), 4);
    fp8r_route_file_fini(&file);
}

/* Writers of two different files race; whoever reads sees one of them, whole. */
static void concurrent_writers_leave_whole_files(void **state)
{
    (void)state;
    enum { WRITERS = 4, ROUNDS = 60 };
    const char *path = scratch_path("race/x.routes");
    struct fp8r_route_file file = sample_file();
    assert_int_equal(fp8r_route_file_write(path, &file), FP8R_OK);
    pid_t children[WRITERS];
    for (int i = 0; i < WRITERS; i++) {
        children[i] = child_begin(60);
        assert_true(children[i] >= 0);
        if (children[i] == 0) {
            int failures = 0;
            file.is_quick = i % 2;
            file.identity.threads = 1000 + i % 2;
            for (int j = 0; j < ROUNDS; j++)
                failures += fp8r_route_file_write(path, &file) != FP8R_OK;
            fp8r_route_file_fini(&file);
            _exit(failures != 0);
        }
    }
    for (int i = 0; i < 200; i++) {
        struct fp8r_route_file seen;
        if (fp8r_route_file_read(path, &seen) != FP8R_OK)
            fail_msg("%s", fp8r_last_error());
        assert_int_equal(seen.table.count, 2);
        assert_int_equal(seen.is_quick, seen.identity.threads == 1001);
        fp8r_route_file_fini(&seen);
    }
    for (int i = 0; i < WRITERS; i++) {
        assert_int_equal(child_end(children[i]), 0);
    }
    assert_int_equal(scratch_count(scratch_path("race")), 1);
    fp8r_route_file_fini(&file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_is_read),
        cmocka_unit_test(bare_names_are_written_here),
        cmocka_unit_test(what_is_no_file_is_refused),
        cmocka_unit_test(what_is_too_large_is_not_written),
        cmocka_unit_test(cut_files_are_refused),
        cmocka_unit_test(rights_are_missed_politely),
        cmocka_unit_test(what_must_not_be_replaced_is_not),
        cmocka_unit_test(a_link_stays_and_its_file_is_replaced),
        cmocka_unit_test(broken_content_is_not_written),
        cmocka_unit_test(leftovers_do_not_block),
        cmocka_unit_test(concurrent_writers_leave_whole_files),
    };
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
