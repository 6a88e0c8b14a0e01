/* Builds safetensors images in memory and files in a temporary folder, for tests of their readers.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_TEST_IMAGE_H
#define FP8R_TEST_IMAGE_H

#include <stddef.h>

/* Header length, header, then data_bytes of data: byte i of it is i mod 251. Owned by the caller. */
unsigned char *image_make(const char *header, size_t data_bytes, size_t *image_bytes);

/* A fresh folder, removed with what is in it by folder_remove. */
struct folder {
    char path[64];
};
void folder_make(struct folder *folder);
void folder_remove(const struct folder *folder);

/* Writes bytes to folder/name and returns that path in a buffer the next call but three overwrites. */
const char *folder_write(const struct folder *folder, const char *name, const void *bytes, size_t count);

/* The whole of a file; owned by the caller. */
unsigned char *file_bytes(const char *path, size_t *count);

#endif
