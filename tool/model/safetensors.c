/* The safetensors header: 8 bytes of little-endian length, that many bytes of JSON, then data that the
 * tensors' ranges must tile without gap. Every number in it is an attacker's until checked here.
 * SPDX-License-Identifier: Apache-2.0 */
#include "safetensors.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "file_read.h"
#include "tool_json.h"

#define LENGTH_BYTES 8

/* What the readers of one header share. */
struct reader {
    const char *origin;
    uint64_t data_begin_bytes, file_bytes;
    struct fp8r_tool_error *error;
};

/* "FILE: tensor 'NAME': " before a complaint about a tensor; long names are cut so that the complaint always
 * fits. */
__attribute__((format(printf, 3, 4))) static int bad_tensor(const struct reader *reader, const char *name,
                                                            const char *format, ...)
{
    char complaint[200];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(complaint, sizeof complaint, format, arguments);
    va_end(arguments);
    return fp8r_tool_error_set(reader->error, FP8R_EXIT_BAD_DATA, "%.150s: tensor '%.120s': %s",
                               reader->origin, name, length < 0 ? "bad" : complaint);
}

static uint64_t length_decode(const unsigned char *bytes)
{
    uint64_t length = 0;
    for (int i = LENGTH_BYTES - 1; i >= 0; i--) {
        length = length << 8 | bytes[i];
    }
    return length;
}

/* The length of the JSON, once it is known to lie inside the file. */
static int length_check(const struct reader *reader, const unsigned char *head, size_t head_bytes,
                        uint64_t *length_bytes)
{
    if (reader->file_bytes < LENGTH_BYTES || head_bytes < LENGTH_BYTES) {
        return fp8r_tool_error_set(
            reader->error, FP8R_EXIT_BAD_DATA,
            "%.200s: %llu bytes are too few for a safetensors file, which starts with an 8-byte "
            "header length",
            reader->origin, (unsigned long long)reader->file_bytes);
    }
    uint64_t length = length_decode(head);
    if (length > FP8R_SAFETENSORS_HEADER_LIMIT_BYTES) {
        return fp8r_tool_error_set(
            reader->error, FP8R_EXIT_BAD_DATA,
            "%.200s: header length %llu passes the format's limit of %llu bytes (is this a "
            "safetensors file?)",
            reader->origin, (unsigned long long)length,
            (unsigned long long)FP8R_SAFETENSORS_HEADER_LIMIT_BYTES);
    }
    if (length > reader->file_bytes - LENGTH_BYTES) {
        return fp8r_tool_error_set(
            reader->error, FP8R_EXIT_BAD_DATA,
            "%.200s: header length %llu runs past the end of the file (%llu bytes; truncated?)",
            reader->origin, (unsigned long long)length, (unsigned long long)reader->file_bytes);
    }
    *length_bytes = length;
    return FP8R_EXIT_GOOD;
}

/* __metadata__ is a map from string to string and describes no tensor. */
static int metadata_check(const struct reader *reader, const json_t *metadata)
{
    const char *key = NULL;
    json_t *value = NULL;
    const char *kind = fp8r_json_kind(metadata);
    bool good = json_is_object(metadata);
    json_object_foreach((json_t *)metadata, key, value)
    {
        if (good && !json_is_string(value)) {
            kind = fp8r_json_kind(value);
            good = false;
        }
    }
    if (good) return FP8R_EXIT_GOOD;
    return fp8r_tool_error_set(reader->error, FP8R_EXIT_BAD_DATA,
                               "%.200s: __metadata__ holds %s; it must be an object of strings",
                               reader->origin, kind);
}

/* Space the second pass needs: names and extents of all tensors. Rejects entries without an object and a
 * shape. */
