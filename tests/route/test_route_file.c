/* The format of route files: what is read, what is refused and with which words, and that writing and reading give the
 * same bytes again. SPDX-License-Identifier: Apache-2.0 */
#include <locale.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "route_sample.h"

/* The text of a file that parses, written again. */
static char *rewritten(const char *text)
{
    struct fp8r_route_file file;
    char *again = NULL;
    if (sample_parse(text, &file) != FP8R_OK)
        fail_msg("%s", fp8r_last_error());
    assert_int_equal(fp8r_route_file_format(&file, &again), FP8R_OK);
    fp8r_route_file_fini(&file);
    return again;
}

/* The sample with the first `from` replaced. */
static char *edited(const char *from, const char *to)
{
    static const char sample[] = SAMPLE_TEXT;
    const char *at = strstr(sample, from);
    assert_non_null(at);
    size_t size = sizeof sample + strlen(to);
    char *text = malloc(size);
    assert_non_null(text);
    (void)snprintf(text, size, "%.*s%s%s", (int)(at - sample), sample, to, at + strlen(from));
    return text;
}

static void sample_is_read(void **state)
{
    (void)state;
    struct fp8r_route_file file;
    struct fp8r_key key;
    char line[256];
    assert_int_equal(sample_parse(SAMPLE_TEXT, &file), FP8R_OK);
    struct fp8r_identity here = sample_identity();
    assert_true(fp8r_identity_fits(&file.identity, &here, line, sizeof line));
    assert_string_equal(file.identity.libraries[0].version, "openblas 0.3.21");
    assert_int_equal(file.fact_count, 2);
    assert_string_equal(file.facts[0].name, "name");
    assert_string_equal(file.facts[0].value, "A \"fine\" processor");
    assert_false(file.is_quick);
    assert_true(file.is_cold);
    assert_int_equal(file.mode, FP8R_MODE_EAGER);
    assert_int_equal(file.table.count, 2);
    assert_string_equal(file.table.files[0], "sample");
    assert_int_equal(fp8r_family_parse("Mx4096x14336", FP8R_MODE_EAGER, &key), FP8R_OK);
    const struct fp8r_entry *entry = fp8r_table_find(&file.table, &key);
    assert_non_null(entry);
    assert_int_equal(entry->segment_count, 3);
    const struct fp8r_segment *first = &entry->segments[0], *last = &entry->segments[2];
    assert_int_equal(first->m_first, 1);
    assert_int_equal(first->m_last, 16);
    assert_string_equal(first->backend, "cpu");
    assert_string_equal(first->config, "avx512_skinny");
    assert_string_equal(first->rev, "0123456789ab");
    assert_true(first->median_us == 812.4);
    assert_string_equal(first->runner_up, "blas:sgemm");
    assert_true(first->runner_up_us == 9120);
    assert_true(first->gain_low == 10.9 && first->gain_high == 11.6);
    assert_true(first->is_clear);
    assert_true(entry->segments[1].median_us == 0.00081243 && entry->segments[1].gain_high == 0);
    assert_string_equal(entry->segments[1].runner_up, "");
    const struct fp8r_segment *middle = &entry->segments[1];
    assert_int_equal(middle->at.count, 3);
    assert_true(middle->at.values[0] == 17 && middle->at.values[1] == 32 && middle->at.values[2] == 64);
    assert_string_equal(middle->rival, "cpu:x");
    assert_true(middle->rival_us == 0.5 && middle->rival_low == 0.99 && middle->rival_high == 1.25);
    assert_true(first->at.count == 0 && first->rival[0] == '\0');
    assert_string_equal(last->rev, "a b");
    assert_true(last->m_last == INT64_MAX && !last->is_clear);
    fp8r_route_file_fini(&file);
    assert_int_equal(file.table.count, 0);
}

/* Files of before do not say what calls stood behind: themselves, and what is said of them stays as short. */
static void behind_is_optional(void **state)
{
    (void)state;
    static const struct {
        const char *field, *again;
        bool is_behind_both;
    } rows[] = {{"", "mode=graph operands=cold\n", false},
                {" behind=itself", "mode=graph operands=cold\n", false},
                {" behind=both", "mode=graph operands=cold behind=both\n", true}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[256];
        struct fp8r_route_file file;
        (void)snprintf(text, sizeof text,
                       "fp8route-routes 1\ndevice cuda\nidentity arch=90 sm_count=132 bandwidth_gbs=5000\n"
                       "protocol full mode=graph operands=cold%s\nend entries=0\n",
                       rows[i].field);
        assert_int_equal(sample_parse(text, &file), FP8R_OK);
        assert_int_equal(file.is_behind_both, rows[i].is_behind_both);
        fp8r_route_file_fini(&file);
        char *again = rewritten(text);
        assert_non_null(strstr(again, rows[i].again));
        free(again);
    }
}

