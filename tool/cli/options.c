/* Parsing by table.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/options.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define COMMON(field) offsetof(struct fp8r_common, field)

static const struct fp8r_option context_options[] = {
    {"device", "cpu|cuda[:I]", "the device to use; cpu unless given", FP8R_OPTION_TEXT, COMMON(device), 0},
    {"mode", "graph|eager", "on a GPU, time and decide for replayed graphs, or for calls queued one by one; graph unless given",
     FP8R_OPTION_TEXT, COMMON(mode), 0},
    {"threads", "N", "threads a product may use on a CPU; one a usable core unless given", FP8R_OPTION_COUNT,
     COMMON(threads), 1},
    {"routes", "FILE", "a route file to read before all others", FP8R_OPTION_TEXT, COMMON(routes), 0},
    {"plugin", "FILE.so", "a shared object with more backends; may be given several times", FP8R_OPTION_EACH,
     COMMON(plugins), 0}};

static const struct fp8r_option common_options[] = {
    {"json", NULL, "print one JSON object instead of text", FP8R_OPTION_FLAG, COMMON(json), 0},
    {"help", NULL, "print this page", FP8R_OPTION_FLAG, COMMON(help), 0}};

enum {
    CONTEXT_OPTIONS = sizeof context_options / sizeof *context_options,
    COMMON_OPTIONS = sizeof common_options / sizeof *common_options
};

/* Where parsing stands. */
struct parser {
    const struct fp8r_verb *verb;
    struct fp8r_option_table tables[FP8R_OPTION_TABLES];
    char **argv;
    int argc, at;
    char *arguments;
    bool *seen; /* one an option, over all tables */
    struct fp8r_tool_error *error;
};

void fp8r_options_tables(const struct fp8r_verb *verb, struct fp8r_option_table tables[FP8R_OPTION_TABLES])
{
    tables[0] = (struct fp8r_option_table){verb->options, verb->option_count};
    tables[1] = (struct fp8r_option_table){context_options, verb->has_context ? CONTEXT_OPTIONS : 0};
    tables[2] = (struct fp8r_option_table){common_options, COMMON_OPTIONS};
}

/* Index over all tables, or NULL behind the last. */
static const struct fp8r_option *option_at(const struct fp8r_option_table *tables, size_t index)
{
    for (int i = 0; i < FP8R_OPTION_TABLES; i++) {
        if (index < tables[i].count) return &tables[i].options[index];
        index -= tables[i].count;
    }
    return NULL;
}

static size_t option_count(const struct fp8r_option_table *tables)
{
    return tables[0].count + tables[1].count + tables[2].count;
}

static const char *option_name_at(const void *tables, size_t index)
{
    return option_at(tables, index)->name;
}

static int unknown_option(const struct parser *parser, const char *name)
{
    const char *nearest =
        fp8r_nearest_name(name, option_name_at, parser->tables, option_count(parser->tables));
    return fp8r_tool_error_set(
        parser->error, FP8R_EXIT_USAGE, "unknown option --%.60s%s%s: fp8route %s --help lists them", name,
        nearest ? ", did you mean --" : "", nearest ? nearest : "", parser->verb->name);
}

/* "12", "4k" = 4096 is not offered: one way to write a number. */
static int set_count(const struct parser *parser, const struct fp8r_option *option, const char *value)
{
    char *end;
    errno = 0;
    intmax_t count = strtoimax(value, &end, 10);
    bool is_number = *value >= '0' && *value <= '9' && *end == '\0' && errno == 0;
    if (!is_number || count < option->least || count > INT64_MAX)
        return fp8r_tool_error_set(parser->error, FP8R_EXIT_USAGE,
                                   "--%s is \"%.40s\": it must be a whole number of at least %" PRId64,
                                   option->name, value, option->least);
    *(int64_t *)(void *)(parser->arguments + option->offset) = count;
    return FP8R_EXIT_GOOD;
}

