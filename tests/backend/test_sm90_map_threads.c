/* Tensor maps by what they are encoded from, with a driver's encoder made by hand that puts its whole input into the map: no
 * map is ever another form's, whatever was there before and whoever writes meanwhile.
 * SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <pthread.h>
#include <string.h>

#include "backend/sm90/map_cache.h"
#include "backend/sm90/maps.h"
#include "backend/sm90/sm90.h"

static _Thread_local int encoded;

static CUresult encode(CUtensorMap *map, CUtensorMapDataType type, cuuint32_t rank, void *base,
                       const cuuint64_t *extents, const cuuint64_t *pitches, const cuuint32_t *box, const cuuint32_t *steps,
                       CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion,
                       CUtensorMapFloatOOBfill fill)
{
    (void)type, (void)steps, (void)interleave, (void)swizzle, (void)promotion, (void)fill;
    memset(map, 0, sizeof *map);
    map->opaque[0] = (cuuint64_t)(uintptr_t)base;
    for (cuuint32_t i = 0; i < rank; i++) {
        map->opaque[1 + i] = extents[i];
        map->opaque[6 + i] = i ? pitches[i - 1] : rank;
        map->opaque[11 + i] = box[i];
    }
    encoded++;
    return CUDA_SUCCESS;
}

static CUresult refuse(CUtensorMap *map, CUtensorMapDataType type, cuuint32_t rank, void *base,
                       const cuuint64_t *extents, const cuuint64_t *pitches, const cuuint32_t *box, const cuuint32_t *steps,
                       CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion,
                       CUtensorMapFloatOOBfill fill)
{
    (void)map, (void)type, (void)rank, (void)base, (void)extents, (void)pitches, (void)box, (void)steps;
    (void)interleave, (void)swizzle, (void)promotion, (void)fill;
    return CUDA_ERROR_INVALID_VALUE;
}

typedef CUresult (*encoder)(CUtensorMap *, CUtensorMapDataType, cuuint32_t, void *, const cuuint64_t *,
                            const cuuint64_t *, const cuuint32_t *, const cuuint32_t *, CUtensorMapInterleave,
                            CUtensorMapSwizzle, CUtensorMapL2promotion, CUtensorMapFloatOOBfill);

static void *address_of(encoder function)
{
    void *address;
    *(encoder *)&address = function;
    return address;
}

static struct fp8r_sm90_map_form form_at(uint64_t address, uint64_t rows)
{
    return (struct fp8r_sm90_map_form){.data = (const void *)(uintptr_t)address,
                                       .extents = {4096, rows, 1, 1, 1},
                                       .pitches = {4096, 4096 * rows, 4096, 4096},
                                       .box = {128, 64, 1, 1, 1},
                                       .rank = 5};
}

static bool is_of(const struct fp8r_sm90_map_form *form, const CUtensorMap *map)
{
    bool same = map->opaque[0] == (uintptr_t)form->data && map->opaque[6] == form->rank;
    for (cuuint32_t i = 0; i < form->rank; i++)
        same = same && map->opaque[1 + i] == form->extents[i] && map->opaque[11 + i] == form->box[i] &&
               (i == 0 || map->opaque[6 + i] == form->pitches[i - 1]);
    return same;
}

static bool gets_own(const struct fp8r_sm90_map_form *form)
{
    CUtensorMap map;
    return fp8r_sm90_map_get(address_of(encode), form, &map) && is_of(form, &map);
}

static void known_forms_are_not_encoded_again(void **state)
{
    const struct fp8r_sm90_map_form form = form_at(0x10000, 512);
    (void)state;
    assert_true(gets_own(&form));
    encoded = 0;
    for (int i = 0; i < 10; i++)
        assert_true(gets_own(&form));
    assert_int_equal(encoded, 0);
}

/* Memory that was freed and allocated again: the address is the same, one number is not. */
static void every_field_counts(void **state)
{
    const struct fp8r_sm90_map_form first = form_at(0x20000, 512);
    (void)state;
    for (size_t i = 0; i < sizeof first / 4; i++) {
        struct fp8r_sm90_map_form other = first;
        uint32_t word;
        memcpy(&word, (const char *)&first + 4 * i, 4);
        word ^= i + 1 == sizeof first / 4 ? 1 : 16; /* the rank is the last one */
        memcpy((char *)&other + 4 * i, &word, 4);
        assert_true(gets_own(&first));
        assert_true(gets_own(&other));
        assert_true(gets_own(&first));
    }
}

static void more_forms_than_are_kept(void **state)
{
    (void)state;
    for (int round = 0; round < 2; round++)
        for (uint64_t i = 0; i < 20000; i++) {
            const struct fp8r_sm90_map_form form = form_at(0x7f0000000000 + (i << 20), 1 + i % 7);
            assert_true(gets_own(&form));
        }
}

