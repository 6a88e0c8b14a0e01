/* Writing what a fit amounts to. SPDX-License-Identifier: Apache-2.0 */
#include "tool_file.h"
#include "tune/fit_files.h"

#include <inttypes.h>
#include <string.h>

#include "plural.h"
#include "tool_file.h"
#include "tool_status.h"
#include "tune/text.h"

static const char function[] = "rule_holds";

char *fp8r_fit_function(const struct fp8r_fit_story *story, enum fp8r_rule_dialect dialect)
{
    const char *helpers = dialect == FP8R_RULE_C ? fp8r_rule_c_helpers(story->rule) : NULL;
    size_t size = fp8r_rule_print_function(story->rule, dialect, function, NULL, 0) + 1;
    char *body = malloc(size);
    struct fp8r_text text = {.is_short = !body};
    if (body) (void)fp8r_rule_print_function(story->rule, dialect, function, body, size);
    if (helpers) fp8r_text_add(&text, "%s\n", helpers);
    fp8r_text_add(&text, "%s%s", dialect == FP8R_RULE_C ? "static inline " : "", body ? body : "");
    free(body);
    return fp8r_text_take(&text);
}

/* What a reader of any of the files should know. */
static void add_origin(struct fp8r_text *text, const struct fp8r_fit_story *story, const char *before)
{
    const struct fp8r_fit *fit = story->fit;
    fp8r_text_add(text, "%s%s where this holds, otherwise %s:\n%s    %s\n", before, story->set->x,
                  story->set->y, before, story->text);
    fp8r_text_add(
        text,
        "%sFitted to %zu measured problem%s of %d machine%s: loses %.2f %% on the worst of them, %.2f %% on "
        "families held out.\n",
        before, story->set->count, fp8r_s(story->set->count), fit->device_count, fp8r_s((size_t)fit->device_count),
        100 * fit->regret.worst, 100 * fit->held_out.worst);
}

static char *rule_text(const struct fp8r_fit_story *story)
{
    struct fp8r_text text = {0};
    fp8r_text_add(&text, "%s\n", story->text);
    return fp8r_text_take(&text);
}

static char *rule_header(const struct fp8r_fit_story *story)
{
    struct fp8r_text text = {0};
    char *body = fp8r_fit_function(story, FP8R_RULE_C);
    text.is_short = !body;
    add_origin(&text, story, "// ");
    fp8r_text_add(
        &text, "#ifndef RULE_H\n#define RULE_H\n\n#include <stdbool.h>\n#include <stdint.h>\n\n%s\n#endif\n",
        body ? body : "");
    free(body);
    return fp8r_text_take(&text);
}

static char *rule_python(const struct fp8r_fit_story *story)
{
    struct fp8r_text text = {0};
    char *body = fp8r_fit_function(story, FP8R_RULE_PYTHON);
    text.is_short = !body;
    add_origin(&text, story, "# ");
    fp8r_text_add(&text, "\n\n%s", body ? body : "");
    free(body);
    return fp8r_text_take(&text);
}

static char *test_c(const struct fp8r_fit_lock *locks, size_t count)
{
    struct fp8r_text text = {0};
    fp8r_text_add(&text,
                  "// Locks the rule at its borders. Compile and run it: 0 is good.\n#include <stdio.h>\n\n"
                  "#include \"rule.h\"\n\nstatic const struct {\n    int64_t m, n, k;\n    bool holds;\n} "
                  "cases[] = {\n");
    for (size_t i = 0; i < count; i++)
        fp8r_text_add(&text, "    {%" PRId64 ", %" PRId64 ", %" PRId64 ", %s},\n", locks[i].m, locks[i].n,
                      locks[i].k, locks[i].holds ? "true" : "false");
    fp8r_text_add(
        &text,
        "};\n\nint main(void)\n{\n    int wrong = 0;\n"
        "    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {\n"
        "        if (rule_holds(cases[i].m, cases[i].n, cases[i].k, 1) == cases[i].holds)\n"
        "            continue;\n"
        "        printf(\"m=%%lld n=%%lld k=%%lld: the rule must %%shold\\n\", (long long)cases[i].m,\n"
        "               (long long)cases[i].n, (long long)cases[i].k, cases[i].holds ? \"\" : \"not \");\n"
        "        wrong++;\n    }\n    return wrong > 0;\n}\n");
    return fp8r_text_take(&text);
}