static int set_number(const struct parser *parser, const struct fp8r_option *option, const char *value)
{
    char *end;
    double number = strtod(value, &end);
    if (end == value || *end != '\0' || !isfinite(number) || number < (double)option->least)
        return fp8r_tool_error_set(parser->error, FP8R_EXIT_USAGE,
                                   "--%s is \"%.40s\": it must be a number of at least %" PRId64,
                                   option->name, value, option->least);
    *(double *)(void *)(parser->arguments + option->offset) = number;
    return FP8R_EXIT_GOOD;
}

/* A list never holds more than all words. */
static int add_word(const struct parser *parser, struct fp8r_words *words, const char *word)
{
    if (!words->items) words->items = calloc((size_t)parser->argc, sizeof *words->items);
    if (!words->items) return fp8r_tool_error_memory(parser->error, "the command line");
    words->items[words->count++] = word;
    return FP8R_EXIT_GOOD;
}

static bool is_option(const char *word)
{
    return word[0] == '-' && word[1] != '\0';
}

/* The word that follows is the value; in a list, all that follow. */
static int set_words(struct parser *parser, const struct fp8r_option *option, const char *value)
{
    struct fp8r_words *words = (struct fp8r_words *)(void *)(parser->arguments + option->offset);
    int code = add_word(parser, words, value);
    while (code == FP8R_EXIT_GOOD && option->kind == FP8R_OPTION_LIST && parser->at < parser->argc &&
           !is_option(parser->argv[parser->at]))
        code = add_word(parser, words, parser->argv[parser->at++]);
    return code;
}

static int set_value(struct parser *parser, const struct fp8r_option *option, const char *value)
{
    switch (option->kind) {
    case FP8R_OPTION_COUNT:
        return set_count(parser, option, value);
    case FP8R_OPTION_NUMBER:
        return set_number(parser, option, value);
    case FP8R_OPTION_EACH:
    case FP8R_OPTION_LIST:
        return set_words(parser, option, value);
    default:
        *(const char **)(void *)(parser->arguments + option->offset) = value;
        return FP8R_EXIT_GOOD;
    }
}

/* Finds "name" of "name=value". */
static const struct fp8r_option *find_option(struct parser *parser, const char *name, size_t length,
                                             bool **seen)
{
    for (size_t i = 0; i < option_count(parser->tables); i++) {
        const struct fp8r_option *option = option_at(parser->tables, i);
        if (strlen(option->name) == length && strncmp(option->name, name, length) == 0) {
            *seen = &parser->seen[i];
            return option;
        }
    }
    return NULL;
}

/* A value that begins with a dash looks like an option, and an equals sign says that it is none. */
static int needs_value(const struct parser *parser, const struct fp8r_option *option)
{
    const char *next = parser->at < parser->argc ? parser->argv[parser->at] : "";
    if (next[0] != '-' || next[1] == '-')
        return fp8r_tool_error_set(parser->error, FP8R_EXIT_USAGE, "--%s needs a value: --%s %s", option->name,
                                   option->name, option->value);
    return fp8r_tool_error_set(parser->error, FP8R_EXIT_USAGE,
                               "--%s needs a value: --%s %s; one that begins with a dash is written --%s='%.60s'",
                               option->name, option->name, option->value, option->name, next);
}

static int parse_option(struct parser *parser, const char *name)
{
    size_t length = strcspn(name, "=");
    const char *value = name[length] == '=' ? name + length + 1 : NULL;
    bool *seen = NULL;
    const struct fp8r_option *option = find_option(parser, name, length, &seen);
    if (!option) return unknown_option(parser, name);
    bool is_repeatable = option->kind == FP8R_OPTION_EACH || option->kind == FP8R_OPTION_LIST;
    if (*seen && !is_repeatable && option->kind != FP8R_OPTION_FLAG)
        return fp8r_tool_error_set(parser->error, FP8R_EXIT_USAGE, "--%s is given twice", option->name);
    *seen = true;
    if (option->kind == FP8R_OPTION_FLAG) {
        if (value)
            return fp8r_tool_error_set(parser->error, FP8R_EXIT_USAGE, "--%s takes no value", option->name);
        *(bool *)(void *)(parser->arguments + option->offset) = true;
        return FP8R_EXIT_GOOD;
    }
    if (!value && (parser->at == parser->argc || is_option(parser->argv[parser->at])))
        return needs_value(parser, option);
    if (!value) value = parser->argv[parser->at++];
    if (*value == '\0')
        return fp8r_tool_error_set(parser->error, FP8R_EXIT_USAGE, "--%s has an empty value: it must be %s",
                                   option->name, option->value);
    return set_value(parser, option, value);
}