static int header_measure(const struct reader *reader, const json_t *header, size_t *count,
                          size_t *names_bytes, size_t *extents)
{
    const char *name = NULL;
    json_t *entry = NULL;
    json_object_foreach((json_t *)header, name, entry)
    {
        if (strcmp(name, "__metadata__") == 0) {
            int rc = metadata_check(reader, entry);
            if (rc != FP8R_EXIT_GOOD) return rc;
            continue;
        }
        if (!json_is_object(entry)) {
            return bad_tensor(reader, name, "its entry is %s; it must be an object", fp8r_json_kind(entry));
        }
        const json_t *shape = json_object_get(entry, "shape");
        if (!json_is_array(shape)) {
            return bad_tensor(reader, name, "shape is %s; it must be an array of integers >= 0",
                              fp8r_json_kind(shape));
        }
        /* All of it is in memory as JSON already, several bytes each, so these sums cannot wrap. */
        *count += 1;
        *names_bytes += strlen(name) + 1;
        *extents += json_array_size(shape);
    }
    return FP8R_EXIT_GOOD;
}

static int shape_read(const struct reader *reader, const char *name, const json_t *entry, int64_t *shape,
                      size_t *rank)
{
    const json_t *array = json_object_get(entry, "shape");
    *rank = json_array_size(array);
    for (size_t i = 0; i < *rank; i++) {
        const json_t *extent = json_array_get(array, i);
        if (!json_is_integer(extent) || json_integer_value(extent) < 0) {
            return bad_tensor(reader, name, "shape[%zu] is %s; it must be an integer >= 0", i,
                              json_is_integer(extent) ? "negative" : fp8r_json_kind(extent));
        }
        shape[i] = (int64_t)json_integer_value(extent);
    }
    return FP8R_EXIT_GOOD;
}

static int type_read(const struct reader *reader, const char *name, const json_t *entry,
                     const struct fp8r_tensor_type **type)
{
    const json_t *field = json_object_get(entry, "dtype");
    if (!json_is_string(field)) {
        return bad_tensor(reader, name, "dtype is %s; it must be a string such as \"BF16\"",
                          fp8r_json_kind(field));
    }
    *type = fp8r_tensor_type_find(json_string_value(field));
    if (*type != NULL) return FP8R_EXIT_GOOD;
    return bad_tensor(reader, name, "dtype \"%.40s\" is not one of the format's types",
                      json_string_value(field));
}

/* data_offsets, counted from the start of the data in the file, turned into file positions. */
static int range_read(const struct reader *reader, const json_t *entry, struct fp8r_tensor *tensor)
{
    const json_t *field = json_object_get(entry, "data_offsets");
    const json_t *first = json_array_get(field, 0), *last = json_array_get(field, 1);
    if (json_array_size(field) != 2 || !json_is_integer(first) || !json_is_integer(last) ||
        json_integer_value(first) < 0 || json_integer_value(last) < 0) {
        return bad_tensor(reader, tensor->name, "data_offsets must be [begin, end], two integers >= 0");
    }
    uint64_t begin = (uint64_t)json_integer_value(first), end = (uint64_t)json_integer_value(last);
    uint64_t data_bytes = reader->file_bytes - reader->data_begin_bytes;
    if (begin > end) {
        return bad_tensor(reader, tensor->name, "data_offsets begin %llu lies after end %llu",
                          (unsigned long long)begin, (unsigned long long)end);
    }
    if (end > data_bytes) {
        return bad_tensor(reader, tensor->name,
                          "data_offsets end %llu lies past the file's %llu bytes of data (truncated?)",
                          (unsigned long long)end, (unsigned long long)data_bytes);
    }
    tensor->begin_bytes = reader->data_begin_bytes + begin;
    tensor->end_bytes = reader->data_begin_bytes + end;
    return FP8R_EXIT_GOOD;
}

static int size_check(const struct reader *reader, const struct fp8r_tensor *tensor)
{
    char shape[96];
    uint64_t want = 0, have = tensor->end_bytes - tensor->begin_bytes;
    fp8r_tensor_shape_format(tensor, shape, sizeof shape);
    if (!fp8r_tensor_size(tensor->type, tensor->shape, tensor->rank, &want)) {
        return bad_tensor(reader, tensor->name, "shape %s of %s has no size in whole bytes below 2^63", shape,
                          tensor->type->name);
    }
    if (want == have) return FP8R_EXIT_GOOD;
    return bad_tensor(reader, tensor->name, "shape %s of %s takes %llu bytes, data_offsets give %llu", shape,
                      tensor->type->name, (unsigned long long)want, (unsigned long long)have);
}

