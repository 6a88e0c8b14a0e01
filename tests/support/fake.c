/* The fakes' functions, all answered from the struct behind `user`.
 * SPDX-License-Identifier: Apache-2.0 */
#include "support/fake.h"

static const char *const configs[] = {"one", "two", NULL};
static const fp8r_capability any_cpu[] = {{.kind = FP8R_DEVICE_CPU}};

static bool supports(void *user, const fp8r_device_facts *device, const fp8r_problem *problem, int config,
                     fp8r_reason *reason)
{
    const struct fake *fake = user;
    (void)device;
    FP8R_REJECT_IF(config == 1 && fake->second_to > 0 && problem->m > fake->second_to, reason, SHAPE_MAX, "M", problem->m,
                   fake->second_to);
    FP8R_REJECT_IF(problem->m < fake->m_min, reason, SHAPE_MIN, "M", problem->m, fake->m_min);
    FP8R_REJECT_IF(fake->m_max > 0 && problem->m > fake->m_max, reason, SHAPE_MAX, "M", problem->m, fake->m_max);
    return true;
}

static const char *numerics(void *user, const fp8r_device_facts *device, const fp8r_problem *problem, int config)
{
    (void)device, (void)problem;
    return ((const struct fake *)user)->classes[config];
}

static int pick(void *user, const fp8r_device_facts *device, const fp8r_problem *problem)
{
    const struct fake *fake = user;
    (void)device;
    return fake->second_from > 0 && problem->m >= fake->second_from &&
           (fake->second_until == 0 || problem->m <= fake->second_until);
}

static int64_t horizon(void *user, const fp8r_device_facts *device, const fp8r_problem *problem)
{
    const struct fake *fake = user;
    const int64_t borders[] = {fake->m_min - 1, fake->m_max, fake->second_from - 1, fake->second_until};
    int64_t last = INT64_MAX;
    (void)device;
    for (int i = 0; i < 4; i++)
        if (borders[i] > 0 && borders[i] >= problem->m && borders[i] < last)
            last = borders[i];
    return last;
}

static size_t workspace(void *user, const fp8r_device_facts *device, const fp8r_problem *problem, int config)
{
    const struct fake *fake = user;
    (void)device, (void)config;
    return problem->m > fake->workspace_above ? fake->workspace_bytes : 0;
}

static fp8r_status prepare(void *user, const fp8r_services *services, const fp8r_device_facts *device,
                           const fp8r_problem *problem, int config, void **state)
{
    struct fake *fake = user;
    (void)services, (void)device, (void)config, (void)state;
    if (fake->prepare_fails_above > 0 && problem->m > fake->prepare_fails_above) {
        atomic_fetch_add(&fake->failed, 1);
        return FP8R_ERROR_DEVICE;
    }
    atomic_fetch_add(&fake->prepared, 1);
    return FP8R_OK;
}

static fp8r_status run(void *user, const fp8r_services *services, const void *state, const fp8r_problem *problem,
                       int config, const fp8r_pointers *pointers, void *space, size_t space_bytes, void *stream)
{
    struct fake *fake = user;
    (void)services, (void)state, (void)config, (void)stream;
    for (int64_t row = 0; row < problem->m && problem->out.dtype == FP8R_DTYPE_FP32; row++)
        for (int64_t col = 0; col < problem->n; col++)
            ((float *)pointers->out)[row * problem->out.row_stride + col * problem->out.col_stride] = fake->mark;
    atomic_store(&fake->given_bytes, space ? space_bytes : 0);
    atomic_fetch_add(&fake->runs, 1);
    return (fp8r_status)fake->run_answers;
}

static void destroy(void *user, void *state)
{
    (void)state;
    atomic_fetch_add(&((struct fake *)user)->destroyed, 1);
}

static double expect(void *user, const fp8r_device_facts *device, const fp8r_problem *problem, int config)
{
    (void)device, (void)problem, (void)config;
    return ((const struct fake *)user)->expected_us;
}

fp8r_backend fake_backend(struct fake *fake, const char *name, int32_t priority)
{
    return (fp8r_backend){.abi_version = FP8R_BACKEND_ABI,
                          .priority = priority,
                          .struct_size = sizeof(fp8r_backend),
                          .name = name,
                          .description = "a fake",
                          .rev = "1",
                          .capabilities = any_cpu,
                          .capability_count = 1,
                          .configs = configs,
                          .user = fake,
                          .supports = supports,
                          .numerics = numerics,
                          .pick = pick,
                          .horizon = horizon,
                          .workspace = workspace,
                          .prepare = prepare,
                          .run = run,
                          .destroy = destroy,
                          .expect = expect};
}
