/* What a launch adds to the arguments that its plan fixed: rows, and another batch stride of b than the planned one. With a
 * driver made by hand that keeps the arguments; nothing here runs a kernel.
 * SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "backend/sm90/fixed_args.h"
#include "backend/sm90/sm90.h"
#include "support/sm90_driver.h"

enum { N = 512, K = 256 };

static struct fp8r_sm90_args seen;

static CUresult encode(CUtensorMap *map, CUtensorMapDataType type, cuuint32_t rank, void *base,
                       const cuuint64_t *extents, const cuuint64_t *pitches, const cuuint32_t *box, const cuuint32_t *steps,
                       CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion,
                       CUtensorMapFloatOOBfill fill)
{
    (void)type, (void)rank, (void)pitches, (void)box, (void)steps, (void)interleave, (void)swizzle, (void)promotion;
    (void)fill, (void)base;
    memset(map, 0, sizeof *map);
    map->opaque[1] = extents[1];
    map->opaque[4] = extents[4]; /* of b: groups of rows in all matrices */
    return CUDA_SUCCESS;
}

static fp8r_problem problem_of(int64_t m, int64_t b_stride)
{
    return (fp8r_problem){.batch = 3, .m = m, .n = N, .k = K,
                          .a = {.batch_stride = m * K, .row_stride = K, .col_stride = 1, .dtype = FP8R_DTYPE_E4M3,
                                .align_bytes = 256},
                          .b = {.batch_stride = b_stride, .row_stride = 1, .col_stride = K, .dtype = FP8R_DTYPE_E4M3,
                                .align_bytes = 256},
                          .out = {.batch_stride = m * N, .row_stride = N, .col_stride = 1, .dtype = FP8R_DTYPE_BF16,
                                  .align_bytes = 256}};
}

static struct fp8r_sm90_plan plan_of(const struct fp8r_sm90_config *config, const fp8r_problem *problem)
{
    CUresult (*encoder)(CUtensorMap *, CUtensorMapDataType, cuuint32_t, void *, const cuuint64_t *, const cuuint64_t *,
                        const cuuint32_t *, const cuuint32_t *, CUtensorMapInterleave, CUtensorMapSwizzle,
                        CUtensorMapL2promotion, CUtensorMapFloatOOBfill) = encode;
    struct fp8r_sm90_plan plan = {.config = config, .problem = *problem, .shape_count = 1};
    plan.start = sm90_driver(&seen, sizeof seen);
    plan.encode = *(void **)&encoder;
    plan.shapes[0] = (struct fp8r_sm90_shape){.m_max = INT32_MAX, .rows_a = 128, .rows_b = 128, .depth = 1, .threads = 384,
                                              .cluster = 1, .clusters_resident = 4, .stages = 4, .tile_m = 128,
                                              .tile_n = 128, .raster = 2};
    fp8r_sm90_fix_args(&plan, &plan.shapes[0], &plan.fixed[0]);
    return plan;
}

static const struct fp8r_sm90_config wide = {.name = "wide", .family = FP8R_SM90_WIDE, .split = 1, .share_m = 1, .share_n = 1,
                                             .inner = 1, .groups = 2, .tiles = 1, .columns = 128};
static const fp8r_pointers pointers = {.struct_size = sizeof pointers, .a = (const void *)0x10000, .b = (const void *)0x20000,
                                       .out = (void *)0x40000000};