static void cuda_is_read(void **state)
{
    (void)state;
    struct fp8r_route_file file;
    static const char text[] = "fp8route-routes 1\ndevice cuda\nidentity arch=90 sm_count=132 bandwidth_gbs=5000\n"
                               "protocol quick mode=graph operands=warm\nend entries=0\n";
    assert_int_equal(sample_parse(text, &file), FP8R_OK);
    assert_int_equal(file.identity.kind, FP8R_DEVICE_CUDA);
    assert_int_equal(file.identity.arch, 90);
    assert_int_equal(file.identity.sm_count, 132);
    assert_int_equal(file.identity.bandwidth_class, 5000);
    assert_int_equal(file.mode, FP8R_MODE_GRAPH);
    assert_true(file.is_quick && !file.is_cold);
    fp8r_route_file_fini(&file);
    char *again = rewritten(text);
    assert_non_null(strstr(again, "identity arch=90 sm_count=132 bandwidth_gbs=5000\n"));
    free(again);
}

/* In a file of full measurements an entry may be a quick one; in a quick file all are. */
static void an_entry_may_be_quick(void **state)
{
    (void)state;
    struct fp8r_route_file file;
    static const char head[] = "fp8route-routes 1\ndevice cpu\nidentity features=none threads=2 llc_bytes=1\nprotocol ";
    static const char body[] = " mode=eager operands=cold\n\nentry Mx64x64\n"
                               "  m=1..8 backend=cpu config=a rev=1 median_us=1 verdict=tie\n\nentry Mx64x96 quick\n"
                               "  m=1..8 backend=cpu config=a rev=1 median_us=1 verdict=tie\n\nend entries=2\n";
    char text[1024];
    snprintf(text, sizeof text, "%sfull%s", head, body);
    assert_int_equal(sample_parse(text, &file), FP8R_OK);
    assert_true(!file.is_quick && !file.table.entries[0].is_quick && file.table.entries[1].is_quick);
    fp8r_route_file_fini(&file);
    char *again = rewritten(text);
    assert_string_equal(again, text);
    free(again);
    snprintf(text, sizeof text, "%squick%s", head, body);
    assert_int_equal(sample_parse(text, &file), FP8R_OK);
    assert_true(file.table.entries[0].is_quick && file.table.entries[1].is_quick);
    fp8r_route_file_fini(&file);
}

static void the_sample_is_written_as_it_was_read(void **state)
{
    (void)state;
    char *again = rewritten(SAMPLE_TEXT);
    assert_string_equal(again, SAMPLE_TEXT);
    free(again);
}

/* Comments, blank lines, indentation, other line ends, the order of fields and entries: all the same file. */
static void writing_is_canonical(void **state)
{
    (void)state;
    char *again = rewritten(
        "# routes\r\n\r\nfp8route-routes 1 \n\t device\tcpu\n#\nidentity llc_bytes=272629760  threads=0002 "
        "features=fma+avx2+avx512+f16c\nfact name \"A \\\"fine\\\" processor\"\nlibrary blas \"openblas 0.3.21\"\n"
        "fact date \"2026-11-29\"\nprotocol full operands=cold mode=eager\nentry 16*Mx512x128:tensor:fp16\n"
        "m=1..1 backend=reference config=plain rev=\"1\" median_us=1.000 verdict=clear\nentry Mx4096x14336:bf16\r\n"
        "  \t m=1..16 verdict=clear backend=cpu config=avx512_skinny rev=0123456789ab median_us=0812.40000 "
        "gain=10.9..11.6 runner_up_us=9120.0 runner_up=blas:sgemm   \r\n"
        "m=17..64 backend=blas config=sgemm rev=\"\" rival_gain=0.990..1.25 rival_us=0.50 rival=cpu:x "
        "median_us=0.00081243 at=17,032,64 verdict=tie\n# and\n"
        "m=128..9223372036854775807 backend=blas config=sgemm rev=\"a b\" median_us=123457000.0 "
        "verdict=tie gain=1..1.02\nend entries=2\n\n# the end\n");
    assert_string_equal(again, SAMPLE_TEXT);
    free(again);
}

