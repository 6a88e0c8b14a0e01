/* Reading route files: the lines there are, and in which order (docs/routes.md). Nothing here judges whether a backend
 * exists or a machine fits.
 * SPDX-License-Identifier: Apache-2.0 */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "device/device.h"
#include "problem/grammar.h"
#include "route/route_file.h"
#include "route/route_line.h"

/* What may come next. */
enum stage { AT_VERSION, AT_DEVICE, AT_IDENTITY, AT_HEADER, AT_ENTRIES, AT_END };

static const char *const stage_expects[] = {
    [AT_VERSION] = "the line \"fp8route-routes 1\"",
    [AT_DEVICE] = "\"device cpu\" or \"device cuda\"",
    [AT_IDENTITY] = "identity and its fields",
    [AT_HEADER] = "library, fact or protocol",
    [AT_ENTRIES] = "entry, a segment (m=FIRST..LAST ...) or end",
    [AT_END] = "nothing behind the end",
};

/* An entry while it is read. */
struct draft {
    struct fp8r_entry entry;
    size_t capacity; /* of its segments */
    int line;
};

struct parser {
    struct fp8r_lines lines;
    enum stage stage;
    struct fp8r_route_file *file;
    struct draft *drafts;
    size_t count, capacity;
};

/* Room for one more item. */
static bool grow(void **items, size_t *capacity, size_t count, size_t item_bytes)
{
    if (count < *capacity)
        return true;
    size_t wanted = *capacity ? *capacity * 2 : 4;
    void *grown = wanted <= SIZE_MAX / item_bytes / 2 ? realloc(*items, wanted * item_bytes) : NULL;
    if (!grown)
        return false;
    *items = grown;
    *capacity = wanted;
    return true;
}

/* ---- The header ---- */

static fp8r_status read_version(struct parser *parser)
{
    char word[FP8R_WORD_BYTES];
    FP8R_TRY(fp8r_line_word(&parser->lines, "the format's version, 1", word));
    if (strcmp(word, "1") != 0)
        return fp8r_lines_fail(&parser->lines, "version %.40s of the format is unknown: this library reads version 1",
                               word);
    return FP8R_OK;
}

static fp8r_status read_device(struct parser *parser)
{
    char word[FP8R_WORD_BYTES];
    FP8R_TRY(fp8r_line_word(&parser->lines, "cpu or cuda", word));
    if (strcmp(word, "cpu") != 0 && strcmp(word, "cuda") != 0)
        return fp8r_lines_fail(&parser->lines, "device %.40s is unknown: expected cpu or cuda", word);
    parser->file->identity.kind = strcmp(word, "cuda") == 0 ? FP8R_DEVICE_CUDA : FP8R_DEVICE_CPU;
    return FP8R_OK;
}

static const char *value_features(const char *value, void *features)
{
    return fp8r_cpu_features_parse(value, features) ? NULL : "processor features joined by +, like avx2+fma, or none";
}

static fp8r_status read_identity(struct parser *parser)
{
    struct fp8r_identity *identity = &parser->file->identity;
    struct fp8r_field cpu[] = {{.name = "features", .read = value_features, .to = &identity->cpu_features},
                               {.name = "threads", .read = fp8r_value_small, .to = &identity->threads},
                               {.name = "llc_bytes", .read = fp8r_value_count, .to = &identity->last_level_bytes}};
    struct fp8r_field cuda[] = {{.name = "arch", .read = fp8r_value_small, .to = &identity->arch},
                                {.name = "sm_count", .read = fp8r_value_small, .to = &identity->sm_count},
                                {.name = "bandwidth_gbs", .read = fp8r_value_count, .to = &identity->bandwidth_class}};
    bool is_cuda = identity->kind == FP8R_DEVICE_CUDA;
    return fp8r_line_fields(&parser->lines, is_cuda ? cuda : cpu, 3);
}

