/* Builds safetensors images in memory and files in a temporary folder, for tests of their readers.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_TEST_IMAGE_H
#define FP8R_TEST_IMAGE_H

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

/* Header length, header, then data_bytes of data: byte i of it is i mod 251. Owned by the caller. */
static inline unsigned char *image_make(const char *header, size_t data_bytes, size_t *image_bytes)
{
    size_t header_bytes = strlen(header);
    unsigned char *image = malloc(8 + header_bytes + data_bytes);
    assert_non_null(image);
    for (size_t i = 0; i < 8; i++) {
        image[i] = (unsigned char)((uint64_t)header_bytes >> 8 * i);
    }
    memcpy(image + 8, header, header_bytes);
    for (size_t i = 0; i < data_bytes; i++) {
        image[8 + header_bytes + i] = (unsigned char)(i % 251);
    }
    *image_bytes = 8 + header_bytes + data_bytes;
    return image;
}

/* A fresh folder, removed with what is in it by folder_remove. */
struct folder {
    char path[64];
};

static inline void folder_make(struct folder *folder)
{
    const char *root = getenv("TMPDIR");
    (void)snprintf(folder->path, sizeof folder->path, "%.40s/fp8r-XXXXXX", root == NULL ? "/tmp" : root);
    assert_non_null(mkdtemp(folder->path));
}

static inline void folder_remove(const struct folder *folder)
{
    char path[sizeof folder->path + 257];
    DIR *entries = opendir(folder->path);
    assert_non_null(entries);
    for (struct dirent *entry = readdir(entries); entry != NULL; entry = readdir(entries)) {
        (void)snprintf(path, sizeof path, "%s/%s", folder->path, entry->d_name);
        (void)unlink(path);
    }
    (void)closedir(entries);
    assert_int_equal(rmdir(folder->path), 0);
}

/* Writes bytes to folder/name and returns that path in a buffer the next call but three overwrites. */
static inline const char *folder_write(const struct folder *folder, const char *name, const void *bytes,
                                       size_t count)
{
    static char paths[4][128];
    static size_t turn;
    char *path = paths[turn++ % 4];
    (void)snprintf(path, sizeof paths[0], "%s/%.50s", folder->path, name);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, count, file), count);
    assert_int_equal(fclose(file), 0);
    return path;
}

/* The whole of a file; owned by the caller. */
static inline unsigned char *file_bytes(const char *path, size_t *count)
{
    FILE *file = fopen(path, "rb");
    if (file == NULL) fail_msg("%s is missing", path);
    assert_int_equal(fseek(file, 0, SEEK_END), 0);
    *count = (size_t)ftell(file);
    rewind(file);
    unsigned char *bytes = malloc(*count + 1);
    assert_non_null(bytes);
    assert_int_equal(fread(bytes, 1, *count, file), *count);
    (void)fclose(file);
    return bytes;
}

#endif
