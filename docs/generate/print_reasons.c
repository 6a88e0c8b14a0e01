/* Prints docs/reasons.md from the catalogue: the page cannot say anything else than the code.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

static const struct {
    int number;
    const char *name, *sentence, *meaning;
} catalogue[] = {
#define FP8R_REASON(name_, number_, sentence_, meaning_) {number_, #name_, sentence_, meaning_},
#include <fp8route/reasons.inc>
#undef FP8R_REASON
};

int main(void)
{
    printf("# Reasons\n\n"
           "Why a backend does not run a problem. Codes are stable: `FP8R_REASON_NAME` in C, `reason` in\n"
           "`fp8route explain --json`. In the sentences `{subject}`, `{have}` and `{need}` stand for what failed.\n"
           "Generated from `include/fp8route/reasons.inc`; a test keeps the page equal to it.\n\n"
           "| code | name | sentence | meaning |\n|---:|---|---|---|\n");
    for (size_t i = 0; i < sizeof catalogue / sizeof *catalogue; i++)
        printf("| %d | `%s` | %s | %s |\n", catalogue[i].number, catalogue[i].name, catalogue[i].sentence,
               catalogue[i].meaning);
    return 0;
}
