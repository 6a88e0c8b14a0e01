/* Names by number, from the catalogue itself.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/reason_name.h"

#include <stddef.h>

const char *fp8r_reason_name_of(int32_t code)
{
    static const struct {
        const char *name;
        int32_t code;
    } names[] = {
        {"NONE", 0},
#define FP8R_REASON(name, number, sentence, meaning) {#name, number},
#include <fp8route/reasons.inc>
#undef FP8R_REASON
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (names[i].code == code) return names[i].name;
    return NULL;
}
