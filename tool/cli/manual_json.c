/* Help as JSON, for programs that complete or wrap the command line.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/manual.h"

#include "cli/options.h"
#include "cli/output.h"

static void add_option(struct fp8r_output *output, json_t *list, const struct fp8r_option *option)
{
    json_t *object = fp8r_output_append_object(output, list);
    fp8r_output_set_text(output, object, "name", option->name);
    fp8r_output_set_text(output, object, "value", option->value);
    fp8r_output_set_text(output, object, "help", option->help);
}

static void add_verb(struct fp8r_output *output, json_t *verbs, const struct fp8r_verb *verb)
{
    struct fp8r_option_table tables[FP8R_OPTION_TABLES];
    json_t *object = fp8r_output_append_object(output, verbs);
    fp8r_output_set_text(output, object, "name", verb->name);
    fp8r_output_set_text(output, object, "summary", verb->summary);
    fp8r_output_set_text(output, object, "words", verb->words);
    json_t *list = fp8r_output_add_array(output, object, "options");
    fp8r_options_tables(verb, tables);
    for (int i = 0; i < FP8R_OPTION_TABLES; i++)
        for (size_t j = 0; j < tables[i].count; j++)
            add_option(output, list, &tables[i].options[j]);
}

static void add_items(struct fp8r_output *output, const char *key, const struct fp8r_manual_item *items)
{
    json_t *object = fp8r_output_add_object(output, output->root, key);
    for (; items->name; items++)
        fp8r_output_set_text(output, object, items->name, items->text);
}

int fp8r_manual_print_json(const struct fp8r_verb *verb, struct fp8r_tool_error *error)
{
    struct fp8r_output output;
    fp8r_output_init(&output, "help");
    json_t *verbs = fp8r_output_add_array(&output, output.root, "verbs");
    for (size_t i = 0; fp8r_verb_at(i); i++)
        if (!verb || verb == fp8r_verb_at(i))
            add_verb(&output, verbs, fp8r_verb_at(i));
    add_items(&output, "environment", fp8r_manual_environment);
    add_items(&output, "exit_codes", fp8r_manual_exits);
    return fp8r_output_print(&output, error);
}
