/* Reading JSON text that came from outside: parsing that rejects duplicate keys and invalid UTF-8 and
 * survives a lack of memory. Knows nothing of what the JSON describes. SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_TOOL_JSON_H
#define FP8R_TOOL_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "tool_error.h"

/* A parsed text. Everything under root lives in the document's own memory: never json_decref any of it. */
struct fp8r_json {
    json_t *root; /* an object */
    struct fp8r_json_chunk *chunks;
};

/* Parses text as one JSON object; origin names the file in errors. */
int fp8r_json_open(const char *text, size_t text_bytes, const char *origin, struct fp8r_json *json,
                   struct fp8r_tool_error *error);

void fp8r_json_close(struct fp8r_json *json);

/* A member's value, where it is there and of that kind; they ask for no memory. A number may be an integer. */
bool fp8r_json_text(const json_t *object, const char *key, const char **text);
bool fp8r_json_integer(const json_t *object, const char *key, int64_t *integer);
bool fp8r_json_number(const json_t *object, const char *key, double *number);
bool fp8r_json_boolean(const json_t *object, const char *key, bool *boolean);

/* "an integer", "a string", ...: what a value is, for messages; "missing" for NULL. */
const char *fp8r_json_kind(const json_t *value);

#endif
