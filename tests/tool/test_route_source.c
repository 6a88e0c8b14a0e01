/* Exported source: compiled and run, it decides what the library decides from the same file, at every border of a segment
 * and the rows beside it, at random rows, above what was measured, and between families.
 * SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "problem/grammar.h"
#include "route/decide.h"
#include "scratch.h"
#include "support/fake.h"
#include "tune/route_source.h"

/* ---- Files ---- */

enum { FILES = 8, QUERIES_MAX = 200000, ANSWER_BYTES = 48 };

static uint64_t random_state = 20261129;

static int64_t random_to(int64_t most)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (int64_t)(random_state >> 33) % (most + 1);
}

/* Log-uniform from 1 to 2^40. */
static int64_t random_rows(void)
{
    int64_t high = (int64_t)1 << random_to(40), low = random_to(high < 1 << 30 ? high : 1 << 30);
    return high + low;
}

static const char *const options[] = {"", ":fp16:tensor", ":a=bf16:bias", ":static:to", ":fp32:tensor:ta", ":tb", ":align=8", ":sa=tensor",
                                      ":fp32:tensor"};
enum { OPTIONS = sizeof options / sizeof *options };

/* The default is high:one everywhere. What a segment may say: it stays, it wins, another one wins. */
static const char *const segments[] = {
    "backend=high config=one rev=1 median_us=10 runner_up=low:one runner_up_us=10 gain=1..1 verdict=tie",
    "backend=high config=one rev=1 median_us=10 runner_up=low:one runner_up_us=20 gain=1..1 verdict=clear",
    "backend=low config=one rev=1 median_us=10 gain=1.1..1.2 verdict=clear",
    "backend=low config=two rev=1 median_us=10 gain=1.1..1.2 verdict=clear",
    "backend=high config=two rev=1 median_us=10 gain=1.04..1.05 verdict=clear"};

static struct fp8r_route_file files[FILES];

/* Families near each other in N and in K, so that there are neighbours, with gaps between segments here and there. */
static void make_file(int which)
{
    static char text[1 << 18];
    size_t used = 0;
    int entries = 0;
#define ADD(...) used += (size_t)snprintf(text + used, sizeof text - used, __VA_ARGS__)
    ADD("fp8route-routes 1\ndevice cpu\nidentity features=none threads=1 llc_bytes=1048576\nfact name \"*/ ?\?/ \\\\ /* %%\"\n"
        "protocol %s mode=eager operands=cold\n", which % 2 ? "quick" : "full");
    for (int option = 0; option < OPTIONS; option++)
        for (int64_t batch = 1; batch <= 5; batch += 4)
            for (int64_t n = 64; n <= 160; n += 8)
                for (int64_t k = 32; k <= 128; k += 32) {
                    int64_t m = 1 + random_to(2);
                    if (random_to(9) < 6) continue;
                    entries++;
                    if (batch == 1) ADD("entry Mx%dx%d%s\n", (int)n, (int)k, options[option]);
                    else ADD("entry %d*Mx%dx%d%s\n", (int)batch, (int)n, (int)k, options[option]);
                    for (int i = (int)random_to(4); i >= 0; i--) {
                        int64_t last = m + random_to(2 * m);
                        /* the last one may be high:two only where an earlier one says that high is the default */
                        ADD("m=%lld..%lld %s\n", (long long)m, (long long)last, segments[random_to(3 + (i > 0))]);
                        if (i == 1 && random_to(4) == 0) {
                            ADD("m=%lld..%lld %s\nm=%lld..%lld %s\n", (long long)last + 1, (long long)last + 1, segments[0],
                                (long long)last + 2, (long long)last + 9, segments[4]);
                            break;
                        }
                        m = last + 1 + (random_to(3) == 0 ? random_to(m) : 0);
                    }
                }
    ADD("end entries=%d\n", entries);
#undef ADD
    assert_true(used < sizeof text);
    if (fp8r_route_file_parse("made", text, used, &files[which]) != FP8R_OK) fail_msg("%s", fp8r_last_error());
}

/* ---- Questions and the library's answers ---- */

struct query {
    int file, option;
    int64_t batch, m, n, k;
};

static struct query *queries;
static char (*answers)[ANSWER_BYTES];
static size_t query_count, count_of[4]; /* none, route, extrapolated, neighbour */

static struct fake high, low;
static struct fp8r_registry registry;
static fp8r_device_facts device;

/* As the exported function would put it. False where the library takes the entry of a simpler product: an exported function
 * leaves that to its caller. */