static char *test_python(const struct fp8r_fit_lock *locks, size_t count)
{
    struct fp8r_text text = {0};
    fp8r_text_add(
        &text,
        "\"\"\"Locks the rule at its borders.\"\"\"\nfrom rule import rule_holds\n\nCASES = [  # m, n, k, "
        "must it hold\n");
    for (size_t i = 0; i < count; i++)
        fp8r_text_add(&text, "    (%" PRId64 ", %" PRId64 ", %" PRId64 ", %s),\n", locks[i].m, locks[i].n,
                      locks[i].k, locks[i].holds ? "True" : "False");
    fp8r_text_add(&text, "]\n\n\ndef test_rule_at_its_borders():\n    wrong = [case for case in CASES if "
                         "rule_holds(*case[:3]) != case[3]]\n    assert not wrong, wrong\n");
    return fp8r_text_take(&text);
}

/* Takes the text over. */
static int write_file(const char *folder, const char *name, char *text, struct fp8r_tool_error *error)
{
    char path[4096];
    if (!text) return fp8r_tool_error_memory(error, name);
    int length = snprintf(path, sizeof path, "%s/%s", folder, name);
    int code = length < (int)sizeof path
                   ? fp8r_tool_file_write(path, text, error)
                   : fp8r_tool_error_set(error, FP8R_EXIT_BAD_DATA, "%.80s...: the path is too long", folder);
    free(text);
    return code;
}

static int write_routes(const struct fp8r_fit_story *story, const char *folder, int device,
                        struct fp8r_tool_error *error)
{
    struct fp8r_route_file file;
    char path[4096];
    int length = story->set->device_count == 1
                     ? snprintf(path, sizeof path, "%s/rule.routes", folder)
                     : snprintf(path, sizeof path, "%s/rule-%d.routes", folder, device + 1);
    if (length >= (int)sizeof path)
        return fp8r_tool_error_set(error, FP8R_EXIT_BAD_DATA, "%.80s...: the path is too long", folder);
    int code = fp8r_fit_routes(story, device, &file, error);
    if (code != FP8R_EXIT_GOOD) return code;
    code = fp8r_tool_status(error, fp8r_route_file_write(path, &file));
    fp8r_route_file_fini(&file);
    return code;
}

int fp8r_fit_write(const struct fp8r_fit_story *story, const char *folder, struct fp8r_tool_error *error)
{
    struct fp8r_fit_lock *locks = NULL;
    size_t count = 0;
    int code = fp8r_fit_locks(story, &locks, &count, error);
    if (code == FP8R_EXIT_GOOD) code = write_file(folder, "rule.txt", rule_text(story), error);
    if (code == FP8R_EXIT_GOOD) code = write_file(folder, "rule.h", rule_header(story), error);
    if (code == FP8R_EXIT_GOOD) code = write_file(folder, "rule.py", rule_python(story), error);
    if (code == FP8R_EXIT_GOOD) code = write_file(folder, "test_rule.c", test_c(locks, count), error);
    if (code == FP8R_EXIT_GOOD) code = write_file(folder, "test_rule.py", test_python(locks, count), error);
    if (code == FP8R_EXIT_GOOD) code = write_file(folder, "shapes.md", fp8r_fit_shapes(story), error);
    for (int i = 0; i < story->set->device_count && code == FP8R_EXIT_GOOD; i++)
        code = write_routes(story, folder, i, error);
    free(locks);
    return code;
}