static void rows_are_the_calls(void **state)
{
    static const struct {
        int64_t m;
        int32_t rows_a, tiles_m, step, last;
    } cases[] = {{1, 8, 1, 4, 1}, {100, 104, 1, 4, 1}, {128, 128, 1, 4, 1}, {129, 128, 2, 4, 2}, {300, 128, 3, 4, 1}};
    const fp8r_problem planned = problem_of(1024, (int64_t)N * K);
    const struct fp8r_sm90_plan plan = plan_of(&wide, &planned);
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const fp8r_problem problem = problem_of(cases[i].m, (int64_t)N * K);
        assert_int_equal(fp8r_sm90_launch(&plan, &problem, &pointers, NULL, NULL), FP8R_OK);
        assert_int_equal(seen.m, cases[i].m);
        assert_int_equal(seen.rows_a, cases[i].rows_a);
        assert_int_equal(seen.load_bytes, (cases[i].rows_a + 128) * 128);
        assert_int_equal(seen.tiles_m, cases[i].tiles_m);
        assert_int_equal(seen.tiles, cases[i].tiles_m * 4 * 3);
        assert_int_equal(seen.step, cases[i].step);
        assert_int_equal(seen_config.gridDimX, cases[i].step);
        assert_int_equal(seen.by_units.d, (cases[i].m + 7) / 8);
        assert_int_equal(seen.by_matrix.d, cases[i].tiles_m * 4);
        assert_int_equal(seen.by_last_height.d, cases[i].last);
        assert_int_equal(seen.map_a.opaque[1], cases[i].m);
        assert_int_equal(seen.out_batch, cases[i].m * N);
    }
}

/* A plan for weights of one pitch, run with others: as one that was made for those. */
static void weights_are_the_calls(void **state)
{
    static const int64_t strides[] = {0, (int64_t)N * K, (int64_t)N * K + 64 * K, (int64_t)N * K + 5 * K};
    (void)state;
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 4; j++) {
            const fp8r_problem planned = problem_of(128, strides[i]), called = problem_of(128, strides[j]);
            const struct fp8r_sm90_plan plan = plan_of(&wide, &planned), own = plan_of(&wide, &called);
            assert_int_equal(fp8r_sm90_launch(&own, &called, &pointers, NULL, NULL), FP8R_OK);
            const struct fp8r_sm90_args expected = seen;
            assert_int_equal(fp8r_sm90_launch(&plan, &called, &pointers, NULL, NULL), FP8R_OK);
            assert_int_equal(seen.flags, expected.flags);
            assert_int_equal((seen.flags & FP8R_SM90_INTERLEAVED) != 0, j != 3); /* no multiple of a group's rows */
            assert_int_equal(seen.b_batch, j != 0);
            assert_int_equal(seen.b_matrix, strides[j]);
            assert_int_equal(seen.b_groups, expected.b_groups);
            assert_memory_equal(&seen.map_b, &expected.map_b, sizeof seen.map_b);
        }
}

static void weights_that_do_not_fit_are_refused(void **state)
{
    struct fp8r_sm90_config alternating = wide;
    alternating.alternate = true;
    const fp8r_problem planned = problem_of(128, (int64_t)N * K), other = problem_of(128, (int64_t)N * K + 5 * K);
    const struct fp8r_sm90_plan plan = plan_of(&alternating, &planned);
    (void)state;
    assert_int_equal(fp8r_sm90_launch(&plan, &planned, &pointers, NULL, NULL), FP8R_OK);
    assert_int_equal(fp8r_sm90_launch(&plan, &other, &pointers, NULL, NULL), FP8R_ERROR_UNSUPPORTED);
    assert_non_null(strstr(fp8r_last_error(), "another multiple of 32 rows"));
}

static const struct fp8r_sm90_config skinny = {.name = "skinny", .family = FP8R_SM90_SKINNY, .split = 2, .share_m = 1,
                                               .share_n = 1, .inner = 1, .cut = 1, .room = 1};

/* A plan whose kernel of few rows has 4 warps and room for 4 of them. */
static struct fp8r_sm90_plan halves_plan(const fp8r_problem *problem)
{
    struct fp8r_sm90_plan plan = plan_of(&skinny, problem);
    plan.halves = (struct fp8r_sm90_shape){.kernel = &plan, .m_max = 8, .rows_a = 8, .rows_b = 48, .rows = 48, .depth = 1,
                                           .weight_bytes = 6144, .threads = 192, .cluster = 2, .clusters_resident = 4,
                                           .stages = 4, .stage_bytes = 6144, .tokens_offset = 24576, .halves_offset = 32768,
                                           .halves_rows = 4, .tile_m = 8, .tile_n = 48};
    fp8r_sm90_fix_args(&plan, &plan.halves, &plan.fixed_halves);
    return plan;
}

