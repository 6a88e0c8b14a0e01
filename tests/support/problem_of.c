/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "support/problem_of.h"

fp8r_problem problem_of(const char *text)
{
    fp8r_matmul matmul;
    struct fp8r_product product;
    if (fp8r_matmul_parse(text, &matmul) != FP8R_OK ||
        fp8r_product_init(&matmul, FP8R_DATA_IGNORED, &product) != FP8R_OK)
        fail_msg("%s: %s", text, fp8r_last_error());
    return product.problem;
}
