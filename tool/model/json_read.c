/* Reads JSON text for the model readers. The one place that calls the JSON parser, because the parser needs
 * two precautions here: no duplicate keys, and no silent damage when memory runs out.
 * SPDX-License-Identifier: Apache-2.0 */
#include "json_read.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* The parser drops characters of a token when its buffer cannot grow, and then reports nothing or a syntax
 * error. So its allocator remembers that it refused. Thread-local: two threads may parse at once. */
static _Thread_local bool allocation_refused;

static void *remembering_malloc(size_t bytes)
{
    void *memory = malloc(bytes);
    if (memory == NULL) allocation_refused = true;
    return memory;
}

int fp8r_json_parse(const char *text, size_t text_bytes, const char *origin, json_t **root,
                    struct fp8r_tool_error *error)
{
    json_error_t detail;
    memset(&detail, 0, sizeof detail);
    json_set_alloc_funcs(remembering_malloc, free);
    allocation_refused = false;
    json_t *value = json_loadb(text, text_bytes, JSON_REJECT_DUPLICATES, &detail);
    if (allocation_refused) {
        json_decref(value);
        return fp8r_tool_error_memory(error, "the parsed JSON");
    }
    if (value == NULL) {
        return fp8r_tool_error_set(error, FP8R_EXIT_BAD_DATA, "%.200s: bad JSON at line %d, column %d: %s",
                                   origin, detail.line, detail.column, detail.text);
    }
    if (!json_is_object(value)) {
        int rc = fp8r_tool_error_set(error, FP8R_EXIT_BAD_DATA,
                                     "%.200s: the JSON is %s, it must be an object {...}", origin,
                                     fp8r_json_kind(value));
        json_decref(value);
        return rc;
    }
    *root = value;
    return FP8R_EXIT_GOOD;
}

const char *fp8r_json_kind(const json_t *value)
{
    if (value == NULL) return "missing";
    switch (json_typeof(value)) {
    case JSON_OBJECT:
        return "an object";
    case JSON_ARRAY:
        return "an array";
    case JSON_STRING:
        return "a string";
    case JSON_INTEGER:
        return "an integer";
    case JSON_REAL:
        return "a number with a fraction or exponent";
    case JSON_TRUE:
    case JSON_FALSE:
        return "true or false";
    case JSON_NULL:
        break;
    }
    return "null";
}
