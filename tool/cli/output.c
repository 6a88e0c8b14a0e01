/* Building and printing the object.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/output.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/terminal.h"

void fp8r_output_init(struct fp8r_output *output, const char *verb)
{
    char schema[64];
    snprintf(schema, sizeof schema, "fp8route.%s/1", verb);
    *output = (struct fp8r_output){.root = json_object()};
    output->is_short = !output->root;
    fp8r_output_set_text(output, output->root, "schema", schema);
}

void fp8r_output_set(struct fp8r_output *output, json_t *object, const char *key, json_t *value)
{
    if (!object) json_decref(value);
    if (!object || json_object_set_new(object, key, value) != 0) output->is_short = true;
}

void fp8r_output_append(struct fp8r_output *output, json_t *array, json_t *value)
{
    if (!array) json_decref(value);
    if (!array || json_array_append_new(array, value) != 0) output->is_short = true;
}

/* json_string refuses what is no UTF-8: then everything beyond ASCII goes. */
static json_t *make_text(const char *text)
{
    json_t *made = json_string(text);
    char *plain = made ? NULL : strdup(text);
    if (!plain) return made;
    for (char *at = plain; *at; at++)
        if ((unsigned char)*at >= 0x80) *at = '?';
    made = json_string(plain);
    free(plain);
    return made;
}

void fp8r_output_set_text(struct fp8r_output *output, json_t *object, const char *key, const char *text)
{
    fp8r_output_set(output, object, key, text ? make_text(text) : json_null());
}

json_t *fp8r_output_add_array(struct fp8r_output *output, json_t *object, const char *key)
{
    fp8r_output_set(output, object, key, json_array());
    return json_object_get(object, key);
}

json_t *fp8r_output_add_object(struct fp8r_output *output, json_t *object, const char *key)
{
    fp8r_output_set(output, object, key, json_object());
    return json_object_get(object, key);
}

json_t *fp8r_output_append_object(struct fp8r_output *output, json_t *array)
{
    fp8r_output_append(output, array, json_object());
    return json_array_get(array, json_array_size(array) - 1);
}

int fp8r_output_print(struct fp8r_output *output, struct fp8r_tool_error *error)
{
    bool is_short = output->is_short;
    if (!is_short) {
        is_short = json_dumpf(output->root, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(9)) != 0;
        putchar('\n');
    }
    json_decref(output->root);
    *output = (struct fp8r_output){0};
    return is_short && !fp8r_is_read_no_more(stdout)
               ? fp8r_tool_error_set(error, FP8R_EXIT_INTERNAL, "the JSON object could not be written")
               : FP8R_EXIT_GOOD;
}
