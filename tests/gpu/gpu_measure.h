/* The first GPU, measured with: a context without route files and what the tools measure by, for a group of tests that is
 * skipped where there is no GPU. SPDX-License-Identifier: Apache-2.0 */
#ifndef GPU_MEASURE_H
#define GPU_MEASURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "measure/measure_device.h"
#include "tool_error.h"

static fp8r_context *context;
static struct fp8r_measure_device device;

#define GOOD(call)                                                                                                     \
    do {                                                                                                               \
        if ((call) != 0) fail_msg("%s: %s", #call, error.text[0] ? error.text : fp8r_last_error());                    \
    } while (0)

static int measure_set_up(void **state)
{
    enum { SKIPPED = 77 };
    (void)state;
    const fp8r_context_options options = {.struct_size = sizeof options, .flags = FP8R_NO_ROUTE_FILES};
    if (fp8r_context_create((fp8r_device){FP8R_DEVICE_CUDA, 0}, &options, &context) != FP8R_OK) {
        printf("skipped: %s\n", fp8r_last_error());
        exit(SKIPPED);
    }
    return fp8r_measure_device_init(fp8r_context_device(context), true, &device) == FP8R_OK ? 0 : -1;
}

static int measure_tear_down(void **state)
{
    (void)state;
    fp8r_measure_device_fini(&device);
    fp8r_context_destroy(context);
    return 0;
}

#endif
