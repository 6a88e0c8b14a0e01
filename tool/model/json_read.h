/* Reading JSON text that came from outside: parsing that rejects duplicate keys and invalid UTF-8.
 * Knows nothing of what the JSON describes.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_JSON_READ_H
#define FP8R_JSON_READ_H

#include <stddef.h>

#include <jansson.h>

#include "tool_error.h"

/* Parses text as one JSON object. origin names the file in errors. The caller releases *root with
 * json_decref. */
int fp8r_json_parse(const char *text, size_t text_bytes, const char *origin, json_t **root,
                    struct fp8r_tool_error *error);

/* "an integer", "a string", ...: what a value is, for messages; "missing" for NULL. */
const char *fp8r_json_kind(const json_t *value);

#endif
