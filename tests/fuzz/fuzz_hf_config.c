/* config.json from a stranger: parse it, and where it parses list its layers at every degree from 0 to 16.
 * What is listed must be a product (N, K in 1..2^31-1), whatever the fields were. SPDX-License-Identifier:
 * Apache-2.0 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz_file.h"
#include "model/hf_config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void layers_check(const struct fp8r_hf_config *config, int64_t tp, bool fused)
{
    struct fp8r_projection_list list = {0};
    struct fp8r_tool_error error = {0};
    int rc = fp8r_hf_config_projections(config, tp, fused, &list, &error);
    if (rc != FP8R_EXIT_GOOD && (rc != error.exit_code || error.text[0] == '\0' || list.count != 0)) abort();
    if (rc == FP8R_EXIT_GOOD && list.count != (fused ? 4 : 7)) abort();
    for (size_t i = 0; i < list.count; i++) {
        const struct fp8r_projection *layer = &list.items[i];
        if (layer->n < 1 || layer->n > INT32_MAX || layer->k < 1 || layer->k > INT32_MAX) abort();
    }
    fp8r_projection_list_fini(&list);
}

/* A file and a buffer of the same bytes are the same configuration. */
static void file_check(const uint8_t *data, size_t size, const struct fp8r_hf_config *expected,
                       int expected_rc)
{
    struct fp8r_hf_config config = {0};
    struct fp8r_tool_error error = {0};
    if (fp8r_hf_config_read(fuzz_file(data, size), &config, &error) != expected_rc) abort();
    if (memcmp(&config, expected, sizeof config) != 0) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fp8r_hf_config config = {0};
    struct fp8r_tool_error error = {0};
    int rc = fp8r_hf_config_parse((const char *)data, size, "fuzz", &config, &error);
    if (fuzz_wants_file(data, size)) file_check(data, size, &config, rc);
    if (rc != FP8R_EXIT_GOOD) {
        if (rc != error.exit_code || error.text[0] == '\0') abort();
        return 0;
    }
    for (int64_t tp = 0; tp <= 16; tp++) {
        layers_check(&config, tp, true);
        layers_check(&config, tp, false);
    }
    return 0;
}