static void every_truncation_is_refused(void **state)
{
    (void)state;
    static const char sample[] = SAMPLE_TEXT;
    struct fp8r_route_file file;
    memset(&file, 0x5A, sizeof file);
    for (size_t size = 0; size < sizeof sample - 1; size++) {
        /* A copy of that size: a read behind it is seen by a sanitizer. */
        char *cut = malloc(size ? size : 1);
        assert_non_null(cut);
        memcpy(cut, sample, size);
        if (fp8r_route_file_parse("cut", cut, size, &file) != FP8R_ERROR_FORMAT)
            fail_msg("%zu bytes of the sample were accepted", size);
        assert_int_equal(strncmp(fp8r_last_error(), "cut", 3), 0);
        free(cut);
    }
    for (size_t i = 0; i < sizeof file; i++)
        assert_int_equal(((unsigned char *)&file)[i], 0x5A);
}

/* Flipped bytes: refused, or something valid that is written and read as itself. */
static void flipped_bytes_do_no_harm(void **state)
{
    (void)state;
    char text[] = SAMPLE_TEXT;
    uint64_t random = 88172645463325252u;
    int accepted = 0;
    for (int i = 0; i < 10000; i++) {
        char saved[3];
        size_t at[3];
        for (int j = 0; j < 3; j++) { /* xorshift64 */
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            at[j] = random % (sizeof text - 1);
            saved[j] = text[at[j]];
            if (j <= i % 3)
                text[at[j]] = (char)(random >> 32);
        }
        struct fp8r_route_file file;
        fp8r_status status = fp8r_route_file_parse("flipped", text, sizeof text - 1, &file);
        if (status == FP8R_OK) {
            char *one = NULL;
            accepted++;
            assert_int_equal(fp8r_route_file_format(&file, &one), FP8R_OK);
            fp8r_route_file_fini(&file);
            char *other = rewritten(one);
            assert_string_equal(one, other);
            free(one);
            free(other);
        } else {
            assert_int_equal(status, FP8R_ERROR_FORMAT);
        }
        for (int j = 3; j-- > 0;)
            text[at[j]] = saved[j];
    }
    assert_string_equal(text, SAMPLE_TEXT);
    assert_in_range(accepted, 1, 9999);
}

