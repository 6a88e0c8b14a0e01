/* What a route file's times are tied to: made from device facts and loaded libraries, compared part by part.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "base/sha256.h"
#include "device/device.h"
#include "route/route_file.h"

enum { BANDWIDTH_STEP_GBS = 500 };

static const char *kind_name(int32_t kind)
{
    return kind == FP8R_DEVICE_CUDA ? "cuda" : "cpu";
}

static void add_library(struct fp8r_identity *identity, const fp8r_backend *backend)
{
    const char *version = backend->library ? backend->library(backend->user) : NULL;
    if (!version || !*version || identity->library_count == FP8R_LIBRARIES_MAX)
        return;
    struct fp8r_library *library = &identity->libraries[identity->library_count++];
    snprintf(library->backend, sizeof library->backend, "%s", backend->name);
    snprintf(library->version, sizeof library->version, "%s", version);
}

void fp8r_identity_init(const fp8r_device_facts *device, const struct fp8r_registry *registry,
                        struct fp8r_identity *identity)
{
    memset(identity, 0, sizeof *identity);
    identity->kind = device->kind;
    if (device->kind == FP8R_DEVICE_CUDA) {
        identity->arch = device->arch;
        identity->sm_count = device->sm_count;
        identity->bandwidth_class =
            (device->bandwidth_gbs + BANDWIDTH_STEP_GBS / 2) / BANDWIDTH_STEP_GBS * BANDWIDTH_STEP_GBS;
    } else {
        identity->cpu_features = device->cpu_features;
        identity->threads = device->threads;
        identity->last_level_bytes = device->last_level_bytes;
    }
    for (int i = 0; i < registry->count; i++)
        if (registry->rows[i].fits)
            add_library(identity, &registry->rows[i].backend);
}

void fp8r_identity_format(const struct fp8r_identity *identity, char text[FP8R_IDENTITY_BYTES])
{
    char features[128];
    if (identity->kind == FP8R_DEVICE_CUDA) {
        snprintf(text, FP8R_IDENTITY_BYTES, "arch=%d sm_count=%d bandwidth_gbs=%lld", (int)identity->arch,
                 (int)identity->sm_count, (long long)identity->bandwidth_class);
        return;
    }
    fp8r_cpu_features_format(identity->cpu_features, features, sizeof features);
    snprintf(text, FP8R_IDENTITY_BYTES, "features=%s threads=%d llc_bytes=%lld", features, (int)identity->threads,
             (long long)identity->last_level_bytes);
}

void fp8r_identity_hash(const struct fp8r_identity *identity, char text[17])
{
    struct fp8r_sha256 hash;
    unsigned char digest[32];
    char stable[FP8R_IDENTITY_BYTES];
    fp8r_identity_format(identity, stable);
    fp8r_sha256_init(&hash);
    fp8r_sha256_add_string(&hash, kind_name(identity->kind));
    fp8r_sha256_add_string(&hash, stable);
    fp8r_sha256_finish(&hash, digest);
    for (int i = 0; i < 8; i++)
        snprintf(text + 2 * i, 3, "%02x", digest[i]);
}

/* "openblas 0.3.21" -> length of "openblas 0": the name and the major version. */
static size_t major_length(const char *version)
{
    const char *space = strrchr(version, ' ');
    const char *number = space ? space : version;
    return (size_t)(number - version) + strcspn(number, ".");
}

static bool same_major(const char *a, const char *b)
{
    size_t length = major_length(a);
    return length == major_length(b) && strncmp(a, b, length) == 0;
}

static bool libraries_fit(const struct fp8r_identity *of, const struct fp8r_identity *here, char *line, size_t size)
{
    for (int i = 0; i < of->library_count; i++) {
        const struct fp8r_library *library = &of->libraries[i];
        for (int j = 0; j < here->library_count; j++) {
            if (strcmp(here->libraries[j].backend, library->backend) != 0 ||
                same_major(here->libraries[j].version, library->version))
                continue;
            snprintf(line, size, "it was measured with another library behind %s: %s, here %s", library->backend,
                     library->version, here->libraries[j].version);
            return false;
        }
    }
    return true;
}

bool fp8r_identity_fits(const struct fp8r_identity *of, const struct fp8r_identity *here, char *line, size_t size)
{
    const struct {
        const char *what;
        int64_t of, here;
    } numbers[] = {{"arch", of->arch, here->arch},
                   {"sm_count", of->sm_count, here->sm_count},
                   {"bandwidth_gbs", of->bandwidth_class, here->bandwidth_class},
                   {"threads", of->threads, here->threads},
                   {"llc_bytes", of->last_level_bytes, here->last_level_bytes}};
    if (of->kind != here->kind) {
        snprintf(line, size, "it was measured on another kind of device: %s, here %s", kind_name(of->kind),
                 kind_name(here->kind));
        return false;
    }
    if (of->cpu_features != here->cpu_features) {
        char theirs[128], ours[128];
        fp8r_cpu_features_format(of->cpu_features, theirs, sizeof theirs);
        fp8r_cpu_features_format(here->cpu_features, ours, sizeof ours);
        snprintf(line, size, "it was measured with other processor features: %s, here %s", theirs, ours);
        return false;
    }
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        if (numbers[i].of != numbers[i].here) {
            snprintf(line, size, "it was measured with %s=%lld, here it is %lld", numbers[i].what,
                     (long long)numbers[i].of, (long long)numbers[i].here);
            return false;
        }
    }
    return libraries_fit(of, here, line, size);
}