/* Second pass, into storage that header_measure sized. */
static int tensors_read(const struct reader *reader, const json_t *header, struct fp8r_safetensors *file)
{
    const char *name = NULL;
    json_t *entry = NULL;
    char *next_name = file->names;
    int64_t *next_shape = file->shapes;
    json_object_foreach((json_t *)header, name, entry)
    {
        if (strcmp(name, "__metadata__") == 0) continue;
        struct fp8r_tensor *tensor = &file->tensors[file->count];
        size_t name_bytes = strlen(name) + 1;
        memcpy(next_name, name, name_bytes);
        tensor->name = next_name;
        tensor->shape = next_shape;
        int rc = type_read(reader, name, entry, &tensor->type);
        if (rc == FP8R_EXIT_GOOD) rc = shape_read(reader, name, entry, next_shape, &tensor->rank);
        if (rc == FP8R_EXIT_GOOD) rc = range_read(reader, entry, tensor);
        if (rc == FP8R_EXIT_GOOD) rc = size_check(reader, tensor);
        if (rc != FP8R_EXIT_GOOD) return rc;
        next_name += name_bytes;
        next_shape += tensor->rank;
        file->count++;
    }
    return FP8R_EXIT_GOOD;
}

/* By begin, then end, so that an empty tensor comes before the one that starts where it lies. */
static int range_order(const void *left, const void *right)
{
    const struct fp8r_tensor *a = *(const struct fp8r_tensor *const *)left;
    const struct fp8r_tensor *b = *(const struct fp8r_tensor *const *)right;
    if (a->begin_bytes != b->begin_bytes) return a->begin_bytes < b->begin_bytes ? -1 : 1;
    if (a->end_bytes != b->end_bytes) return a->end_bytes < b->end_bytes ? -1 : 1;
    return 0;
}

/* The sorted ranges must tile the data: the format allows neither overlap nor hole, so that every byte of a
 * file has one meaning. */
static int tiling_walk(const struct reader *reader, const struct fp8r_tensor *const *order, size_t count)
{
    uint64_t at = reader->data_begin_bytes;
    for (size_t i = 0; i < count; i++) {
        const struct fp8r_tensor *tensor = order[i];
        if (tensor->begin_bytes < at) {
            return bad_tensor(reader, tensor->name, "its data overlaps that of tensor '%.120s'",
                              order[i - 1]->name);
        }
        if (tensor->begin_bytes > at) {
            return bad_tensor(reader, tensor->name, "the %llu bytes before its data belong to no tensor",
                              (unsigned long long)(tensor->begin_bytes - at));
        }
        at = tensor->end_bytes;
    }
    if (at == reader->file_bytes) return FP8R_EXIT_GOOD;
    if (count > 0) {
        return bad_tensor(reader, order[count - 1]->name,
                          "%llu bytes follow its data, the file's last, and belong to no tensor",
                          (unsigned long long)(reader->file_bytes - at));
    }
    return fp8r_tool_error_set(reader->error, FP8R_EXIT_BAD_DATA, "%.200s: %llu bytes of data, but no tensor",
                               reader->origin, (unsigned long long)(reader->file_bytes - at));
}

static int tiling_check(const struct reader *reader, const struct fp8r_safetensors *file)
{
    const struct fp8r_tensor **order = calloc(file->count + 1, sizeof *order);
    if (order == NULL) return fp8r_tool_error_memory(reader->error, "the order of the tensors");
    for (size_t i = 0; i < file->count; i++) {
        order[i] = &file->tensors[i];
    }
    qsort(order, file->count, sizeof *order, range_order);
    int rc = tiling_walk(reader, order, file->count);
    free(order);
    return rc;
}

static int header_read(const struct reader *reader, const json_t *header, struct fp8r_safetensors *file)
{
    size_t count = 0, names_bytes = 0, extents = 0;
    int rc = header_measure(reader, header, &count, &names_bytes, &extents);
    if (rc != FP8R_EXIT_GOOD) return rc;
    /* One spare element each: calloc of nothing may answer NULL. */
    file->tensors = calloc(count + 1, sizeof *file->tensors);
    file->names = calloc(names_bytes + 1, 1);
    file->shapes = calloc(extents + 1, sizeof *file->shapes);
    if (file->tensors == NULL || file->names == NULL || file->shapes == NULL) {
        return fp8r_tool_error_memory(reader->error, "the tensor list");
    }
    rc = tensors_read(reader, header, file);
    if (rc == FP8R_EXIT_GOOD) rc = tiling_check(reader, file);
    return rc;
}

