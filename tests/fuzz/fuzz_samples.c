/* Samples from a stranger: read, and where they can be read, decided upon. Reading the file a second time on top adds
 * nothing, and what is built is the same.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz_file.h"
#include "tune/route_build.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void samples_check(const struct samples *samples)
{
    for (int i = 1; i < samples->run_count; i++)
        if (strcmp(samples->runs[i - 1].id, samples->runs[i].id) >= 0) abort();
    for (size_t i = 0; i < samples->case_count; i++) {
        const struct sample_case *it = &samples->cases[i];
        if (samples_find(samples, it->machine, it->problem) != it || it->fallback >= it->count) abort();
        for (int j = 0; j < it->count; j++)
            for (size_t k = 0; k < it->candidates[j].count; k++) {
                const struct sample *sample = &it->candidates[j].samples[k];
                if (!(sample->us > 0) || sample->run < 0 || sample->run >= samples->run_count) abort();
            }
    }
}

/* What the samples amount to; NULL where they amount to nothing. */
static char *build(const struct samples *samples, int machine)
{
    struct fp8r_route_file file;
    struct fp8r_build_summary summary;
    struct fp8r_tool_error error = {0};
    char *text = NULL;
    if (fp8r_build_routes(samples, machine, &file, &summary, &error) != FP8R_EXIT_GOOD) {
        if (error.text[0] == '\0') abort();
        return NULL;
    }
    if (fp8r_route_file_format(&file, &text) != FP8R_OK) abort();
    fp8r_route_file_fini(&file);
    return text;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct samples once = {0}, twice = {0};
    struct fp8r_tool_error error = {0};
    const char *path = fuzz_file(data, size);
    const char *const paths[] = {path, path};
    int code = samples_read(&once, path, &error);
    if (samples_read_paths(&twice, paths, 2, &error) != code) abort();
    if (code != FP8R_EXIT_GOOD) {
        if (code != FP8R_EXIT_BAD_DATA || error.text[0] == '\0') abort();
    } else {
        if (once.case_count != twice.case_count || once.machine_count != twice.machine_count) abort();
        samples_check(&once);
        samples_check(&twice);
        for (int i = 0; i < once.machine_count; i++) {
            char *one = build(&once, i), *two = build(&twice, i);
            if ((one == NULL) != (two == NULL) || (one && strcmp(one, two) != 0)) abort();
            free(one);
            free(two);
        }
    }
    samples_fini(&once);
    samples_fini(&twice);
    return 0;
}
