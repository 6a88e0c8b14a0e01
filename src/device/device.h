/* Device facts: asked of the machine once, here only. Everything else takes them as data.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_DEVICE_DEVICE_H
#define FP8R_DEVICE_DEVICE_H

#include <stddef.h>

#include <fp8route/backend.h>

/* Fills the facts of a device. threads: what a product may use, 0 = one a usable core. cpu_mask: CPU features to
 * pretend absent. Errors: INVALID_ARGUMENT (no such kind or index), UNSUPPORTED (no such device in this build). */
fp8r_status fp8r_device_facts_read(fp8r_device device, int32_t threads, uint32_t cpu_mask, fp8r_device_facts *facts);

/* The CPU's facts; facts->threads is threads, or one a core that this process may run on. */
void fp8r_cpu_facts_read(int32_t threads, fp8r_device_facts *facts);

/* "avx2+fma+f16c+avx512"; "none" for no features. */
void fp8r_cpu_features_format(uint32_t features, char *text, size_t size);

/* The other way; false where a name is unknown. */
bool fp8r_cpu_features_parse(const char *text, uint32_t *features);

/* Does the window fit the device? The reason says which part does not. */
bool fp8r_capability_fits(const fp8r_capability *window, const fp8r_device_facts *device, fp8r_reason *reason);

/* Does any? The reason is that of the window that came furthest. */
bool fp8r_capabilities_fit(const fp8r_capability *windows, size_t count, const fp8r_device_facts *device,
                           fp8r_reason *reason);

#endif