/* Every way a line can be wrong: the message has the line's number and says what would be right. */
static void faults_are_named(void **state)
{
    (void)state;
#define LONG_64 "0123456789012345678901234567890123456789012345678901234567890123"
    static const struct {
        const char *from, *to, *message;
    } cases[] = {
        {"fp8route-routes 1", "fp8route-routes 2", "line 1: version 2 of the format is unknown: this library reads"},
        {"fp8route-routes 1", "fp8route-routes", "line 1: expected the format's version, 1"},
        {"fp8route-routes 1", "fp8route-routes 1 1", "line 1: there is more on the line than belongs to"},
        {"fp8route-routes 1", "{", "line 1: \"{\" does not belong here: expected the line \"fp8route-routes 1\""},
        {"device cpu\n", "device tpu\n", "line 2: device tpu is unknown: expected cpu or cuda"},
        {"device cpu\n", "device\n", "line 2: expected cpu or cuda"},
        {"device cpu\n", "", "line 2: \"identity\" does not belong here: expected \"device cpu\""},
        {"device cpu\n", "device cuda\n", "line 3: there is no field \"features\" here: expected one of arch, sm_count"},
        {"f16c", "sse9", "line 3: features=avx2+fma+sse9+avx512: expected processor features joined by +"},
        {"threads=2", "threads=0", "line 3: threads=0: expected a whole number from 1 to 2147483647"},
        {"threads=2", "threads=2147483648", "expected a whole number from 1 to"},
        {"threads=2", "threads=-2", "expected a whole number"},
        {"threads=2", "threads=2 threads=2", "line 3: the field threads is given twice"},
        {"threads=2", "", "line 3: the field threads is missing"},
        {"threads=2", "threads=", "line 3: the field threads has no value"},
        {"threads=2", "threads", "line 3: \"threads\" is no NAME=VALUE: expected one of features, threads, llc_bytes"},
        {"threads=2", "thread=2", "there is no field \"thread\" here"},
        {"threads=2", "threadss=2", "there is no field \"threadss\" here"},
        {"llc_bytes=272629760", "llc_bytes=9223372036854775808", "expected a whole number"},
        {"llc_bytes=272629760", "llc_bytes=2e9", "expected a whole number"},
        {"library blas \"openblas 0.3.21\"", "library blas openblas", "line 4: expected the library's name and version"},
        {"library blas \"openblas 0.3.21\"", "library", "line 4: expected the name of a backend"},
        {"library blas \"openblas 0.3.21\"", "library b+s \"x\"", "line 4: backend b+s: expected 1 to 63 letters"},
        {"library blas \"openblas 0.3.21\"", "library blas \"\"", "must be 1 to 63 bytes"},
        {"library blas \"openblas 0.3.21\"", "library blas \"" LONG_64 "\"", "must be 1 to 63 bytes"},
        {"library blas \"openblas 0.3.21\"", "library blas \"x\"\nlibrary blas \"y\"", "line 5: the library of blas is "},
        {"fact date", "fact Date", "line 6: fact Date: expected a name of 1 to 31 of a-z, 0-9 and _"},
        {"fact date", "fact " LONG_64, "expected a name of 1 to 31"},
        {"fact date", "fact name", "line 6: the fact name is given twice"},
        {"fact date", "fact", "line 6: fact \"2026-11-29\": expected a name"},
        {"fact date \"2026-11-29\"", "fact", "line 6: expected the fact's name"},
        {"\"2026-11-29\"", "\"2026-11-29", "line 6: the quoted text has no closing quote"},
        {"\"2026-11-29\"", "\"2026\\n\"", "line 6: \\ in quotes stands before \" or \\ only"},
        {"\"2026-11-29\"", "\"2026\\", "line 6: \\ in quotes"},
        {"\"2026-11-29\"", "\"" LONG_64 LONG_64 LONG_64 "\"", "line 6: the value of fact date is too long: at most 159"},
        {"\"2026-11-29\"", "\"" LONG_64 LONG_64 LONG_64 LONG_64 LONG_64 "\"", "line 6: the quoted text is too long"},
        {"\"2026-11-29\"", "\"2026\" x", "line 6: there is more on the line than belongs to \"fact\""},
        {"\"2026-11-29\"", "\"20\x1b[2J\"", "line 6: it holds the control character 0x1b"},
        {"\"2026-11-29\"", "\"20\x7f\"", "line 6: it holds the control character 0x7f"},
        {"\"2026-11-29\"", "\"20\xc2\x9b\"", "line 6: the quoted text holds the byte 0xc2: expected printable ASCII"},
        {"protocol full", "protocol half", "line 7: protocol half is unknown: expected quick or full"},
        {"protocol full", "protocols full", "line 7: \"protocols\" does not belong here: expected library, fact or proto"},
        {"mode=eager", "mode=lazy", "line 7: mode=lazy: expected eager or graph"},
        {"operands=cold", "operands=hot", "line 7: operands=hot: expected cold or warm"},
        {" operands=cold", "", "line 7: the field operands is missing"},
        {"operands=cold", "operands=cold behind=all", "line 7: behind=all: expected itself or both"},
        {"protocol full mode=eager operands=cold\n", "", "\"entry\" does not belong here: expected library, fact or"},
        {"entry Mx4096x14336\n", "", "line 9: a segment before the first entry: expected entry or end"},
        {"entry Mx4096x14336", "entry", "line 9: expected a family, like Mx4096x14336"},
        {"entry Mx4096x14336", "entry 1x4096x14336", "line 9: problem \"1x4096x14336\", position 1: expected the letter M"},
        {"entry Mx4096x14336", "entry Mx4096x0", "line 9: family Mx4096x0 is empty: batch, N and K must be at least 1"},
        {"entry Mx4096x14336", "entry 0*Mx4096x64", "is empty"},
        {"entry Mx4096x14336", "entry Mx0x64", "is empty"},
        {"entry Mx4096x14336", "entry Mx4x64 rev=1", "line 9: \"rev=1\" behind the family: expected quick, or nothing"},
        {"entry Mx4096x14336", "entry Mx4x64 quick x", "line 9: there is more on the line than belongs to \"entry\""},
        {"entry Mx4096x14336", "entry Mx64x64\nentry Mx4096x14336", "line 10: the entry of line 9 has no segment"},
        {"entry Mx4096x14336", "entry 16*Mx512x128:tensor:fp16", "line 14: the entry of line 9 is there again"},
        {"entry Mx4096x14336", "model Mx4096x14336", "line 9: \"model\" does not belong here: expected entry, a segment"},
        {"entry Mx4096x14336", "entry " LONG_64 LONG_64 LONG_64 LONG_64 LONG_64, "is too long: expected a family"},
        {"m=1..16", "m=1", "line 10: m=1: expected FIRST..LAST with 1 <= FIRST <= LAST"},
        {"m=1..16", "m=0..16", "expected FIRST..LAST"},
        {"m=1..16", "m=16..1", "expected FIRST..LAST"},
        {"m=1..16", "m=1.16", "expected FIRST..LAST"},
        {"m=1..16", "m=..16", "expected FIRST..LAST"},
        {"m=1..16", "m=1..16..", "expected FIRST..LAST"},
        {"m=1..16", "m=1..9223372036854775808", "expected FIRST..LAST"},
        {"m=1..16", "m=1..17", "line 11: m=17..64 does not lie above the segment before, which ends at 17"},
        {"m=17..64 at=17,32,64", "m=1..16", "line 11: m=1..16 does not lie above the segment before"},
        {"m=1..16", "  n=1..16", "line 10: \"n=1..16\" does not belong here"},
        {"m=1..16 backend=cpu", "backend=cpu m=1..16", "line 10: \"backend=cpu\" does not belong here: expected entry"},
        {"backend=cpu", "backend=cpu:x", "line 10: backend=cpu:x: expected 1 to 63 letters, digits and _.=-"},
        {"backend=cpu", "backend=\"\"", "expected 1 to 63 letters"},
        {"backend=cpu", "backend=" LONG_64, "expected 1 to 63 letters"},
        {"config=avx512_skinny ", "", "line 10: the field config is missing"},
        {"rev=0123456789ab ", "", "line 10: the field rev is missing"},
        {"rev=0123456789ab", "rev=0123456789012345678901234567890123456789", "expected at most 39 bytes"},
        {"rev=0123456789ab", "rev=\"a\"b", "\"b\" is no NAME=VALUE"},
        {"median_us=812.4", "median_us=0", "line 10: median_us=0: expected a number above 0 of at most 15 digits"},
        {"median_us=812.4", "median_us=0.000", "expected a number above 0"},
        {"median_us=812.4", "median_us=-1", "expected a number above 0"},
        {"median_us=812.4", "median_us=+1", "expected a number above 0"},
        {"median_us=812.4", "median_us=nan", "expected a number above 0"},
        {"median_us=812.4", "median_us=inf", "expected a number above 0"},
        {"median_us=812.4", "median_us=1e3", "expected a number above 0"},
        {"median_us=812.4", "median_us=0x10", "expected a number above 0"},
        {"median_us=812.4", "median_us=812,4", "expected a number above 0"},
        {"median_us=812.4", "median_us=812.", "expected a number above 0"},
        {"median_us=812.4", "median_us=.4", "expected a number above 0"},
        {"median_us=812.4", "median_us=8.1.2", "expected a number above 0"},
        {"median_us=812.4", "median_us=1234567890123456", "expected a number above 0 of at most 15 digits"},
        {"median_us=812.4", "median_us=0.00000000000000000000001", "expected a number above 0"},
        {"runner_up=blas:sgemm ", "", "line 10: runner_up and runner_up_us belong together: one of them is missing"},
        {"runner_up_us=9120 ", "", "line 10: runner_up and runner_up_us belong together"},
        {"runner_up=blas:sgemm", "runner_up=blas", "line 10: runner_up=blas: expected BACKEND:CONFIGURATION"},
        {"runner_up=blas:sgemm", "runner_up=:sgemm", "expected BACKEND:CONFIGURATION"},
        {"runner_up=blas:sgemm", "runner_up=blas:", "expected BACKEND:CONFIGURATION"},
        {"runner_up=blas:sgemm", "runner_up=b/s:sgemm", "expected BACKEND:CONFIGURATION"},
        {"runner_up=blas:sgemm", "runner_up=blas:s:g", "expected BACKEND:CONFIGURATION"},
        {"runner_up=blas:sgemm", "runner_up=" LONG_64 ":sgemm", "expected BACKEND:CONFIGURATION"},
        {"at=17,32,64", "at=17,32,65", "line 11: at names rows that lie outside of m=17..64"},
        {"at=17,32,64", "at=16,32", "line 11: at names rows that lie outside of m=17..64"},
        {"at=17,32,64", "at=32,17", "line 11: at=32,17: expected ascending whole numbers of at least 1"},
        {"at=17,32,64", "at=17,17", "expected ascending whole numbers"},
        {"at=17,32,64", "at=17,", "expected ascending whole numbers"},
        {"at=17,32,64", "at=0", "expected ascending whole numbers"},
        {"at=17,32,64", "at=17,18,19,20,21,22,23,24,25,26,27,28,29,30,31,32,33", "at most 16"},
        {"rival=cpu:x ", "", "line 11: rival, rival_us and rival_gain belong together: one of them is missing"},
        {"rival_us=0.5 ", "", "line 11: rival, rival_us and rival_gain belong together"},
        {"rival_gain=0.99..1.25 ", "", "line 11: rival, rival_us and rival_gain belong together"},
        {"gain=10.9..11.6", "gain=11.6..10.9", "line 10: gain=11.6..10.9: expected LOW..HIGH with 0 < LOW <= HIGH"},
        {"gain=10.9..11.6", "gain=10.9", "expected LOW..HIGH"},
        {"gain=10.9..11.6", "gain=0..1", "expected LOW..HIGH"},
        {"gain=10.9..11.6", "gain=1...2", "expected LOW..HIGH"},
        {"gain=10.9..11.6", "gain=1..2..3", "expected LOW..HIGH"},
        {"verdict=clear", "verdict=sure", "line 10: verdict=sure: expected clear or tie"},
        {"verdict=clear\n", "verdict=clear speed=1\n", "line 10: there is no field \"speed\" here: expected one of m, at, b"},
        {"end entries=2\n", "end entries=3\n", "line 17: it says 3 entries, but 2 came before"},
        {"end entries=2\n", "end entries=1\n", "line 17: it says 1 entries, but 2 came before"},
        {"end entries=2\n", "end\n", "line 17: the field entries is missing"},
        {"end entries=2\n", "", "ends behind line 16, it was cut short: expected entry, a segment"},
        {"end entries=2\n", "end entries=2", "line 17: the line has no end: the file was cut short"},
        {"end entries=2\n", "entry Mx8x8\nend entries=3\n", "line 18: the entry of line 17 has no segment"},
        {"end entries=2\n", "end entries=2\nfp8route-routes 1\n", "line 18: \"fp8route-routes\" does not belong here: e"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct fp8r_route_file file;
        char *text = edited(cases[i].from, cases[i].to);
        fp8r_status status = sample_parse(text, &file);
        free(text);
        if (status != FP8R_ERROR_FORMAT)
            fail_msg("%s instead of %s: accepted", cases[i].to, cases[i].from);
        if (!strstr(fp8r_last_error(), cases[i].message))
            fail_msg("\"%s\" instead of \"%s\": the message is \"%s\", not \"...%s\"", cases[i].to, cases[i].from,
                     fp8r_last_error(), cases[i].message);
        assert_null(strchr(fp8r_last_error(), '\n'));
    }
}

static void zero_bytes_and_emptiness_are_refused(void **state)
{
    (void)state;
    struct fp8r_route_file file;
    char text[] = SAMPLE_TEXT;
    assert_int_equal(fp8r_route_file_parse("none", "", 0, &file), FP8R_ERROR_FORMAT);
    assert_int_equal(fp8r_route_file_parse("blank", "\n \n# x\n", 7, &file), FP8R_ERROR_FORMAT);
    text[40] = '\0';
    assert_int_equal(fp8r_route_file_parse("zero", text, sizeof text - 1, &file), FP8R_ERROR_FORMAT);
    assert_non_null(strstr(fp8r_last_error(), "control character 0x00"));
}

static void too_many_header_lines_are_refused(void **state)
{
    (void)state;
    for (int kind = 0; kind < 2; kind++) {
        char text[4096] = SAMPLE_HEADER;
        int limit = kind ? FP8R_FACTS_MAX : FP8R_LIBRARIES_MAX, there = kind ? 2 : 1;
        struct fp8r_route_file file;
        for (int i = there; i <= limit; i++) {
            char tail[sizeof text + 128];
            (void)snprintf(tail, sizeof tail, "%s" SAMPLE_FULL "end entries=0\n", text);
            assert_int_equal(sample_parse(tail, &file), FP8R_OK);
            fp8r_route_file_fini(&file);
            size_t used = strlen(text);
            (void)snprintf(text + used, sizeof text - used, kind ? "fact f%d \"v\"\n" : "library l%d \"v 1.2\"\n", i);
        }
        assert_int_equal(sample_parse(text, &file), FP8R_ERROR_FORMAT);
        assert_non_null(strstr(fp8r_last_error(), kind ? "at most 16 facts" : "at most 8 libraries"));
    }
}

/* Names are checked as names only: whether there is such a backend is the lookup's question. */
static void unknown_backends_are_no_fault(void **state)
{
    (void)state;
    char *text = edited("backend=cpu config=avx512_skinny", "backend=quantum config=q.8=-_Z"), *again = rewritten(text);
    assert_string_equal(text, again);
    free(text);
    free(again);
}

static char *with_median(double value)
{
    struct fp8r_route_file file;
    char *text = NULL;
    assert_int_equal(sample_parse(SAMPLE_TEXT, &file), FP8R_OK);
    file.table.entries[0].segments[0].median_us = value;
    assert_int_equal(fp8r_route_file_format(&file, &text), FP8R_OK);
    fp8r_route_file_fini(&file);
    return text;
}

static void times_keep_six_digits(void **state)
{
    (void)state;
    static const struct {
        double value;
        const char *text;
    } cases[] = {{1, "1"},           {10, "10"},           {812.4, "812.4"},       {0.1, "0.1"},
                 {0.25, "0.25"},     {999999.4, "999999"}, {999999.6, "1000000"},  {1234567.8, "1234570"},
                 {123.4565, "123.457"}, {0.99999951, "1"}, {0.000123456, "0.000123456"}, {1e-9, "0.000000001"},
                 {3.25e14, "325000000000000"}, {1.0 / 3, "0.333333"}, {2e-15, "0.000000000000002"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char wanted[64], *text = with_median(cases[i].value), *again = rewritten(text);
        (void)snprintf(wanted, sizeof wanted, " median_us=%s ", cases[i].text);
        if (!strstr(text, wanted))
            fail_msg("%g is not written as %s", cases[i].value, cases[i].text);
        assert_string_equal(text, again);
        free(text);
        free(again);
    }
}

/* Random times over the whole range: what is read back is within half of the sixth digit, and is written the same. */
static void random_times_read_back(void **state)
{
    (void)state;
    srand(7);
    for (int i = 0; i < 300; i++) {
        double value = pow(10, -14 + 28.0 * rand() / RAND_MAX);
        struct fp8r_route_file file;
        char *text = with_median(value), *again = rewritten(text);
        assert_string_equal(text, again);
        assert_int_equal(sample_parse(text, &file), FP8R_OK);
        double back = file.table.entries[0].segments[0].median_us;
        if (!(fabs(back / value - 1) <= 5.0001e-6))
            fail_msg("%.17g came back as %.17g", value, back);
        fp8r_route_file_fini(&file);
        free(text);
        free(again);
    }
}

/* What is no time at all is written so that nothing reads it. */
static void broken_times_are_not_read_back(void **state)
{
    (void)state;
    const double cases[] = {0, -1, NAN, INFINITY, -INFINITY, 1e300, 1e-300};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct fp8r_route_file file;
        char *text = with_median(cases[i]);
        assert_int_equal(sample_parse(text, &file), FP8R_ERROR_FORMAT);
        free(text);
    }
}

static void the_locale_does_not_matter(void **state)
{
    (void)state;
    static const char *const locales[] = {"de_DE.UTF-8", "fr_FR.UTF-8", "de_DE", "ru_RU.UTF-8"};
    for (size_t i = 0; i < sizeof locales / sizeof *locales; i++) {
        if (!setlocale(LC_ALL, locales[i]))
            continue;
        char *again = rewritten(SAMPLE_TEXT);
        (void)setlocale(LC_ALL, "C");
        assert_string_equal(again, SAMPLE_TEXT);
        free(again);
        return;
    }
    print_message("no locale with a decimal comma is installed\n");
    skip();
}

/* In memory in any order, on the disk in one. */
static void entries_and_libraries_are_sorted(void **state)
{
    (void)state;
    struct fp8r_route_file file;
    char *text = NULL;
    assert_int_equal(sample_parse(SAMPLE_TEXT, &file), FP8R_OK);
    struct fp8r_entry swapped = file.table.entries[0];
    file.table.entries[0] = file.table.entries[1];
    file.table.entries[1] = swapped;
    struct fp8r_library added = {"another", "mkl 2024.2"};
    file.identity.libraries[file.identity.library_count++] = added;
    assert_int_equal(fp8r_route_file_format(&file, &text), FP8R_OK);
    char *expected = edited("library blas", "library another \"mkl 2024.2\"\nlibrary blas");
    assert_string_equal(text, expected);
    fp8r_route_file_fini(&file);
    free(text);
    free(expected);
}

static void facts_are_written_in_ascii(void **state)
{
    (void)state;
    struct fp8r_route_file file;
    char *text = NULL;
    assert_int_equal(sample_parse(SAMPLE_TEXT, &file), FP8R_OK);
    (void)snprintf(file.facts[1].value, sizeof file.facts[1].value, "a\nb\x1b\xc3\xa9\\");
    assert_int_equal(fp8r_route_file_format(&file, &text), FP8R_OK);
    assert_non_null(strstr(text, "fact date \"a b ??\\\\\"\n"));
    fp8r_route_file_fini(&file);
    char *again = rewritten(text);
    assert_string_equal(text, again);
    free(text);
    free(again);
}

/* Thousands of entries in any order, and one entry of thousands of segments. */
static void large_files_are_read(void **state)
{
    (void)state;
    enum { MANY = 5000 };
    size_t size = MANY * 200 + 1000, used = 0;
    char *text = malloc(size);
    assert_non_null(text);
    used += (size_t)snprintf(text, size, SAMPLE_HEADER SAMPLE_FULL);
    for (int i = 0; i < MANY; i++) /* 7919 is prime: a permutation */
        used += (size_t)snprintf(text + used, size - used,
                                 "entry Mx%dx64\nm=1..1 backend=b config=c rev=r median_us=1 verdict=tie\n",
                                 16 + i * 7919 % MANY);
    used += (size_t)snprintf(text + used, size - used, "entry Mx64x128\n");
    for (int i = 1; i <= MANY; i++)
        used += (size_t)snprintf(text + used, size - used,
                                 "m=%d..%d backend=b config=c rev=r median_us=%d verdict=tie\n", 2 * i, 2 * i, i);
    (void)snprintf(text + used, size - used, "end entries=%d\n", MANY + 1);
    struct fp8r_route_file file;
    struct fp8r_key key;
    assert_int_equal(sample_parse(text, &file), FP8R_OK);
    assert_int_equal(file.table.count, MANY + 1);
    assert_int_equal(fp8r_family_parse("Mx64x128", FP8R_MODE_EAGER, &key), FP8R_OK);
    const struct fp8r_entry *entry = fp8r_table_find(&file.table, &key);
    assert_non_null(entry);
    for (int i = 1; i <= MANY; i++) {
        const struct fp8r_segment *segment = fp8r_entry_segment(entry, 2 * i);
        assert_non_null(segment);
        assert_true(segment->median_us == i);
        assert_null(fp8r_entry_segment(entry, 2 * i + 1));
    }
    fp8r_route_file_fini(&file);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sample_is_read),
        cmocka_unit_test(cuda_is_read), cmocka_unit_test(behind_is_optional),
        cmocka_unit_test(an_entry_may_be_quick),
        cmocka_unit_test(the_sample_is_written_as_it_was_read),
        cmocka_unit_test(writing_is_canonical),
        cmocka_unit_test(every_truncation_is_refused),
        cmocka_unit_test(flipped_bytes_do_no_harm),
        cmocka_unit_test(faults_are_named),
        cmocka_unit_test(zero_bytes_and_emptiness_are_refused),
        cmocka_unit_test(too_many_header_lines_are_refused),
        cmocka_unit_test(unknown_backends_are_no_fault),
        cmocka_unit_test(times_keep_six_digits),
        cmocka_unit_test(random_times_read_back),
        cmocka_unit_test(broken_times_are_not_read_back),
        cmocka_unit_test(the_locale_does_not_matter),
        cmocka_unit_test(entries_and_libraries_are_sorted),
        cmocka_unit_test(facts_are_written_in_ascii),
        cmocka_unit_test(large_files_are_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
