/* Building and gating the registry. The only file that knows which backends exist.
 * SPDX-License-Identifier: Apache-2.0 */
#include "backend/registry.h"

#include <stdio.h>
#include <string.h>

#include "backend_revisions.h" /* made by the build: FP8R_REVISION_<name>, a hash of each folder */
#include "base/status.h"
#include "device/device.h"

/* What a folder exports: everything but the facts of the list. Declared where `built` is 1. It is a macro of the build
 * for some rows, and becomes its number on the way through JOIN. */
#define JOIN(what, built, name)  JOIN_(what, built, name)
#define JOIN_(what, built, name) what##built(name)
#define DECLARE_0(name)
#define DECLARE_1(name) extern const fp8r_backend fp8r_backend_##name;
#define ADDRESS_0(name) NULL
#define ADDRESS_1(name) &fp8r_backend_##name
#define REVISION_0(name) ""
#define REVISION_1(name) FP8R_REVISION_##name

#define FP8R_BACKEND(name, built, priority, description, kind, arch_min, arch_max, driver_min) JOIN(DECLARE_, built, name)
#include "backend/backends.inc"
#undef FP8R_BACKEND

static const struct listed {
    const char *name, *description, *rev;
    int32_t priority;
    fp8r_capability capability;
    const fp8r_backend *code;
} list[] = {
#define FP8R_BACKEND(name_, built, priority_, description_, kind_, arch_min_, arch_max_, driver_min_)                  \
    {.name = #name_,                                                                                                   \
     .description = description_,                                                                                      \
     .rev = JOIN(REVISION_, built, name_),                                                                                   \
     .priority = priority_,                                                                                            \
     .capability = {.kind = kind_, .arch_min = arch_min_, .arch_max = arch_max_, .driver_min = driver_min_},           \
     .code = JOIN(ADDRESS_, built, name_)},
#include "backend/backends.inc"
#undef FP8R_BACKEND
};
enum { LISTED = sizeof list / sizeof *list };

static void add_listed(struct fp8r_registry *registry, const struct listed *listed)
{
    struct fp8r_row *row = &registry->rows[registry->count++];
    memset(row, 0, sizeof *row);
    row->is_built = listed->code != NULL;
    if (row->is_built)
        row->backend = *listed->code;
    row->backend.abi_version = FP8R_BACKEND_ABI;
    row->backend.struct_size = sizeof row->backend;
    row->backend.name = listed->name;
    row->backend.description = listed->description;
    row->backend.rev = listed->rev;
    row->backend.priority = listed->priority;
    row->backend.capabilities = &listed->capability;
    row->backend.capability_count = 1;
    row->quantises_a = listed->capability.kind == FP8R_DEVICE_CUDA;
    row->quantising = row->is_built ? row->backend.user : NULL;
}