static bool answer(const struct query *query, char text[ANSWER_BYTES])
{
    const struct fp8r_router router = {.registry = &registry, .device = &device, .table = &files[query->file].table,
                                       .mode = FP8R_MODE_EAGER, .forced_row = -1, .forced_config = FP8R_CONFIG_ANY};
    static struct fp8r_candidates candidates;
    struct fp8r_decision decision;
    struct fp8r_product product;
    fp8r_matmul matmul;
    char problem[128];
    (void)snprintf(problem, sizeof problem, "%lld*%lldx%lldx%lld%s", (long long)query->batch, (long long)query->m,
                   (long long)query->n, (long long)query->k, options[query->option]);
    if (fp8r_matmul_parse(problem, &matmul) != FP8R_OK) fail_msg("%s", fp8r_last_error());
    assert_int_equal(fp8r_product_init(&matmul, FP8R_DATA_IGNORED, &product), FP8R_OK);
    fp8r_decide(&router, &product.problem, 0, false, &candidates, &decision);
    struct fp8r_key key;
    fp8r_key_init(&product.problem, FP8R_MODE_EAGER, &key);
    if (decision.entry && decision.source != FP8R_SOURCE_NEIGHBOUR && !fp8r_key_equal(&decision.entry->key, &key)) return false;
    bool is_route = decision.source == FP8R_SOURCE_ROUTE, is_known = is_route;
    is_known |= decision.source == FP8R_SOURCE_EXTRAPOLATED || decision.source == FP8R_SOURCE_NEIGHBOUR;
    count_of[!is_known ? 0 : is_route ? 1 : decision.source == FP8R_SOURCE_EXTRAPOLATED ? 2 : 3]++;
    if (!is_known) {
        (void)snprintf(text, ANSWER_BYTES, "none");
        return true;
    }
    const fp8r_backend *backend = &registry.rows[decision.row].backend;
    (void)snprintf(text, ANSWER_BYTES, "%s %s %s", backend->name, is_route ? backend->configs[decision.config] : "-",
                   fp8r_source_name(decision.source));
    return true;
}

static void ask(int file, int option, int64_t batch, int64_t m, int64_t n, int64_t k)
{
    if (m < 1) return;
    assert_true(query_count < QUERIES_MAX);
    queries[query_count] = (struct query){file, option, batch, m, n, k};
    query_count += answer(&queries[query_count], answers[query_count]);
}

static int option_of(const struct fp8r_entry *entry)
{
    char family[FP8R_FAMILY_BYTES];
    assert_int_equal(fp8r_entry_family(entry, family), FP8R_OK);
    for (int i = 0; i < OPTIONS; i++)
        if (strcmp(family + strcspn(family, ":"), options[i]) == 0) return i;
    fail_msg("%s", family);
    return -1;
}

struct range {
    int64_t least, steps, step;
};

static int64_t random_in(struct range range)
{
    return range.least + range.step * random_to(range.steps);
}

/* Drawn one after the other: the same questions whatever the compiler. */
static void ask_random(struct range batches, struct range ms, struct range ns, struct range ks, int file)
{
    int64_t batch = random_in(batches), m = random_in(ms), n = random_in(ns), k = random_in(ks);
    ask(file, (int)random_to(OPTIONS - 1), batch, m, n, k);
}

static void ask_all(void)
{
    for (int file = 0; file < FILES; file++) {
        for (size_t i = 0; i < files[file].table.count; i++) {
            const struct fp8r_entry *entry = &files[file].table.entries[i];
            const struct fp8r_key *key = &entry->key;
            int option = option_of(entry);
            for (int j = 0; j < entry->segment_count; j++)
                for (int beside = -1; beside <= 1; beside++) {
                    ask(file, option, key->batch, entry->segments[j].m_first + beside, key->n, key->k);
                    ask(file, option, key->batch, entry->segments[j].m_last + beside, key->n, key->k);
                }
            for (int j = 0; j < 4; j++) ask(file, option, key->batch, random_rows(), key->n, key->k);
        }
        for (int i = 0; i < 2500; i++) /* sizes measured and not, near and far */
            ask_random((struct range){1, 5, 1}, (struct range){1, 60, 1}, (struct range){40, 40, 4}, (struct range){16, 40, 4},
                       file);
        for (int i = 0; i < 1500; i++) /* between families */
            ask_random((struct range){1, 1, 4}, (struct range){1, 11, 1}, (struct range){64, 12, 8}, (struct range){32, 6, 16},
                       file);
    }
}

/* ---- Running the source ---- */

static void write_file(const char *name, const char *text)
{
    scratch_write(scratch_path(name), text, strlen(text));
}

static void write_sources(enum fp8r_language language, const char *suffix)
{
    struct fp8r_tool_error error = {0};
    for (int i = 0; i < FILES; i++) {
        char name[32], *text = NULL;
        (void)snprintf(name, sizeof name, "route_%d", i);
        if (fp8r_route_source(&files[i], language, name, &text, &error) != 0) fail_msg("%s", error.text);
        (void)snprintf(name, sizeof name, "route_%d.%s", i, suffix);
        write_file(name, text);
        free(text);
    }
}

