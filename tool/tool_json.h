/* Reading JSON text that came from outside: parsing that rejects duplicate keys and invalid UTF-8 and
 * survives a lack of memory. Knows nothing of what the JSON describes. SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_TOOL_JSON_H
#define FP8R_TOOL_JSON_H

#include <stddef.h>

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

/* "an integer", "a string", ...: what a value is, for messages; "missing" for NULL. */
const char *fp8r_json_kind(const json_t *value);

#endif