static bool is_name(const char *text, const char *more)
{
    size_t length = text ? strlen(text) : 0;
    if (length == 0 || length >= FP8R_NAME_BYTES)
        return false;
    return strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789_") == length ||
           (*more && strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789_ABCDEFGHIJKLMNOPQRSTUVWXYZ.=-") == length);
}

/* What is wrong with an outside backend's struct; NULL when nothing is. */
static const char *contract_fault(const fp8r_backend *backend)
{
    if (backend->abi_version != FP8R_BACKEND_ABI)
        return "abi_version is not this library's FP8R_BACKEND_ABI: rebuild it";
    if (backend->struct_size != sizeof *backend)
        return "struct_size is not sizeof(fp8r_backend): rebuild it";
    if (!is_name(backend->name, ""))
        return "name must be 1 to 63 of a-z, 0-9 and _";
    if (!backend->description || !backend->rev)
        return "description and rev must not be NULL";
    if (!backend->capabilities || backend->capability_count == 0)
        return "it has no capability window";
    for (size_t i = 0; i < backend->capability_count; i++) {
        const fp8r_capability *window = &backend->capabilities[i];
        if ((window->kind != FP8R_DEVICE_CPU && window->kind != FP8R_DEVICE_CUDA) || window->arch_min > window->arch_max)
            return "a capability window is empty: arch_min > arch_max, or no such device kind";
    }
    if (!backend->configs || !backend->configs[0])
        return "configs must name at least one configuration";
    for (int i = 0; backend->configs[i]; i++) {
        if (!is_name(backend->configs[i], "more"))
            return "a configuration name must be 1 to 63 of letters, digits and _.=-";
        for (int j = 0; j < i; j++)
            if (strcmp(backend->configs[i], backend->configs[j]) == 0)
                return "two configurations have one name";
    }
    if (!backend->supports || !backend->pick || !backend->run)
        return "supports, pick and run must not be NULL";
    if (backend->prepare && !backend->destroy)
        return "prepare needs a destroy";
    return NULL;
}

static fp8r_status add_outside(struct fp8r_registry *registry, const fp8r_backend *backend, size_t index)
{
    if (!backend)
        return fp8r_fail(FP8R_ERROR_INVALID_ARGUMENT, "options.backends[%zu] is NULL", index);
    const char *fault = contract_fault(backend);
    if (fault)
        return fp8r_fail(FP8R_ERROR_INVALID_ARGUMENT, "options.backends[%zu]: %s", index, fault);
    if (fp8r_registry_find(registry, backend->name, strlen(backend->name)) >= 0)
        return fp8r_fail(FP8R_ERROR_INVALID_ARGUMENT, "options.backends[%zu]: the name %s is taken", index,
                         backend->name);
    if (registry->count == FP8R_ROWS_MAX)
        return fp8r_fail(FP8R_ERROR_INVALID_ARGUMENT, "options.backend_count: a context holds %d backends at most",
                         (int)FP8R_ROWS_MAX);
    struct fp8r_row *row = &registry->rows[registry->count++];
    memset(row, 0, sizeof *row);
    row->backend = *backend;
    row->is_built = true;
    row->is_outside = true;
    return FP8R_OK;
}

/* Insertion sort: short, and stable. */
static void sort(struct fp8r_registry *registry)
{
    for (int i = 1; i < registry->count; i++) {
        struct fp8r_row row = registry->rows[i];
        int at = i;
        for (; at > 0 && registry->rows[at - 1].backend.priority < row.backend.priority; at--)
            registry->rows[at] = registry->rows[at - 1];
        registry->rows[at] = row;
    }
}

fp8r_status fp8r_registry_init(struct fp8r_registry *registry, const fp8r_backend *const *outside, size_t outside_count)
{
    registry->count = 0;
    for (int i = 0; i < LISTED; i++)
        add_listed(registry, &list[i]);
    if (outside_count > 0 && !outside)
        return fp8r_fail(FP8R_ERROR_INVALID_ARGUMENT, "options.backends is NULL, but backend_count is %zu",
                         outside_count);
    for (size_t i = 0; i < outside_count; i++)
        FP8R_TRY(add_outside(registry, outside[i], i));
    sort(registry);
    return FP8R_OK;
}

static bool is_denied(const char *deny, const char *name)
{
    size_t length = strlen(name);
    for (const char *at = deny; at && *at; at += strcspn(at, ","), at += *at == ',')
        if (strcspn(at, ",") == length && strncmp(at, name, length) == 0)
            return true;
    return false;
}

static bool gate(const struct fp8r_row *row, const fp8r_device_facts *device, const char *deny, bool probe,
                 fp8r_reason *reason)
{
    const fp8r_backend *backend = &row->backend;
    if (!fp8r_capabilities_fit(backend->capabilities, backend->capability_count, device, reason))
        return false;
    FP8R_REJECT_IF(!row->is_built, reason, NOT_BUILT, backend->name, 0, 0);
    FP8R_REJECT_IF(is_denied(deny, backend->name), reason, DENIED, backend->name, 0, 0);
    return !probe || !backend->probe || backend->probe(backend->user, device, reason);
}

void fp8r_registry_gate(struct fp8r_registry *registry, const fp8r_device_facts *device, const char *deny, bool probe)
{
    for (int i = 0; i < registry->count; i++) {
        struct fp8r_row *row = &registry->rows[i];
        row->reason = (fp8r_reason){0};
        row->fits = gate(row, device, deny, probe, &row->reason);
    }
}

int fp8r_registry_find(const struct fp8r_registry *registry, const char *name, size_t length)
{
    for (int i = 0; i < registry->count; i++)
        if (strlen(registry->rows[i].backend.name) == length &&
            strncmp(registry->rows[i].backend.name, name, length) == 0)
            return i;
    return -1;
}

int fp8r_row_config(const struct fp8r_row *row, const char *config)
{
    for (int i = 0; row->is_built && row->backend.configs[i]; i++)
        if (strcmp(row->backend.configs[i], config) == 0)
            return i;
    return -1;
}

static fp8r_status unknown_backend(const struct fp8r_registry *registry, const char *text, size_t length)
{
    char names[256] = "";
    size_t used = 0;
    for (int i = 0; i < registry->count && used < sizeof names; i++)
        used += (size_t)snprintf(names + used, sizeof names - used, "%s%s", i ? ", " : "",
                                 registry->rows[i].backend.name);
    return fp8r_fail(FP8R_ERROR_NOT_FOUND, "no backend is named \"%.*s\": there are %s", (int)(length > 63 ? 63 : length),
                     text, names);
}

fp8r_status fp8r_registry_check_name(const struct fp8r_registry *registry, const char *name, size_t length)
{
    return fp8r_registry_find(registry, name, length) < 0 ? unknown_backend(registry, name, length) : FP8R_OK;
}

fp8r_status fp8r_registry_resolve(const struct fp8r_registry *registry, const char *text, int *row, int *config)
{
    size_t length = strcspn(text, ":");
    int found = fp8r_registry_find(registry, text, length), found_config = FP8R_CONFIG_ANY;
    if (found < 0)
        return unknown_backend(registry, text, length);
    const struct fp8r_row *named = &registry->rows[found];
    if (text[length] == ':' && named->is_built) {
        found_config = fp8r_row_config(named, text + length + 1);
        if (found_config < 0)
            return fp8r_fail(FP8R_ERROR_NOT_FOUND, "backend %s has no configuration \"%.63s\": `fp8route info` lists them",
                             named->backend.name, text + length + 1);
    }
    *row = found;
    *config = found_config;
    return FP8R_OK;
}