static void few_rows_are_quantised_by_the_product(void **state)
{
    const fp8r_problem planned = problem_of(64, (int64_t)N * K), problem = problem_of(3, (int64_t)N * K);
    const struct fp8r_sm90_plan plan = halves_plan(&planned);
    const fp8r_operand a = {.batch_stride = 1024, .row_stride = 264, .col_stride = 1, .dtype = FP8R_DTYPE_BF16};
    const float scale = 1.0f;
    fp8r_pointers given = pointers;
    given.scale_a = &scale; /* of nobody */
    (void)state;
    assert_true(fp8r_sm90_takes_halves(&plan, &problem, &a, given.a));
    assert_int_equal(fp8r_sm90_launch_halves(&plan, &problem, &a, &given, NULL), FP8R_OK);
    assert_int_equal(seen.load_bytes, 48 * 128);
    assert_int_equal(seen.by_rows.d, 3);
    assert_int_equal(seen.m, 3);
    assert_int_equal(seen.k, K);
    assert_ptr_equal(seen.halves, given.a);
    assert_ptr_equal(seen.scale_a, NULL);
    assert_int_equal(seen.halves_row, 264);
    assert_int_equal(seen.halves_batch, 1024);
    assert_int_equal(seen.tokens_offset, 24576);
    assert_int_equal(seen.halves_offset, 32768);
    assert_int_equal(seen_config.gridDimX, 2);
    assert_int_equal(seen_config.gridDimY, (N + 47) / 48);
    assert_int_equal(seen_config.gridDimZ, 3);
}

static bool takes(const struct fp8r_sm90_plan *plan, int64_t m, int64_t k, int64_t row, int64_t col, uintptr_t data)
{
    fp8r_problem problem = problem_of(m, (int64_t)N * K);
    problem.k = k;
    const fp8r_operand a = {.row_stride = row, .col_stride = col, .dtype = FP8R_DTYPE_FP16};
    return fp8r_sm90_takes_halves(plan, &problem, &a, (const void *)data);
}

static void other_rows_are_quantised_in_front(void **state)
{
    const fp8r_problem planned = problem_of(64, (int64_t)N * K);
    struct fp8r_sm90_plan plan = halves_plan(&planned);
    const int64_t most = 4 * FP8R_SM90_HALVES_WARP;
    (void)state;
    assert_true(takes(&plan, 4, K, K, 1, 0x10000));
    assert_false(takes(&plan, 5, K, K, 1, 0x10000));     /* no room */
    assert_false(takes(&plan, 4, K, K + 4, 1, 0x10000)); /* rows that begin anywhere */
    assert_false(takes(&plan, 4, K, K, 1, 0x10008));
    assert_false(takes(&plan, 4, K, 1, K, 0x10000));
    assert_true(takes(&plan, 1, most, most, 1, 0x10000));
    assert_false(takes(&plan, 1, most + 8, most + 8, 1, 0x10000)); /* more than the quantiser in front costs */
    plan.halves.halves_rows = 8;
    assert_false(takes(&plan, 5, K, K, 1, 0x10000)); /* more than there are warps */
    plan.halves.kernel = NULL;
    assert_false(takes(&plan, 1, K, K, 1, 0x10000));
}

/* Of one matrix, on 132 multiprocessors. */
static bool is_early(const struct fp8r_sm90_config *config, bool dependent_launch, int64_t m, int64_t n, int64_t k)
{
    fp8r_problem problem = problem_of(m, n * k);
    problem.batch = 1;
    problem.n = n;
    problem.k = problem.a.row_stride = problem.b.col_stride = k;
    problem.out.row_stride = n;
    struct fp8r_sm90_plan plan = plan_of(config, &problem);
    plan.dependent_launch = dependent_launch;
    plan.shapes[0].rows_b = plan.shapes[0].tile_n = config->columns;
    plan.shapes[0].clusters_resident = 132;
    plan.shapes[0].cluster = config->share_m;
    fp8r_sm90_fix_args(&plan, &plan.shapes[0], &plan.fixed[0]);
    assert_int_equal(fp8r_sm90_launch(&plan, &problem, &pointers, NULL, NULL), FP8R_OK);
    return seen_early;
}