static void write_queries(void)
{
    FILE *file = fopen(scratch_path("queries"), "w");
    assert_non_null(file);
    for (size_t i = 0; i < query_count; i++)
        (void)fprintf(file, "%d x%s %lld %lld %lld %lld\n", queries[i].file, options[queries[i].option],
                      (long long)queries[i].batch, (long long)queries[i].m, (long long)queries[i].n,
                      (long long)queries[i].k);
    assert_int_equal(fclose(file), 0);
}

static int run_in_scratch(const char *command)
{
    char line[2048];
    assert_true((size_t)snprintf(line, sizeof line, "cd '%s' && %s", scratch_root, command) < sizeof line);
    return system(line);
}

static void compare_answers(const char *name)
{
    char line[ANSWER_BYTES + 2];
    FILE *file = fopen(scratch_path(name), "r");
    assert_non_null(file);
    for (size_t i = 0; i < query_count; i++) {
        const struct query *it = &queries[i];
        assert_non_null(fgets(line, sizeof line, file));
        line[strcspn(line, "\n")] = '\0';
        if (strcmp(line, answers[i]) != 0)
            fail_msg("file %d, %lld*%lldx%lldx%lld%s: \"%s\", the library says \"%s\"", it->file, (long long)it->batch,
                     (long long)it->m, (long long)it->n, (long long)it->k, options[it->option], line, answers[i]);
    }
    assert_null(fgets(line, sizeof line, file));
    (void)fclose(file);
}

static const char c_driver[] =
    "#include <stdio.h>\n"
    "#include \"route_0.c\"\n#include \"route_1.c\"\n#include \"route_2.c\"\n#include \"route_3.c\"\n"
    "#include \"route_4.c\"\n#include \"route_5.c\"\n#include \"route_6.c\"\n#include \"route_7.c\"\n"
    "#define CASE(i) case i: { struct route_##i##_choice c; \\\n"
    "    found = route_##i(route_##i##_kind(options + 1), b, m, n, k, &c); \\\n"
    "    if (found) printf(\"%s %s %s\\n\", c.backend, c.config ? c.config : \"-\", c.source); } break;\n"
    "int main(void)\n"
    "{\n"
    "    char options[64];\n"
    "    long long b, m, n, k;\n"
    "    int file, found = 0;\n"
    "    while (scanf(\"%d %63s %lld %lld %lld %lld\", &file, options, &b, &m, &n, &k) == 6) {\n"
    "        switch (file) { CASE(0) CASE(1) CASE(2) CASE(3) CASE(4) CASE(5) CASE(6) CASE(7) default: return 1; }\n"
    "        if (!found) puts(\"none\");\n"
    "    }\n"
    "    return 0;\n"
    "}\n";

/* Without a warning, also as the translation unit of somebody else. */
static void c_decides_the_same(void **state)
{
    (void)state;
    write_sources(FP8R_LANGUAGE_C, "c");
    write_file("driver.c", c_driver);
    assert_int_equal(run_in_scratch(FP8R_CC " -std=c11 -pedantic -Wall -Wextra -Wconversion -Wmissing-prototypes -Wvla "
                                            "-Wshadow -Werror -o driver driver.c"), 0);
    assert_int_equal(run_in_scratch("./driver < queries > c_answers"), 0);
    compare_answers("c_answers");
}

static const char python_driver[] =
    "import importlib, sys\n"
    "routes = [getattr(importlib.import_module(f'route_{i}'), f'route_{i}') for i in range(8)]\n"
    "for line in sys.stdin:\n"
    "    file, options, *sizes = line.split()\n"
    "    choice = routes[int(file)](options[1:], *map(int, sizes))\n"
    "    print(*(part or '-' for part in choice) if choice else ('none',))\n";

static void python_decides_the_same(void **state)
{
    (void)state;
    if (system("python3 -c '' >/dev/null 2>&1") != 0) {
        print_message("skipped: there is no python3\n");
        skip();
    }
    write_sources(FP8R_LANGUAGE_PYTHON, "py");
    write_file("driver.py", python_driver);
    assert_int_equal(run_in_scratch("python3 -B -W error driver.py < queries > python_answers"), 0);
    compare_answers("python_answers");
}

/* Otherwise the tests above would prove little. */
static void every_source_is_asked_for(void **state)
{
    (void)state;
    print_message("%zu questions: none %zu, route %zu, extrapolated %zu, neighbour %zu\n", query_count, count_of[0],
                  count_of[1], count_of[2], count_of[3]);
    for (int i = 0; i < 4; i++) assert_true(count_of[i] > 500);
}

/* ---- What the file alone does not say ---- */

