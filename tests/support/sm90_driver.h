/* A driver's launch made by hand: it keeps what it was given and runs nothing.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_TEST_SM90_DRIVER_H
#define FP8R_TEST_SM90_DRIVER_H

#include <stdbool.h>
#include <string.h>

#include <cuda.h>

/* How much of the kernel's first parameter is kept, and where: set by the test. */
static void *seen_arguments;
static size_t seen_arguments_bytes;
static CUlaunchConfig seen_config; /* its attributes are gone with the call */
static bool seen_early;            /* it may start while the kernel in front runs out */

static CUresult sm90_driver_start(const CUlaunchConfig *config, CUfunction function, void **parameters, void **extra)
{
    (void)function, (void)extra;
    seen_config = *config;
    seen_early = false;
    for (unsigned i = 0; i < config->numAttrs; i++)
        seen_early |= config->attrs[i].id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION &&
                      config->attrs[i].value.programmaticStreamSerializationAllowed;
    memcpy(seen_arguments, parameters[0], seen_arguments_bytes);
    return CUDA_SUCCESS;
}

/* As a plan holds it, into whose arguments it looks. */
static inline void *sm90_driver(void *arguments, size_t bytes)
{
    CUresult (*start)(const CUlaunchConfig *, CUfunction, void **, void **) = sm90_driver_start;
    seen_arguments = arguments;
    seen_arguments_bytes = bytes;
    return *(void **)&start;
}

#endif
