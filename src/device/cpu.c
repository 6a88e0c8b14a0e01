/* Facts about the processor: features that processor and operating system both offer, caches, usable cores.
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE /* sched_getaffinity */
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/compiler.h"
#include "device/device.h"

#if FP8R_X86_64
#include <cpuid.h>

/* XCR0: which register sets the operating system saves. Only valid where CPUID says OSXSAVE. */
static uint64_t saved_registers(void)
{
    uint32_t low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return (uint64_t)high << 32 | low;
}

/* Bits: Intel SDM volume 2A, CPUID, leaves 1 and 7; volume 1, XCR0. */
static uint32_t detect_features(void)
{
    enum { OSXSAVE = 27, F16C = 29, FMA = 12 };
    enum { AVX2 = 5, AVX512F = 16, AVX512DQ = 17, AVX512BW = 30, AVX512VL = 31 }; /* leaf 7, ebx */
    enum { VBMI = 1 };                                                            /* leaf 7, ecx */
    enum { AMX_BF16 = 22, AMX_TILE = 24 };                                        /* leaf 7, edx */
    enum { AVX512_BF16 = 5 };                                                     /* leaf 7.1, eax */
    const uint64_t ymm = 0x6, zmm = 0xE6, tile = 0x60000;
    uint32_t a, b, c, d, features = 0;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c >> OSXSAVE & 1))
        return 0;
    uint32_t leaf1 = c;
    uint64_t saved = saved_registers();
    if ((saved & ymm) != ymm || !__get_cpuid_count(7, 0, &a, &b, &c, &d))
        return 0;
    features |= (leaf1 >> FMA & 1) ? FP8R_CPU_FMA : 0;
    features |= (leaf1 >> F16C & 1) ? FP8R_CPU_F16C : 0;
    features |= (b >> AVX2 & 1) ? FP8R_CPU_AVX2 : 0;
    uint32_t a1 = 0, b1, c1, d1;
    (void)__get_cpuid_count(7, 1, &a1, &b1, &c1, &d1);
    bool avx512 = b >> AVX512F & b >> AVX512DQ & b >> AVX512BW & b >> AVX512VL & 1;
    if (avx512 && (saved & zmm) == zmm) {
        features |= FP8R_CPU_AVX512;
        features |= (c >> VBMI & 1) ? FP8R_CPU_AVX512_VBMI : 0;
        features |= (a1 >> AVX512_BF16 & 1) ? FP8R_CPU_AVX512_BF16 : 0;
        if ((d >> AMX_BF16 & d >> AMX_TILE & 1) && (saved & tile) == tile)
            features |= FP8R_CPU_AMX_BF16;
    }
    return features;
}

static void read_name(char *name, size_t size)
{
    uint32_t words[12] = {0};
    unsigned highest = (unsigned)__get_cpuid_max(0x80000000u, NULL);
    if (highest >= 0x80000004u)
        for (uint32_t i = 0; i < 3; i++)
            (void)__get_cpuid(0x80000002u + i, &words[4 * i], &words[4 * i + 1], &words[4 * i + 2], &words[4 * i + 3]);
    snprintf(name, size, "%.48s", (const char *)words);
}
#else
static uint32_t detect_features(void)
{
    return FP8R_AARCH64 ? FP8R_CPU_NEON : 0;
}

static void read_name(char *name, size_t size)
{
    snprintf(name, size, "%s", FP8R_AARCH64 ? "AArch64 processor" : "processor");
}
#endif

static int32_t usable_cores(void)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) > 0)
        return CPU_COUNT(&set);
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    return online > 0 ? (int32_t)online : 1;
}

static int64_t cache_bytes(int name, int64_t fallback)
{
    long bytes = sysconf(name);
    return bytes > 0 ? bytes : fallback;
}

void fp8r_cpu_facts_read(int32_t threads, fp8r_device_facts *facts)
{
    memset(facts, 0, sizeof *facts);
    facts->struct_size = sizeof *facts;
    facts->kind = FP8R_DEVICE_CPU;
    facts->threads = threads > 0 ? threads : usable_cores();
    facts->cpu_features = detect_features();
    facts->l2_bytes = cache_bytes(_SC_LEVEL2_CACHE_SIZE, 1 << 20);
    facts->last_level_bytes = cache_bytes(_SC_LEVEL3_CACHE_SIZE, facts->l2_bytes);
    read_name(facts->name, sizeof facts->name);
}

static const struct {
    uint32_t bit;
    const char *name;
} feature_names[] = {
    {FP8R_CPU_AVX2, "avx2"},           {FP8R_CPU_FMA, "fma"},
    {FP8R_CPU_F16C, "f16c"},           {FP8R_CPU_AVX512, "avx512"},
    {FP8R_CPU_AVX512_VBMI, "vbmi"},    {FP8R_CPU_AVX512_BF16, "avx512bf16"},
    {FP8R_CPU_AMX_BF16, "amxbf16"},    {FP8R_CPU_NEON, "neon"},
};
enum { FEATURES = sizeof feature_names / sizeof *feature_names };

void fp8r_cpu_features_format(uint32_t features, char *text, size_t size)
{
    size_t used = 0;
    snprintf(text, size, "%s", features ? "" : "none");
    for (int i = 0; i < FEATURES; i++)
        if (features & feature_names[i].bit && used < size)
            used += (size_t)snprintf(text + used, size - used, "%s%s", used ? "+" : "", feature_names[i].name);
}

bool fp8r_cpu_features_parse(const char *text, uint32_t *features)
{
    *features = 0;
    if (strcmp(text, "none") == 0)
        return true;
    for (const char *at = text;;) {
        size_t length = strcspn(at, "+");
        int i = 0;
        while (i < FEATURES && !(strlen(feature_names[i].name) == length && !strncmp(feature_names[i].name, at, length)))
            i++;
        if (i == FEATURES)
            return false;
        *features |= feature_names[i].bit;
        if (at[length] == '\0')
            return true;
        at += length + 1;
    }
}