static int parse_word(struct parser *parser, bool *only_words)
{
    const char *word = parser->argv[parser->at++];
    struct fp8r_common *common = (struct fp8r_common *)(void *)parser->arguments;
    if (*only_words || !is_option(word)) return add_word(parser, &common->words, word);
    if (strcmp(word, "--") == 0) {
        *only_words = true;
        return FP8R_EXIT_GOOD;
    }
    if (strcmp(word, "-h") == 0) {
        common->help = true;
        return FP8R_EXIT_GOOD;
    }
    if (word[1] != '-')
        return fp8r_tool_error_set(
            parser->error, FP8R_EXIT_USAGE,
            "unknown option %.60s: options begin with two dashes, fp8route %s --help lists them", word,
            parser->verb->name);
    return parse_option(parser, word + 2);
}

static int check_words(const struct parser *parser)
{
    const struct fp8r_verb *verb = parser->verb;
    const struct fp8r_common *common = (const struct fp8r_common *)(const void *)parser->arguments;
    if (common->words.count < verb->words_min)
        return fp8r_tool_error_set(parser->error, FP8R_EXIT_USAGE, "something is missing: fp8route %s %s",
                                   verb->name, verb->words);
    if (common->words.count > verb->words_max)
        return fp8r_tool_error_set(parser->error, FP8R_EXIT_USAGE, "unexpected \"%.60s\": fp8route %s %s",
                                   common->words.items[verb->words_max], verb->name,
                                   *verb->words ? verb->words : "takes options only, --help lists them");
    return FP8R_EXIT_GOOD;
}

int fp8r_options_parse(const struct fp8r_verb *verb, int argc, char **argv, void **arguments,
                       struct fp8r_tool_error *error)
{
    struct parser parser = {.verb = verb, .argv = argv, .argc = argc, .error = error};
    bool only_words = false;
    int code = FP8R_EXIT_GOOD;
    fp8r_options_tables(verb, parser.tables);
    parser.arguments = calloc(1, verb->arguments_bytes);
    parser.seen = calloc(option_count(parser.tables), sizeof *parser.seen);
    if (!parser.arguments || !parser.seen) code = fp8r_tool_error_memory(error, "the command line");
    while (code == FP8R_EXIT_GOOD && parser.at < argc)
        code = parse_word(&parser, &only_words);
    const struct fp8r_common *common = (const struct fp8r_common *)(const void *)parser.arguments;
    if (code == FP8R_EXIT_GOOD && !common->help) code = check_words(&parser);
    free(parser.seen);
    if (code == FP8R_EXIT_GOOD)
        *arguments = parser.arguments;
    else
        fp8r_options_fini(verb, parser.arguments);
    return code;
}

void fp8r_options_fini(const struct fp8r_verb *verb, void *arguments)
{
    struct fp8r_option_table tables[FP8R_OPTION_TABLES];
    char *bytes = arguments;
    if (!arguments) return;
    fp8r_options_tables(verb, tables);
    for (size_t i = 0; i < option_count(tables); i++) {
        const struct fp8r_option *option = option_at(tables, i);
        if (option->kind == FP8R_OPTION_EACH || option->kind == FP8R_OPTION_LIST)
            free(((struct fp8r_words *)(void *)(bytes + option->offset))->items);
    }
    free(((struct fp8r_common *)arguments)->words.items);
    free(arguments);
}

int fp8r_options_refuse_idle(const char *beside, const struct fp8r_idle_option *options, size_t count,
                             struct fp8r_tool_error *error)
{
    for (size_t i = 0; i < count; i++)
        if (options[i].is_given)
            return fp8r_tool_error_set(error, FP8R_EXIT_USAGE, "--%s says nothing to %s (%s): leave out one of the two",
                                       options[i].name, beside, options[i].why);
    return FP8R_EXIT_GOOD;
}
