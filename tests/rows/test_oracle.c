/* The judge of the other tests is judged itself: it accepts the reference's result and sees every kind of fault.
 * SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "base/convert.h"
#include "support/rows.h"

static const char text[] = "9x12x20:ldo=16:bias";

static bool judge(struct sample *sample)
{
    char line[160];
    return sample_judge(sample, 9, line, sizeof line);
}

static void run(fp8r_context *context, struct sample *sample, enum sample_data data)
{
    assert_true(sample_init(sample, text, data, 7));
    sample_clear(sample);
    assert_int_equal(fp8r_scaled_mm(context, &sample->matmul, NULL), FP8R_OK);
}

/* Spoils one thing after a right run; the judge must see it, and be content again when it is put right. */
static void faults_are_seen(void **state)
{
    fp8r_context *context = plain_context(1);
    (void)state;
    for (int data = SAMPLE_EXACT; data <= SAMPLE_RANDOM; data++) {
        struct sample sample;
        run(context, &sample, (enum sample_data)data);
        assert_true(judge(&sample));
        uint16_t *out = sample.matmul.out.data, kept = out[5 * 16 + 7];
        const uint16_t spoiled[] = {fp8r_to_bf16(0.0f), 0x7FC0, 0x7F80, (uint16_t)(kept ^ 0x8000), (uint16_t)(kept + 4)};
        for (size_t i = 0; i < sizeof spoiled / sizeof *spoiled; i++) {
            out[5 * 16 + 7] = spoiled[i];
            assert_false(judge(&sample));
        }
        out[5 * 16 + 7] = kept;
        out[5 * 16 + 13] = 0; /* padding */
        assert_false(judge(&sample));
        out[5 * 16 + 13] = 0xFFFF;
        out[-1] = 0; /* in front of out */
        assert_false(judge(&sample));
        out[-1] = 0xFFFF;
        assert_true(judge(&sample));
        assert_false(sample_judge(&sample, 8, (char[160]){0}, 160)); /* a row too many was written */
        sample_fini(&sample);
    }
    fp8r_context_destroy(context);
}

/* Scales that are swapped, missing or of another row. */
static void wrong_scales_are_seen(void **state)
{
    fp8r_context *context = plain_context(1);
    (void)state;
    for (int kind = 0; kind < 3; kind++) {
        struct sample sample;
        assert_true(sample_init(&sample, text, SAMPLE_EXACT, 7));
        float *scale_a = sample.matmul.scale_a.data, *scale_b = sample.matmul.scale_b.data;
        float swapped = scale_a[3];
        if (kind == 0) {
            scale_a[3] = scale_a[4];
            scale_a[4] = swapped;
        } else if (kind == 1) {
            scale_b[11] = scale_b[10];
        } else {
            sample.matmul.scale_b = (fp8r_matrix){0};
        }
        sample_clear(&sample);
        assert_int_equal(fp8r_scaled_mm(context, &sample.matmul, NULL), FP8R_OK);
        assert_false(judge(&sample));
        sample_fini(&sample);
    }
    fp8r_context_destroy(context);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(faults_are_seen),
        cmocka_unit_test(wrong_scales_are_seen),
    };
    return cmocka_run_group_tests_name("oracle", tests, NULL, NULL);
}
