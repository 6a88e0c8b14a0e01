/* A trace from a stranger: what is read adds up, twice the file is twice the calls, and every family can be tuned.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz_file.h"
#include "tune/trace_read.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void traced_check(const struct fp8r_traced *traced)
{
    int64_t calls = 0, captured = 0;
    for (size_t i = 0; i < traced->count; i++) {
        const struct fp8r_trace_problem *it = &traced->problems[i];
        if (it->calls < 1 || it->captured < 0 || it->captured > it->calls || !(it->cost >= 0)) abort();
        if (fp8r_trace_calls(traced, &it->key, it->m) < it->calls) abort();
        fp8r_trace_add(&calls, it->calls);
        fp8r_trace_add(&captured, it->captured);
    }
    if (calls != traced->calls || captured != traced->captured) abort();
}

static void families_check(const struct fp8r_traced *traced)
{
    struct fp8r_tune_families all = {0}, some = {0};
    if (fp8r_families_add_traced(&all, traced, 0, NULL) != FP8R_EXIT_GOOD) abort();
    if (fp8r_families_add_traced(&some, traced, 2, NULL) != FP8R_EXIT_GOOD || some.count != all.count) abort();
    for (size_t i = 0; i < all.count; i++)
        if (some.items[i].m_count < 1 || some.items[i].m_count > 2 || all.items[i].m_count < some.items[i].m_count) abort();
    if (fp8r_families_weigh_traced(&all, traced, NULL) != FP8R_EXIT_GOOD) abort();
    fp8r_families_fini(&all);
    fp8r_families_fini(&some);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fp8r_traced once = {0}, twice = {0};
    struct fp8r_tool_error error = {0};
    const char *path = fuzz_file(data, size);
    const char *const paths[] = {path, path};
    int code = fp8r_trace_read(&once, &path, 1, &error);
    if (fp8r_trace_read(&twice, paths, 2, &error) != code) abort();
    if (code != FP8R_EXIT_GOOD) {
        if (code != FP8R_EXIT_BAD_DATA || error.text[0] == '\0') abort();
    } else {
        traced_check(&once);
        traced_check(&twice);
        families_check(&once);
        if (once.calls < INT64_MAX / 2 && twice.calls != 2 * once.calls) abort();
        if (twice.count != once.count || twice.processes != 2 * once.processes) abort();
    }
    fp8r_traced_fini(&once);
    fp8r_traced_fini(&twice);
    return 0;
}