/* What waits for the L2, with blocks in a row enough, goes in order, behind the whole kernel in front; so does what takes long. */
static void long_ones_and_ordered_ones_start_late(void **state)
{
    struct fp8r_sm90_config narrow = wide, middle = wide, shared = wide, swapped = wide, packed = wide;
    narrow.columns = shared.columns = swapped.columns = packed.columns = 64;
    middle.columns = 96;
    shared.share_m = 2;
    swapped.tokens = 64;
    packed.packed = true;
    (void)state;
    assert_false(is_early(&narrow, true, 1024, 4096, 8192));
    assert_true(is_early(&narrow, true, 1024, 4096, 1024)); /* few blocks in a row */
    assert_true(is_early(&narrow, true, 128, 40960, 8192)); /* b is read once */
    assert_true(is_early(&narrow, true, 256, 1024, 16384)); /* room for the kernel in front */
    assert_true(is_early(&wide, true, 1024, 4096, 8192));   /* waits for its products */
    assert_true(is_early(&shared, true, 1024, 4096, 8192));
    assert_true(is_early(&swapped, true, 1024, 4096, 8192));
    assert_true(is_early(&packed, true, 1024, 4096, 8192));
    assert_true(is_early(&middle, true, 1024, 2400, 8192)); /* two tiles in a row */
    assert_false(is_early(&middle, true, 1024, 4800, 8192));
    assert_false(is_early(&wide, true, 4096, 4096, 4096)); /* long */
    assert_true(is_early(&wide, true, 2048, 4096, 4096));
    assert_false(is_early(&wide, false, 2048, 4096, 4096)); /* switched off */
}

/* Plans hold tensor maps, which a compiler may copy by instructions that want their alignment. */
static void plans_are_aligned_as_their_maps(void **state)
{
    (void)state;
    struct fp8r_sm90_plan *plans[FP8R_SM90_SHAPES_MAX];
    for (int i = 0; i < FP8R_SM90_SHAPES_MAX; i++) {
        plans[i] = fp8r_sm90_plan_new(i + 1);
        assert_non_null(plans[i]);
        assert_int_equal((uintptr_t)plans[i] % _Alignof(struct fp8r_sm90_plan), 0);
        memset(&plans[i]->fixed[i], 1, sizeof plans[i]->fixed[i]); /* the last one is inside */
    }
    struct fp8r_sm90_plan *longest = plans[FP8R_SM90_SHAPES_MAX - 1];
    memset(longest, 2, sizeof *longest);
    longest->shape_count = 3;
    longest = plans[FP8R_SM90_SHAPES_MAX - 1] = fp8r_sm90_plan_shorten(longest);
    assert_int_equal((uintptr_t)longest % _Alignof(struct fp8r_sm90_plan), 0);
    assert_int_equal(longest->shape_count, 3);
    assert_int_equal(longest->fixed[2].step, 0x02020202);
    for (int i = 0; i < FP8R_SM90_SHAPES_MAX; i++)
        free(plans[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_the_calls),
        cmocka_unit_test(weights_are_the_calls),
        cmocka_unit_test(weights_that_do_not_fit_are_refused),
        cmocka_unit_test(few_rows_are_quantised_by_the_product),
        cmocka_unit_test(other_rows_are_quantised_in_front),
        cmocka_unit_test(long_ones_and_ordered_ones_start_late),
        cmocka_unit_test(plans_are_aligned_as_their_maps),
    };
    return cmocka_run_group_tests_name("sm90 launches", tests, NULL, NULL);
}
