/* Problem and family text from a stranger: what is accepted is written again and must read back as the same.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "problem/grammar.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void problem_check(const char *text)
{
    fp8r_matmul matmul, again;
    struct fp8r_product product, product_again;
    char written[FP8R_TEXT_BYTES], rewritten[FP8R_TEXT_BYTES];
    if (fp8r_matmul_parse(text, &matmul) != FP8R_OK) {
        if (fp8r_last_error()[0] == '\0') abort();
        return;
    }
    if (fp8r_matmul_format(&matmul, written, sizeof written) != FP8R_OK) abort();
    if (fp8r_matmul_parse(written, &again) != FP8R_OK) abort();
    if (fp8r_matmul_format(&again, rewritten, sizeof rewritten) != FP8R_OK) abort();
    if (strcmp(written, rewritten) != 0) abort();
    if (fp8r_product_init(&matmul, FP8R_DATA_IGNORED, &product) != FP8R_OK) abort();
    if (fp8r_product_init(&again, FP8R_DATA_IGNORED, &product_again) != FP8R_OK) abort();
    if (fp8r_problem_is_empty(&product.problem) || product.problem.k == 0) return; /* layouts of nothing may differ */
    struct fp8r_key key, key_again;
    fp8r_key_init(&product.problem, FP8R_MODE_EAGER, &key);
    fp8r_key_init(&product_again.problem, FP8R_MODE_EAGER, &key_again);
    if (!fp8r_key_equal(&key, &key_again) || product.problem.m != product_again.problem.m) abort();
}

static void family_check(const char *text)
{
    struct fp8r_key key, again;
    char written[FP8R_TEXT_BYTES];
    if (fp8r_family_parse(text, FP8R_MODE_EAGER, &key) != FP8R_OK) return;
    if ((double)key.batch * (double)key.n * (double)key.k > 1e12) return; /* "any" and "pad" take more than 64 bits there */
    if (fp8r_family_format(&key, written, sizeof written) != FP8R_OK) abort();
    if (fp8r_family_parse(written, FP8R_MODE_EAGER, &again) != FP8R_OK) abort();
    if (!fp8r_key_equal(&key, &again)) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);
    if (!text) return 0;
    memcpy(text, data, size);
    text[size] = '\0';
    problem_check(text);
    family_check(text);
    free(text);
    return 0;
}