static fp8r_status read_library(struct parser *parser)
{
    struct fp8r_identity *identity = &parser->file->identity;
    char backend[FP8R_WORD_BYTES], version[FP8R_WORD_BYTES];
    if (identity->library_count == FP8R_LIBRARIES_MAX)
        return fp8r_lines_fail(&parser->lines, "a file names at most %d libraries", (int)FP8R_LIBRARIES_MAX);
    struct fp8r_library *library = &identity->libraries[identity->library_count];
    FP8R_TRY(fp8r_line_word(&parser->lines, "the name of a backend", backend));
    const char *expected = fp8r_value_name(backend, library->backend);
    if (expected)
        return fp8r_lines_fail(&parser->lines, "backend %.60s: expected %s", backend, expected);
    FP8R_TRY(fp8r_line_quoted(&parser->lines, "the library's name and version", version));
    if (!*version || strlen(version) >= sizeof library->version)
        return fp8r_lines_fail(&parser->lines, "the library's name and version must be 1 to %d bytes",
                               (int)sizeof library->version - 1);
    memcpy(library->version, version, strlen(version) + 1);
    for (int i = 0; i < identity->library_count; i++)
        if (strcmp(identity->libraries[i].backend, library->backend) == 0)
            return fp8r_lines_fail(&parser->lines, "the library of %s is named twice", library->backend);
    identity->library_count++;
    return FP8R_OK;
}

