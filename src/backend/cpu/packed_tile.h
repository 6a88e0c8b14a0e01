/* The tile of a packed kernel, once for every vector instruction set: up to ROWS x 2 vectors of sums that stay in registers
 * over a stretch of K. Included by one kernel file a set, which has said before what a vector is there:
 *     LANES, ROWS; element, the type that a step of K takes from a panel, and ELEMENT_CODES, how many codes it holds;
 *     vector, of sums, with vector_zero, vector_load and vector_store; elements, a vector of them, with elements_load,
 *     elements_repeat (one in all lanes) and multiply_add(sum, repeated, loaded).
 * SPDX-License-Identifier: Apache-2.0 */
ALWAYS_INLINE void packed_rows(int rows, int64_t count, const element *a, const element *b, float *sums,
                               int64_t ld, bool first)
{
    vector sum[ROWS][2];
#pragma GCC unroll 14
    for (int r = 0; r < rows; r++) {
        sum[r][0] = first ? vector_zero() : vector_load(sums + r * ld);
        sum[r][1] = first ? vector_zero() : vector_load(sums + r * ld + LANES);
    }
    for (int64_t i = 0; i < count; i += ELEMENT_CODES, a += rows, b += 2 * LANES) {
        elements left = elements_load(b), right = elements_load(b + LANES);
#pragma GCC unroll 14
        for (int r = 0; r < rows; r++) {
            elements row = elements_repeat(a + r);
            sum[r][0] = multiply_add(sum[r][0], row, left);
            sum[r][1] = multiply_add(sum[r][1], row, right);
        }
    }
#pragma GCC unroll 14
    for (int r = 0; r < rows; r++) {
        vector_store(sums + r * ld, sum[r][0]);
        vector_store(sums + r * ld + LANES, sum[r][1]);
    }
}
