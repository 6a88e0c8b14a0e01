/* Adding to a route file: which rows the new entries do not reach, and that nothing is said of rows which stay.
 * SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include <cmocka.h>

#include "scratch.h"
#include "tune/route_update.h"

static char notes[512];
static int note_count;

static void note(void *user, const char *line)
{
    (void)user;
    note_count++;
    (void)snprintf(notes, sizeof notes, "%s", line);
}

/* rows: as in a route file, a segment each: "1..2 8..8". */
static void write_file(const char *path, const char *rows, bool is_quick)
{
    FILE *stream = fopen(path, "w");
    assert_non_null(stream);
    (void)fprintf(stream, "fp8route-routes 1\ndevice cpu\nidentity features=avx2 threads=2 llc_bytes=1048576\nprotocol %s "
                          "mode=eager operands=warm\n\nentry Mx64x64\n", is_quick ? "quick" : "full");
    char copy[256], *rest = copy;
    (void)snprintf(copy, sizeof copy, "%s", rows);
    for (const char *word; (word = strtok_r(rest, " ", &rest));)
        (void)fprintf(stream, "  m=%s backend=cpu config=skinny rev=0123456789ab median_us=10 verdict=tie\n", word);
    (void)fprintf(stream, "\nend entries=1\n");
    assert_int_equal(fclose(stream), 0);
}

/* An update that is open, and what it is to write. */
struct opened {
    struct fp8r_route_update update;
    struct fp8r_route_file measured, rest;
    struct fp8r_tool_error error;
};

/* made: NULL where nothing was measured; rest: a full entry of other samples, NULL where there is none. */
static void open_update(struct opened *opened, const char *held, bool held_is_quick, const char *made, bool made_is_quick,
                        const char *rest)
{
    const char *path = scratch_path("held.routes"), *other = scratch_path("made.routes");
    memset(opened, 0, sizeof *opened);
    write_file(path, held, held_is_quick);
    write_file(other, made ? made : "1..1", made_is_quick);
    assert_int_equal(fp8r_route_file_read(other, &opened->measured), FP8R_OK);
    if (!made) fp8r_table_fini(&opened->measured.table);
    if (rest) {
        write_file(other, rest, false);
        assert_int_equal(fp8r_route_file_read(other, &opened->rest), FP8R_OK);
    }
    assert_int_equal(fp8r_route_update_open(&opened->update, path, &opened->measured, &opened->error), FP8R_EXIT_GOOD);
    note_count = 0;
}

/* Writes it, and closes it. */
static int finish_update(struct opened *opened)
{
    struct fp8r_table *rest = opened->rest.table.count > 0 ? &opened->rest.table : NULL;
    int code = fp8r_route_update_write(&opened->update, &opened->measured, rest, note, NULL, &opened->error);
    fp8r_route_update_close(&opened->update);
    fp8r_route_file_fini(&opened->measured);
    fp8r_route_file_fini(&opened->rest);
    return code;
}

static int update_with(const char *held, bool held_is_quick, const char *made, bool made_is_quick, const char *rest)
{
    struct opened opened;
    open_update(&opened, held, held_is_quick, made, made_is_quick, rest);
    return finish_update(&opened);
}

static int update(const char *held, bool held_is_quick, const char *made, bool made_is_quick)
{
    return update_with(held, held_is_quick, made, made_is_quick, NULL);
}

static void rows_not_reached_are_named(void **state)
{
    (void)state;
    static const struct {
        const char *held, *made, *rows; /* rows: NULL where none is lost */
    } cases[] = {{"1..8", "1..8", NULL},
                 {"1..8", "1..64", NULL},
                 {"1..2 3..4", "2..64", "1"},
                 {"2..4", "3..3", "2 and 4"},
                 {"1..2 3..8 9..64", "16..32", "1..15 and 33..64"},
                 /* holes: of the old entry, which lost nothing there, and of the new one */
                 {"1..2 65..128", "65..128", "1..2"},
                 {"1..2 65..128", "3..64", "1..2 and 65..128"},
                 {"1..64", "1..2 9..16 33..64", "3..8 and 17..32"},
                 {"1..1 3..3 5..5", "2..2", "1, 3 and 5"},
                 {"1..9223372036854775807", "1..9223372036854775807", NULL},
                 {"1..5 9..9223372036854775807", "2..9223372036854775807", "1"},
                 {"1..1 3..3 5..5 7..7 9..9", "2..2", "1, 3, 5, 7 and others"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char line[256];
        assert_int_equal(update(cases[i].held, false, cases[i].made, false), FP8R_EXIT_GOOD);
        assert_int_equal(note_count, cases[i].rows != NULL);
        (void)snprintf(line, sizeof line, "Mx64x64: the file's routes for M=%s are gone: a new entry replaces the old one whole",
                       cases[i].rows);
        if (cases[i].rows) assert_string_equal(notes, line);
    }
}

static void a_full_entry_stays(void **state)
{
    (void)state;
    assert_int_equal(update("1..8", false, "1..2", true), FP8R_EXIT_GOOD);
    assert_int_equal(note_count, 0);
    assert_int_equal(update("1..8", true, "1..2", true), FP8R_EXIT_GOOD);
    assert_int_equal(note_count, 1);
}

/* What other samples say takes a quick entry's place, too, whether or not its family was measured now. */
static void full_entries_of_others_count(void **state)
{
    (void)state;
    assert_int_equal(update_with("1..8", true, NULL, false, "1..2"), FP8R_EXIT_GOOD);
    assert_int_equal(note_count, 1);
    assert_non_null(strstr(notes, "M=3..8 are gone"));
    assert_int_equal(update_with("1..8", true, "1..4", true, "1..2"), FP8R_EXIT_GOOD);
    assert_int_equal(note_count, 1);
    assert_non_null(strstr(notes, "M=3..8 are gone"));
    assert_int_equal(update_with("1..8", false, NULL, false, "1..2"), FP8R_EXIT_GOOD);
    assert_int_equal(note_count, 0);
}

/* A disk that is full: the file is as before, and so nothing was lost. */
static void what_is_not_written_loses_nothing(void **state)
{
    (void)state;
    struct rlimit before, none;
    struct opened opened;
    struct fp8r_route_file held;
    open_update(&opened, "1..8", false, "1..2", false, NULL);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    none = (struct rlimit){.rlim_cur = 0, .rlim_max = before.rlim_max};
    (void)signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &none), 0);
    const int code = finish_update(&opened);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_int_equal(code, FP8R_EXIT_BAD_DATA);
    assert_int_equal(note_count, 0);
    assert_int_equal(fp8r_route_file_read(scratch_path("held.routes"), &held), FP8R_OK);
    assert_int_equal(held.table.entries[0].segments[0].m_last, 8);
    fp8r_route_file_fini(&held);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_not_reached_are_named),
        cmocka_unit_test(a_full_entry_stays),
        cmocka_unit_test(full_entries_of_others_count),
        cmocka_unit_test(what_is_not_written_loses_nothing),
    };
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
