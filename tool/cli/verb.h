/* One verb of the program as a table: what it is called, what it takes, how it is explained. Parsing, --help
 * and the man pages are made from these tables and from nothing else. SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_VERB_H
#define FP8R_VERB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tool_error.h"

enum fp8r_option_kind {
    FP8R_OPTION_FLAG,   /* bool */
    FP8R_OPTION_TEXT,   /* const char *; given once */
    FP8R_OPTION_COUNT,  /* int64_t, at least `least`; given once */
    FP8R_OPTION_NUMBER, /* double, at least `least`; given once */
    FP8R_OPTION_EACH,   /* struct fp8r_words; one value each time it is given */
    FP8R_OPTION_LIST    /* struct fp8r_words; every word up to the next option */
};

struct fp8r_option {
    const char *name;  /* without the dashes */
    const char *value; /* what stands for the value in help: "FILE"; NULL for a flag */
    const char *help;  /* one sentence, no period */
    enum fp8r_option_kind kind;
    size_t offset; /* of the field in the verb's arguments */
    int64_t least;
};

struct fp8r_words {
    const char **items; /* the strings are argv's */
    size_t count;
};

/* The first member of every verb's arguments. */
struct fp8r_common {
    bool json, help;
    struct fp8r_words words; /* those that are no option and no value of one */
    const char *device, *mode, *routes;
    int64_t threads; /* 0: not given */
    struct fp8r_words plugins;
};

struct fp8r_verb {
    const char *name;
    const char *summary;     /* one line, no period */
    const char *words;       /* the words it takes, as help shows them: "PROBLEM"; "" for none */
    const char *description; /* paragraphs, "\n\n" between them */
    const char *examples;    /* command lines, "\n" between them; NULL for none */
    size_t words_min, words_max;
    bool has_context; /* takes --device, --mode, --threads, --routes and --plugin */
    const struct fp8r_option *options;
    size_t option_count;
    size_t arguments_bytes; /* of the struct that begins with fp8r_common */
    /* Returns an exit code; for every other than GOOD and FAILED the error says why in one line. FAILED
     * without a line means that the output has said it. */
    int (*run)(const void *arguments, struct fp8r_tool_error *error);
};

/* The verbs in the order of the program's help; NULL behind the last. */
const struct fp8r_verb *fp8r_verb_at(size_t index);

/* NULL where there is none of that name; the error then names the nearest. */
const struct fp8r_verb *fp8r_verb_find(const char *name, struct fp8r_tool_error *error);

extern const struct fp8r_verb fp8r_verb_audit, fp8r_verb_bench, fp8r_verb_compare, fp8r_verb_conform,
    fp8r_verb_explain, fp8r_verb_fit, fp8r_verb_gate, fp8r_verb_help, fp8r_verb_info, fp8r_verb_report, fp8r_verb_run,
    fp8r_verb_shapes, fp8r_verb_table, fp8r_verb_trace, fp8r_verb_tune;

#endif
