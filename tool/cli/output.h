/* The program's JSON: one object a run, with its schema. Any text becomes valid UTF-8; memory that ran out is
 * noticed when the object is printed. SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_OUTPUT_H
#define FP8R_OUTPUT_H

#include <jansson.h>

#include <stdbool.h>

#include "tool_error.h"

struct fp8r_output {
    json_t *root;
    bool is_short; /* something found no memory */
};

/* An object of schema "fp8route.VERB/1". */
void fp8r_output_init(struct fp8r_output *output, const char *verb);

/* object[key] = value, array[] = value; both take the value over. NULL values are memory that ran out. */
void fp8r_output_set(struct fp8r_output *output, json_t *object, const char *key, json_t *value);
void fp8r_output_append(struct fp8r_output *output, json_t *array, json_t *value);

/* object[key] = text; bytes that are no UTF-8 become '?', and NULL becomes null. */
void fp8r_output_set_text(struct fp8r_output *output, json_t *object, const char *key, const char *text);

/* A new array or object as object[key]; borrowed, NULL when out of memory (which the functions above accept).
 */
json_t *fp8r_output_add_array(struct fp8r_output *output, json_t *object, const char *key);
json_t *fp8r_output_add_object(struct fp8r_output *output, json_t *object, const char *key);

/* A new object at the end of an array, likewise. */
json_t *fp8r_output_append_object(struct fp8r_output *output, json_t *array);

/* Prints the object to standard output and releases it. Exit code: INTERNAL where something is missing. */
int fp8r_output_print(struct fp8r_output *output, struct fp8r_tool_error *error);

#endif