static char *source_of(const char *body)
{
    char text[1024], *source = NULL;
    struct fp8r_route_file file;
    struct fp8r_tool_error error = {0};
    (void)snprintf(text, sizeof text,
                   "fp8route-routes 1\ndevice cpu\nidentity features=none threads=1 llc_bytes=1\nprotocol full mode=eager "
                   "operands=cold\n%send entries=1\n", body);
    if (fp8r_route_file_parse("made", text, strlen(text), &file) != FP8R_OK) fail_msg("%s", fp8r_last_error());
    assert_int_equal(fp8r_route_source(&file, FP8R_LANGUAGE_PYTHON, "f", &source, &error), 0);
    fp8r_route_file_fini(&file);
    return source;
}

/* Rows above the measured ones: only where the file says which backend is the default. */
static void the_default_is_known_or_not(void **state)
{
    (void)state;
    static const struct {
        const char *body;
        bool is_known;
    } cases[] = {{"entry Mx8x8\nm=1..4 backend=a config=x rev=1 median_us=1 gain=1..1 verdict=tie\n", true},
                 {"entry Mx8x8\nm=1..4 backend=a config=x rev=1 median_us=1 gain=0.99..1.01 verdict=tie\n", true},
                 {"entry Mx8x8\nm=1..4 backend=a config=x rev=1 median_us=1 gain=1..1 verdict=clear\n", true},
                 {"entry Mx8x8\nm=1..4 backend=a config=x rev=1 median_us=1 gain=1.1..1.2 verdict=clear\n", false},
                 {"entry Mx8x8\nm=1..4 backend=a config=x rev=1 median_us=1 verdict=tie\n", false},
                 {"entry Mx8x8\nm=1..2 backend=a config=x rev=1 median_us=1 gain=1..1 verdict=tie\n"
                  "m=3..4 backend=a config=y rev=1 median_us=1 gain=1.1..1.2 verdict=clear\n", true},
                 {"entry Mx8x8\nm=1..2 backend=a config=x rev=1 median_us=1 gain=1..1 verdict=tie\n"
                  "m=3..4 backend=b config=y rev=1 median_us=1 gain=1.1..1.2 verdict=clear\n", false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *source = source_of(cases[i].body);
        bool is_known = strstr(source, "(1, 8, 8): (\"a\", (") != NULL;
        assert_int_equal(is_known, cases[i].is_known);
        assert_int_equal(is_known, strstr(source, "(1, 8, 8): (None, (") == NULL);
        free(source);
    }
}

static void bad_names_are_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {"",    "8x",     "a-b",  "for", "lambda", "template", "int", "route.c", "a b", "\xc3\xa9",
                                      "a23456789012345678901234567890123456789012345678901234567890123x"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct fp8r_tool_error error = {0};
        char *text = NULL;
        assert_int_equal(fp8r_route_source(&files[0], FP8R_LANGUAGE_C, bad[i], &text, &error), FP8R_EXIT_USAGE);
        assert_null(text);
        assert_non_null(strstr(error.text, "--function is \""));
    }
    struct fp8r_tool_error error = {0};
    const struct fp8r_route_file empty = {0};
    char *text = NULL;
    assert_int_equal(fp8r_route_source(&empty, FP8R_LANGUAGE_C, "f", &text, &error), FP8R_EXIT_UNMEASURED);
}

static int setup(void **state)
{
    const fp8r_backend of_high = fake_backend(&high, "high", 2000), of_low = fake_backend(&low, "low", 1000);
    const fp8r_backend *const outside[] = {&of_high, &of_low};
    if (scratch_setup(state) != 0) return -1;
    high = (struct fake){.classes = {"high1", "high2"}};
    low = (struct fake){.classes = {"low", "low"}};
    device = (fp8r_device_facts){.struct_size = sizeof device, .kind = FP8R_DEVICE_CPU, .threads = 1};
    if (fp8r_registry_init(&registry, outside, 2) != FP8R_OK) return -1;
    fp8r_registry_gate(&registry, &device, "cpu,blas", true);
    queries = calloc(QUERIES_MAX, sizeof *queries);
    answers = calloc(QUERIES_MAX, sizeof *answers);
    if (!queries || !answers) return -1;
    for (int i = 0; i < FILES; i++) make_file(i);
    ask_all();
    write_queries();
    return 0;
}

static int teardown(void **state)
{
    for (int i = 0; i < FILES; i++) fp8r_route_file_fini(&files[i]);
    free(queries);
    free(answers);
    return scratch_teardown(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(c_decides_the_same),        cmocka_unit_test(python_decides_the_same),
        cmocka_unit_test(every_source_is_asked_for), cmocka_unit_test(the_default_is_known_or_not),
        cmocka_unit_test(bad_names_are_refused),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