static fp8r_status read_fact(struct parser *parser)
{
    struct fp8r_route_file *file = parser->file;
    char name[FP8R_WORD_BYTES], value[FP8R_WORD_BYTES];
    if (file->fact_count == FP8R_FACTS_MAX)
        return fp8r_lines_fail(&parser->lines, "a file holds at most %d facts", (int)FP8R_FACTS_MAX);
    struct fp8r_fact *fact = &file->facts[file->fact_count];
    FP8R_TRY(fp8r_line_word(&parser->lines, "the fact's name", name));
    if (strlen(name) >= sizeof fact->name || strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_") != strlen(name))
        return fp8r_lines_fail(&parser->lines, "fact %.60s: expected a name of 1 to %d of a-z, 0-9 and _", name,
                               (int)sizeof fact->name - 1);
    FP8R_TRY(fp8r_line_quoted(&parser->lines, "the fact's value", value));
    if (strlen(value) >= sizeof fact->value)
        return fp8r_lines_fail(&parser->lines, "the value of fact %s is too long: at most %d bytes", name,
                               (int)sizeof fact->value - 1);
    memcpy(fact->name, name, strlen(name) + 1);
    memcpy(fact->value, value, strlen(value) + 1);
    for (int i = 0; i < file->fact_count; i++)
        if (strcmp(file->facts[i].name, name) == 0)
            return fp8r_lines_fail(&parser->lines, "the fact %s is given twice", name);
    file->fact_count++;
    return FP8R_OK;
}

static const char *value_mode(const char *value, void *mode)
{
    if (strcmp(value, "eager") != 0 && strcmp(value, "graph") != 0)
        return "eager or graph";
    *(int *)mode = strcmp(value, "graph") == 0 ? FP8R_MODE_GRAPH : FP8R_MODE_EAGER;
    return NULL;
}

static const char *value_operands(const char *value, void *is_cold)
{
    if (strcmp(value, "cold") != 0 && strcmp(value, "warm") != 0)
        return "cold or warm";
    *(bool *)is_cold = strcmp(value, "cold") == 0;
    return NULL;
}

static const char *value_behind(const char *value, void *is_behind_both)
{
    if (strcmp(value, "itself") != 0 && strcmp(value, "both") != 0)
        return "itself or both";
    *(bool *)is_behind_both = strcmp(value, "both") == 0;
    return NULL;
}

static fp8r_status read_protocol(struct parser *parser)
{
    struct fp8r_route_file *file = parser->file;
    char word[FP8R_WORD_BYTES];
    FP8R_TRY(fp8r_line_word(&parser->lines, "quick or full", word));
    if (strcmp(word, "quick") != 0 && strcmp(word, "full") != 0)
        return fp8r_lines_fail(&parser->lines, "protocol %.40s is unknown: expected quick or full", word);
    file->is_quick = strcmp(word, "quick") == 0;
    struct fp8r_field fields[] = {{.name = "mode", .read = value_mode, .to = &file->mode},
                                  {.name = "operands", .read = value_operands, .to = &file->is_cold},
                                  {.name = "behind", .read = value_behind, .to = &file->is_behind_both, .is_optional = true}};
    return fp8r_line_fields(&parser->lines, fields, sizeof fields / sizeof *fields);
}

/* ---- Entries ---- */

static fp8r_status check_last_entry(const struct parser *parser)
{
    if (parser->count > 0 && parser->drafts[parser->count - 1].entry.segment_count == 0)
        return fp8r_lines_fail(&parser->lines, "the entry of line %d has no segment: expected m=FIRST..LAST ...",
                               parser->drafts[parser->count - 1].line);
    return FP8R_OK;
}

/* Behind the family of an entry in a file of full measurements: was it measured quickly? */
static fp8r_status read_entry_protocol(struct parser *parser, struct fp8r_entry *entry)
{
    char word[FP8R_WORD_BYTES];
    entry->is_quick = parser->file->is_quick;
    if (fp8r_line_is_done(&parser->lines))
        return FP8R_OK;
    FP8R_TRY(fp8r_line_word(&parser->lines, "quick, or nothing", word));
    if (strcmp(word, "quick") != 0)
        return fp8r_lines_fail(&parser->lines, "\"%.40s\" behind the family: expected quick, or nothing", word);
    entry->is_quick = true;
    return FP8R_OK;
}

static fp8r_status read_entry(struct parser *parser)
{
    char text[FP8R_WORD_BYTES];
    struct draft draft = {.line = parser->lines.number};
    FP8R_TRY(check_last_entry(parser));
    FP8R_TRY(fp8r_line_word(&parser->lines, "a family, like Mx4096x14336", text));
    fp8r_status status = fp8r_family_parse(text, parser->file->mode, &draft.entry.key);
    if (status == FP8R_ERROR_INVALID_ARGUMENT)
        return fp8r_lines_fail(&parser->lines, "%s", fp8r_last_error());
    FP8R_TRY(status);
    if (draft.entry.key.batch < 1 || draft.entry.key.n < 1 || draft.entry.key.k < 1)
        return fp8r_lines_fail(&parser->lines, "family %.60s is empty: batch, N and K must be at least 1", text);
    FP8R_TRY(read_entry_protocol(parser, &draft.entry));
    if (!grow((void **)&parser->drafts, &parser->capacity, parser->count, sizeof draft))
        return fp8r_fail_memory("the entries of a route file");
    parser->drafts[parser->count++] = draft;
    return FP8R_OK;
}

static const char *value_rev(const char *value, void *rev)
{
    if (strlen(value) >= FP8R_REV_BYTES)
        return "at most 39 bytes";
    memcpy(rev, value, strlen(value) + 1);
    return NULL;
}

static const char *value_label(const char *value, void *label)
{
    char part[FP8R_NAME_BYTES];
    const char *colon = strchr(value, ':');
    size_t length = colon ? (size_t)(colon - value) : 0;
    if (length > 0 && length < sizeof part && !fp8r_value_name(colon + 1, part)) {
        memcpy(part, value, length);
        part[length] = '\0';
        if (!fp8r_value_name(part, part)) {
            memcpy(label, value, strlen(value) + 1);
            return NULL;
        }
    }
    return "BACKEND:CONFIGURATION";
}

static const char *value_verdict(const char *value, void *is_clear)
{
    if (strcmp(value, "clear") != 0 && strcmp(value, "tie") != 0)
        return "clear or tie";
    *(bool *)is_clear = strcmp(value, "clear") == 0;
    return NULL;
}

static const char *value_rows_list(const char *value, void *rows_list)
{
    struct fp8r_rows_list *list = rows_list;
    return fp8r_value_numbers(value, list->values, FP8R_ROWS_LIST_MAX, &list->count);
}

static fp8r_status check_segment(struct parser *parser, const struct fp8r_segment *segment)
{
    const struct fp8r_rows_list *at = &segment->at;
    bool is_outside = at->count > 0 && (at->values[0] < segment->m_first || at->values[at->count - 1] > segment->m_last);
    return is_outside ? fp8r_lines_fail(&parser->lines, "at names rows that lie outside of m=%lld..%lld",
                                        (long long)segment->m_first, (long long)segment->m_last)
                      : FP8R_OK;
}

static fp8r_status read_segment_fields(struct parser *parser, struct fp8r_segment *segment)
{
    int64_t rows[2] = {0, 0};
    double gain[2] = {0, 0}, rival_gain[2] = {0, 0};
    enum { ROWS, AT, BACKEND, CONFIG, REV, MEDIAN, RUNNER_UP, RUNNER_UP_US, RIVAL, RIVAL_US, RIVAL_GAIN, GAIN, VERDICT, FIELDS };
    struct fp8r_field fields[FIELDS] = {
        [ROWS] = {.name = "m", .read = fp8r_value_rows, .to = rows},
        [AT] = {.name = "at", .read = value_rows_list, .to = &segment->at, .is_optional = true},
        [BACKEND] = {.name = "backend", .read = fp8r_value_name, .to = segment->backend},
        [CONFIG] = {.name = "config", .read = fp8r_value_name, .to = segment->config},
        [REV] = {.name = "rev", .read = value_rev, .to = segment->rev},
        [MEDIAN] = {.name = "median_us", .read = fp8r_value_real, .to = &segment->median_us},
        [RUNNER_UP] = {.name = "runner_up", .read = value_label, .to = segment->runner_up, .is_optional = true},
        [RUNNER_UP_US] = {.name = "runner_up_us", .read = fp8r_value_real, .to = &segment->runner_up_us,
                          .is_optional = true},
        [RIVAL] = {.name = "rival", .read = value_label, .to = segment->rival, .is_optional = true},
        [RIVAL_US] = {.name = "rival_us", .read = fp8r_value_real, .to = &segment->rival_us, .is_optional = true},
        [RIVAL_GAIN] = {.name = "rival_gain", .read = fp8r_value_interval, .to = rival_gain, .is_optional = true},
        [GAIN] = {.name = "gain", .read = fp8r_value_interval, .to = gain, .is_optional = true},
        [VERDICT] = {.name = "verdict", .read = value_verdict, .to = &segment->is_clear},
    };
    FP8R_TRY(fp8r_line_fields(&parser->lines, fields, FIELDS));
    if (fields[RUNNER_UP].is_given != fields[RUNNER_UP_US].is_given)
        return fp8r_lines_fail(&parser->lines, "runner_up and runner_up_us belong together: one of them is missing");
    if (fields[RIVAL].is_given != fields[RIVAL_US].is_given || fields[RIVAL].is_given != fields[RIVAL_GAIN].is_given)
        return fp8r_lines_fail(&parser->lines, "rival, rival_us and rival_gain belong together: one of them is missing");
    segment->m_first = rows[0];
    segment->m_last = rows[1];
    segment->gain_low = gain[0];
    segment->gain_high = gain[1];
    segment->rival_low = rival_gain[0];
    segment->rival_high = rival_gain[1];
    return check_segment(parser, segment);
}

static fp8r_status read_segment(struct parser *parser)
{
    struct fp8r_segment segment = {0};
    if (parser->count == 0)
        return fp8r_lines_fail(&parser->lines, "a segment before the first entry: expected entry or end");
    FP8R_TRY(read_segment_fields(parser, &segment));
    struct draft *draft = &parser->drafts[parser->count - 1];
    struct fp8r_entry *entry = &draft->entry;
    size_t count = (size_t)entry->segment_count;
    if (count > 0 && segment.m_first <= entry->segments[count - 1].m_last)
        return fp8r_lines_fail(&parser->lines, "m=%lld..%lld does not lie above the segment before, which ends at %lld",
                               (long long)segment.m_first, (long long)segment.m_last,
                               (long long)entry->segments[count - 1].m_last);
    void *segments = entry->segments;
    if (count == INT_MAX || !grow(&segments, &draft->capacity, count, sizeof segment))
        return fp8r_fail_memory("the segments of a route file");
    entry->segments = segments;
    entry->segments[entry->segment_count++] = segment;
    return FP8R_OK;
}

static fp8r_status read_end(struct parser *parser)
{
    int64_t entries;
    struct fp8r_field fields[] = {{.name = "entries", .read = fp8r_value_count, .to = &entries}};
    FP8R_TRY(check_last_entry(parser));
    FP8R_TRY(fp8r_line_fields(&parser->lines, fields, 1));
    if ((uint64_t)entries != parser->count)
        return fp8r_lines_fail(&parser->lines, "it says %lld entries, but %zu came before: lines are missing or too many",
                               (long long)entries, parser->count);
    return FP8R_OK;
}

/* ---- The whole ---- */

static fp8r_status read_line(struct parser *parser)
{
    static const struct {
        const char *word;
        enum stage stage, next;
        fp8r_status (*read)(struct parser *parser);
    } kinds[] = {
        {"fp8route-routes", AT_VERSION, AT_DEVICE, read_version},
        {"device", AT_DEVICE, AT_IDENTITY, read_device},
        {"identity", AT_IDENTITY, AT_HEADER, read_identity},
        {"library", AT_HEADER, AT_HEADER, read_library},
        {"fact", AT_HEADER, AT_HEADER, read_fact},
        {"protocol", AT_HEADER, AT_ENTRIES, read_protocol},
        {"entry", AT_ENTRIES, AT_ENTRIES, read_entry},
        {"end", AT_ENTRIES, AT_END, read_end},
    };
    char word[FP8R_WORD_BYTES];
    const char *start = parser->lines.at;
    FP8R_TRY(fp8r_line_word(&parser->lines, stage_expects[parser->stage], word));
    if (parser->stage == AT_ENTRIES && strncmp(word, "m=", 2) == 0) {
        parser->lines.at = start;
        return read_segment(parser);
    }
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (kinds[i].stage != parser->stage || strcmp(kinds[i].word, word) != 0)
            continue;
        FP8R_TRY(kinds[i].read(parser));
        parser->stage = kinds[i].next;
        if (!fp8r_line_is_done(&parser->lines))
            return fp8r_lines_fail(&parser->lines, "there is more on the line than belongs to \"%s\"", word);
        return FP8R_OK;
    }
    return fp8r_lines_fail(&parser->lines, "\"%.40s\" does not belong here: expected %s", word,
                           stage_expects[parser->stage]);
}