static void refused_forms_are_not_kept(void **state)
{
    const struct fp8r_sm90_map_form form = form_at(0x30000, 512);
    CUtensorMap map;
    (void)state;
    assert_false(fp8r_sm90_map_get(address_of(refuse), &form, &map));
    assert_false(fp8r_sm90_map_get(address_of(refuse), &form, &map));
    assert_true(gets_own(&form));
}

/* Operands at the same addresses, of other sizes and at other pitches. */
static void operands_have_their_own(void **state)
{
    static const struct fp8r_sm90_config configs[] = {{.family = FP8R_SM90_SKINNY},
                                                      {.family = FP8R_SM90_WIDE, .columns = 128},
                                                      {.family = FP8R_SM90_WIDE, .columns = 128, .shifted = true}};
    const fp8r_pointers pointers = {.a = (const void *)0x100000, .b = (const void *)0x200000};
    (void)state;
    for (int i = 0; i < 4 * 3; i++)
        for (int64_t m = 64; m < 80; m += 8) {
            const int change = i % 4;
            const struct fp8r_sm90_plan plan = {.config = &configs[i / 4], .encode = address_of(encode)};
            const struct fp8r_sm90_shape shape = {.rows_b = change == 1 ? 64 : 128, .depth = 1};
            const fp8r_problem problem = {.batch = 1, .m = m, .n = change == 2 ? 256 : 512, .k = 256,
                                          .a = {.row_stride = change == 3 ? 272 : 256, .align_bytes = 16},
                                          .b = {.col_stride = change == 3 ? 288 : 256, .align_bytes = 16}};
            struct fp8r_sm90_args args = {.rows_a = 64};
            assert_true(fp8r_sm90_fill_maps(&plan, &shape, &problem, &pointers, NULL, &args));
            assert_int_equal(args.map_a.opaque[0], 0x100000);
            assert_int_equal(args.map_a.opaque[2], m);
            assert_int_equal(args.map_a.opaque[7], problem.a.row_stride);
            assert_int_equal(args.map_b.opaque[0], 0x200000);
            assert_int_equal(args.map_b.opaque[7], problem.b.col_stride * (plan.config->shifted ? 8 : 1));
            cuuint64_t box = 1, extent = 1;
            for (int axis = 1; axis < 5; axis++) {
                extent *= args.map_b.opaque[1 + axis] ? args.map_b.opaque[1 + axis] : 1;
                box *= args.map_b.opaque[11 + axis] ? args.map_b.opaque[11 + axis] : 1;
            }
            assert_int_equal(extent, problem.n);
            assert_int_equal(box, shape.rows_b);
        }
}

/* Forms of one slot, so that writers and readers meet: the second takes the first one's place. */
enum { RIVALS = 4 };
static struct fp8r_sm90_map_form rivals[RIVALS];

static void find_rivals(void)
{
    rivals[0] = form_at(0x40000, 512);
    uint64_t tried = 1;
    for (int found = 1; found < RIVALS; tried++) {
        const struct fp8r_sm90_map_form form = form_at(0x40000 + (tried << 12), 512);
        assert_true(tried < 1000000 && gets_own(&rivals[0]) && gets_own(&form));
        encoded = 0;
        assert_true(gets_own(&rivals[0]));
        if (encoded) rivals[found++] = form;
    }
}

static void *walk(void *seed)
{
    uint64_t at = *(const uint64_t *)seed;
    bool good = true;
    for (int i = 0; i < 200000 && good; i++) {
        at = at * 6364136223846793005u + 1442695040888963407u;
        good = gets_own(&rivals[at >> 62]);
    }
    return good ? seed : NULL;
}

static void threads_get_their_own(void **state)
{
    enum { THREADS = 4 };
    pthread_t threads[THREADS];
    uint64_t seeds[THREADS];
    (void)state;
    find_rivals();
    for (int i = 0; i < THREADS; i++) {
        seeds[i] = (uint64_t)i;
        assert_int_equal(pthread_create(&threads[i], NULL, walk, &seeds[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        void *result;
        assert_int_equal(pthread_join(threads[i], &result), 0);
        assert_non_null(result);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_forms_are_not_encoded_again), cmocka_unit_test(every_field_counts),
        cmocka_unit_test(more_forms_than_are_kept),          cmocka_unit_test(refused_forms_are_not_kept),
        cmocka_unit_test(operands_have_their_own),           cmocka_unit_test(threads_get_their_own),
    };
    return cmocka_run_group_tests_name("tensor maps by their forms", tests, NULL, NULL);
}
