/* Opening, closing and reporting on a subject.
 * SPDX-License-Identifier: Apache-2.0 */
#include "conform/subject.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void fp8r_subject_begin(struct fp8r_subject *subject, const char *check, const char *config)
{
    snprintf(subject->result->check, sizeof subject->result->check, "%s", check);
    snprintf(subject->result->config, sizeof subject->result->config, "%s", config);
    subject->result->checks++;
}

bool fp8r_subject_fail(struct fp8r_subject *subject, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(subject->result->text, sizeof subject->result->text, format, arguments);
    va_end(arguments);
    subject->result->outcome = FP8R_CONFORM_FAILED;
    return false;
}

bool fp8r_subject_open(struct fp8r_subject *subject, const char *text)
{
    fp8r_matmul shape;
    struct fp8r_tool_error error = {0};
    subject->text = text;
    snprintf(subject->result->problem, sizeof subject->result->problem, "%s", text);
    fp8r_subject_begin(subject, "operands", "");
    if (fp8r_matmul_parse(text, &shape) != FP8R_OK)
        return fp8r_subject_fail(subject, "%s", fp8r_last_error());
    if (fp8r_inputs_create(&shape, subject->seed, FP8R_GUARD_PAGES, &subject->inputs, &error) !=
        FP8R_EXIT_GOOD)
        return fp8r_subject_fail(subject, "%s", error.text);
    bool made = fp8r_product_init(&subject->inputs.matmul, FP8R_DATA_USED, &subject->product) == FP8R_OK;
    if (!made) fp8r_subject_fail(subject, "%s", fp8r_last_error());
    const struct fp8r_verify_options options = fp8r_verify_options_of(subject->device);
    if (made &&
        fp8r_verifier_create(&subject->inputs.matmul, &options, &subject->verifier, &error) != FP8R_EXIT_GOOD)
        made = fp8r_subject_fail(subject, "%s", error.text);
    if (!made) {
        fp8r_subject_close(subject);
        return false;
    }
    subject->multiplies = !fp8r_problem_is_empty(&subject->product.problem) && subject->product.problem.k > 0;
    subject->result->problems++;
    return true;
}

void fp8r_subject_close(struct fp8r_subject *subject)
{
    fp8r_verifier_destroy(subject->verifier);
    fp8r_inputs_destroy(&subject->inputs);
    subject->verifier = NULL;
}