static fp8r_status read_lines(struct parser *parser)
{
    for (bool found = true;;) {
        FP8R_TRY(fp8r_lines_next(&parser->lines, &found));
        if (!found)
            break;
        FP8R_TRY(read_line(parser));
    }
    if (parser->stage != AT_END)
        return fp8r_fail(FP8R_ERROR_FORMAT, "%.200s ends behind line %d, it was cut short: expected %s",
                         parser->lines.name, parser->lines.number, stage_expects[parser->stage]);
    return FP8R_OK;
}

static int compare_drafts(const void *a, const void *b)
{
    const struct draft *one = a, *other = b;
    return fp8r_key_compare(&one->entry.key, &other->entry.key);
}

/* Moves the drafts into the file's table. */
static fp8r_status finish(struct parser *parser)
{
    struct fp8r_table *table = &parser->file->table;
    if (parser->count > 0)
        qsort(parser->drafts, parser->count, sizeof *parser->drafts, compare_drafts);
    for (size_t i = 1; i < parser->count; i++) {
        int one = parser->drafts[i - 1].line, other = parser->drafts[i].line;
        if (fp8r_key_equal(&parser->drafts[i - 1].entry.key, &parser->drafts[i].entry.key))
            return fp8r_fail(FP8R_ERROR_FORMAT, "%.200s, line %d: the entry of line %d is there again: one entry a family",
                             parser->lines.name, one > other ? one : other, one > other ? other : one);
    }
    size_t name_bytes = strlen(parser->lines.name) + 1;
    table->files = malloc(sizeof *table->files);
    char *name = table->files ? malloc(name_bytes) : NULL;
    if (!name)
        return fp8r_fail_memory("a route file's name");
    memcpy(name, parser->lines.name, name_bytes);
    table->files[table->file_count++] = name;
    table->entries = malloc((parser->count ? parser->count : 1) * sizeof *table->entries);
    if (!table->entries)
        return fp8r_fail_memory("the entries of a route file");
    for (; table->count < parser->count; table->count++)
        table->entries[table->count] = parser->drafts[table->count].entry;
    parser->count = 0;
    return FP8R_OK;
}

fp8r_status fp8r_route_file_parse(const char *name, const char *text, size_t size, struct fp8r_route_file *file)
{
    struct fp8r_route_file made = {0};
    struct parser parser = {.file = &made};
    fp8r_lines_init(&parser.lines, name, text, size);
    fp8r_status status = read_lines(&parser);
    if (status == FP8R_OK)
        status = finish(&parser);
    if (status == FP8R_OK)
        *file = made;
    else
        fp8r_route_file_fini(&made);
    for (size_t i = 0; i < parser.count; i++)
        free(parser.drafts[i].entry.segments);
    free(parser.drafts);
    return status;
}

void fp8r_route_file_fini(struct fp8r_route_file *file)
{
    fp8r_table_fini(&file->table);
    *file = (struct fp8r_route_file){0};
}
