/* The null backend. SPDX-License-Identifier: Apache-2.0 */
#include "support/null_backend.h"

static bool supports(void *user, const fp8r_device_facts *device, const fp8r_problem *problem, int config,
                     fp8r_reason *reason)
{
    (void)user, (void)device, (void)problem, (void)config, (void)reason;
    return true;
}

static int pick(void *user, const fp8r_device_facts *device, const fp8r_problem *problem)
{
    (void)user, (void)device, (void)problem;
    return 0;
}

static fp8r_status run(void *user, const fp8r_services *services, const void *state, const fp8r_problem *problem,
                       int config, const fp8r_pointers *pointers, void *workspace, size_t workspace_bytes, void *stream)
{
    (void)user, (void)services, (void)state, (void)problem, (void)config, (void)pointers, (void)workspace;
    (void)workspace_bytes, (void)stream;
    return FP8R_OK;
}

static const char *const configs[] = {"null", NULL};
static const fp8r_capability capabilities[] = {{.kind = FP8R_DEVICE_CPU}, {.kind = FP8R_DEVICE_CUDA, .arch_max = 999}};

const fp8r_backend null_backend = {
    .abi_version = FP8R_BACKEND_ABI,
    .priority = 99,
    .struct_size = sizeof null_backend,
    .name = "null",
    .description = "computes nothing",
    .rev = "1",
    .capabilities = capabilities,
    .capability_count = 2,
    .configs = configs,
    .supports = supports,
    .pick = pick,
    .run = run,
};

void null_operands(fp8r_matmul *matmul)
{
    fp8r_matrix *matrices[] = {&matmul->a, &matmul->b, &matmul->out, &matmul->scale_a, &matmul->scale_b, &matmul->bias};
    for (uintptr_t i = 0; i < 6; i++)
        if (matrices[i]->dtype != FP8R_DTYPE_NONE)
            matrices[i]->data = (void *)((i + 1) << 20);
}