int fp8r_safetensors_parse(const void *head, size_t head_bytes, uint64_t file_bytes, const char *origin,
                           struct fp8r_safetensors *file, struct fp8r_tool_error *error)
{
    struct reader reader = {.origin = origin, .file_bytes = file_bytes, .error = error};
    uint64_t length = 0;
    int rc = length_check(&reader, head, head_bytes, &length);
    if (rc != FP8R_EXIT_GOOD) return rc;
    if (length > head_bytes - LENGTH_BYTES) {
        return fp8r_tool_error_set(error, FP8R_EXIT_BAD_DATA,
                                   "%.200s: the header was cut at byte %zu of %llu", origin, head_bytes,
                                   (unsigned long long)length + LENGTH_BYTES);
    }
    const char *text = (const char *)head + LENGTH_BYTES;
    if (length == 0 || text[0] != '{') {
        return fp8r_tool_error_set(error, FP8R_EXIT_BAD_DATA, "%.200s: the header must begin with '{'",
                                   origin);
    }
    reader.data_begin_bytes = LENGTH_BYTES + length;
    struct fp8r_json json = {0};
    struct fp8r_safetensors read = {0};
    rc = fp8r_json_open(text, (size_t)length, origin, &json, error);
    if (rc != FP8R_EXIT_GOOD) return rc;
    rc = header_read(&reader, json.root, &read);
    fp8r_json_close(&json);
    if (rc == FP8R_EXIT_GOOD) {
        *file = read;
    } else {
        fp8r_safetensors_fini(&read);
    }
    return rc;
}

/* Reads the length and the JSON into a new buffer; with a bad length only the 8 bytes, which parse then
 * judges. */
static int head_load(const struct fp8r_file *file, unsigned char **head, size_t *head_bytes,
                     struct fp8r_tool_error *error)
{
    unsigned char length[LENGTH_BYTES] = {0};
    size_t bytes = file->size_bytes < LENGTH_BYTES ? (size_t)file->size_bytes : LENGTH_BYTES;
    int rc = fp8r_file_read(file, 0, length, bytes, error);
    if (rc != FP8R_EXIT_GOOD) return rc;
    uint64_t json_bytes = length_decode(length);
    if (bytes == LENGTH_BYTES && json_bytes <= FP8R_SAFETENSORS_HEADER_LIMIT_BYTES &&
        json_bytes <= file->size_bytes - LENGTH_BYTES) {
        bytes += (size_t)json_bytes;
    }
    unsigned char *buffer = malloc(bytes + 1);
    if (buffer == NULL) return fp8r_tool_error_memory(error, "the safetensors header");
    rc = fp8r_file_read(file, 0, buffer, bytes, error);
    if (rc != FP8R_EXIT_GOOD) {
        free(buffer);
        return rc;
    }
    *head = buffer;
    *head_bytes = bytes;
    return FP8R_EXIT_GOOD;
}

int fp8r_safetensors_read(const char *path, struct fp8r_safetensors *file, struct fp8r_tool_error *error)
{
    struct fp8r_file opened;
    unsigned char *head = NULL;
    size_t head_bytes = 0;
    int rc = fp8r_file_open(path, &opened, error);
    if (rc != FP8R_EXIT_GOOD) return rc;
    rc = head_load(&opened, &head, &head_bytes, error);
    if (rc == FP8R_EXIT_GOOD) {
        rc = fp8r_safetensors_parse(head, head_bytes, opened.size_bytes, path, file, error);
    }
    free(head);
    fp8r_file_close(&opened);
    return rc;
}

void fp8r_safetensors_fini(struct fp8r_safetensors *file)
{
    free(file->tensors);
    free(file->names);
    free(file->shapes);
    *file = (struct fp8r_safetensors){0};
}
