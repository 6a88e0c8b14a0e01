/* SHA-256 (FIPS 180-4), for route identities: equal digest, equal decisions.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_BASE_SHA256_H
#define FP8R_BASE_SHA256_H

#include <stddef.h>
#include <stdint.h>

struct fp8r_sha256 {
    uint32_t state[8];
    uint64_t length_bytes;
    uint8_t block[64];
};

void fp8r_sha256_init(struct fp8r_sha256 *hash);
void fp8r_sha256_add(struct fp8r_sha256 *hash, const void *data, size_t size);
/* A string with its terminating zero, so that "ab","c" and "a","bc" differ; NULL counts as "". */
void fp8r_sha256_add_string(struct fp8r_sha256 *hash, const char *text);
void fp8r_sha256_finish(struct fp8r_sha256 *hash, unsigned char digest[32]);

#endif
