/* Which backend would run a product here, and why not the others:  explain 1x4096x14336
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>

#include <fp8route/fp8route.h>

static void check(fp8r_status status, const char *what)
{
    if (status == FP8R_OK)
        return;
    fprintf(stderr, "%s: %s: %s\n", what, fp8r_status_name(status), fp8r_last_error());
    exit(EXIT_FAILURE);
}

static void print_candidate(const fp8r_candidate *candidate)
{
    static const char *const verdicts[] = {"chosen", "can", "cannot"};
    char name[96];
    const char *colon = *candidate->config ? ":" : "";
    snprintf(name, sizeof name, "%s%s%s", candidate->backend, colon, candidate->config);
    printf("%-7s %-24s %s", verdicts[candidate->verdict], name, candidate->sentence);
    if (candidate->median_us > 0)
        printf(" (%.1f us measured)", candidate->median_us);
    putchar('\n');
}

int main(int argc, char **argv)
{
    const char *text = argc > 1 ? argv[1] : "1x4096x14336";
    fp8r_matmul product;
    check(fp8r_matmul_parse(text, &product), "problem");

    fp8r_context *context;
    check(fp8r_context_create((fp8r_device){FP8R_DEVICE_CPU, 0}, NULL, &context), "context");
    fp8r_explanation *explanation;
    check(fp8r_explain(context, &product, &explanation), "explain");

    printf("%s, decided by: %s\n", text, fp8r_explanation_source(explanation));
    for (size_t i = 0; i < fp8r_explanation_count(explanation); i++)
        print_candidate(fp8r_explanation_candidate(explanation, i));
    if (*fp8r_explanation_note(explanation))
        printf("%s\n", fp8r_explanation_note(explanation));

    fp8r_explanation_destroy(explanation);
    fp8r_context_destroy(context);
    return EXIT_SUCCESS;
}
