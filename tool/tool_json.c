/* Reads JSON text for the model readers. The one place that calls the JSON parser (jansson), because the
 * parser (2.14) loses characters of a token when its buffer cannot grow, and then runs past the token's end.
 * So an allocation that fails while it parses never returns to it: all its memory comes from the document's
 * chunks, and the failure jumps out and drops them together. SPDX-License-Identifier: Apache-2.0 */
#include "tool_json.h"

#include <setjmp.h>
#include <stdalign.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* A small file fits the first chunk; each is twice as large as the one before, up to a size past which there
 * is nothing to save. */
#define CHUNK_FIRST_BYTES ((size_t)4 << 10)
#define CHUNK_LAST_BYTES  ((size_t)1 << 20)

struct fp8r_json_chunk {
    struct fp8r_json_chunk *next;
    size_t used_bytes, size_bytes;
    alignas(max_align_t) unsigned char bytes[];
};

/* The parse under way on this thread. */
struct reading {
    struct fp8r_json_chunk *chunks;
    jmp_buf refused;
};

/* Thread-local because jansson hands its allocator no user pointer. */
static _Thread_local struct reading *current;

static void *chunk_take(struct reading *reading, size_t bytes)
{
    const size_t align = alignof(max_align_t);
    if (bytes > SIZE_MAX / 2) return NULL;
    bytes = (bytes + align - 1) / align * align;
    struct fp8r_json_chunk *chunk = reading->chunks;
    if (chunk == NULL || chunk->size_bytes - chunk->used_bytes < bytes) {
        size_t size_bytes = chunk == NULL ? CHUNK_FIRST_BYTES : chunk->size_bytes * 2;
        if (size_bytes > CHUNK_LAST_BYTES) size_bytes = CHUNK_LAST_BYTES;
        if (size_bytes < bytes) size_bytes = bytes;
        chunk = malloc(sizeof *chunk + size_bytes);
        if (chunk == NULL) return NULL;
        *chunk = (struct fp8r_json_chunk){.next = reading->chunks, .size_bytes = size_bytes};
        reading->chunks = chunk;
    }
    void *memory = chunk->bytes + chunk->used_bytes;
    chunk->used_bytes += bytes;
    return memory;
}

static void *parser_malloc(size_t bytes)
{
    if (current == NULL) return malloc(bytes);
    void *memory = chunk_take(current, bytes);
    if (memory == NULL) longjmp(current->refused, 1);
    return memory;
}

static void parser_free(void *memory)
{
    if (current == NULL) free(memory); /* else it goes with its chunk */
}

static void chunks_free(struct fp8r_json_chunk *chunk)
{
    while (chunk != NULL) {
        struct fp8r_json_chunk *next = chunk->next;
        free(chunk);
        chunk = next;
    }
}

/* NULL with an empty detail->text: memory was refused. */
static json_t *guarded_load(struct reading *reading, const char *text, size_t text_bytes,
                            json_error_t *detail)
{
    json_set_alloc_funcs(parser_malloc, parser_free);
    if (setjmp(reading->refused) != 0) {
        detail->text[0] = '\0';
        return NULL;
    }
    return json_loadb(text, text_bytes, JSON_REJECT_DUPLICATES, detail);
}

int fp8r_json_open(const char *text, size_t text_bytes, const char *origin, struct fp8r_json *json,
                   struct fp8r_tool_error *error)
{
    json_error_t detail;
    memset(&detail, 0, sizeof detail);
    struct reading reading = {.chunks = NULL};
    current = &reading;
    json_t *root = guarded_load(&reading, text, text_bytes, &detail);
    current = NULL;
    if (json_is_object(root)) {
        *json = (struct fp8r_json){.root = root, .chunks = reading.chunks};
        return FP8R_EXIT_GOOD;
    }
    int rc = FP8R_EXIT_BAD_DATA;
    if (root != NULL) {
        rc = fp8r_tool_error_set(error, rc, "%.200s: the JSON is %s, it must be an object {...}", origin,
                                 fp8r_json_kind(root));
    } else if (detail.text[0] == '\0') {
        rc = fp8r_tool_error_memory(error, "the parsed JSON");
    } else {
        rc = fp8r_tool_error_set(error, rc, "%.200s: bad JSON at line %d, column %d: %s", origin, detail.line,
                                 detail.column, detail.text);
    }
    chunks_free(reading.chunks);
    return rc;
}

void fp8r_json_close(struct fp8r_json *json)
{
    chunks_free(json->chunks);
    *json = (struct fp8r_json){0};
}

bool fp8r_json_text(const json_t *object, const char *key, const char **text)
{
    *text = json_string_value(json_object_get(object, key));
    return *text != NULL;
}

bool fp8r_json_integer(const json_t *object, const char *key, int64_t *integer)
{
    const json_t *value = json_object_get(object, key);
    *integer = json_integer_value(value);
    return json_is_integer(value);
}

bool fp8r_json_number(const json_t *object, const char *key, double *number)
{
    const json_t *value = json_object_get(object, key);
    *number = json_number_value(value);
    return json_is_number(value);
}

bool fp8r_json_boolean(const json_t *object, const char *key, bool *boolean)
{
    const json_t *value = json_object_get(object, key);
    *boolean = json_is_true(value);
    return json_is_boolean(value);
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
