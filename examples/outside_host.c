/* A program that brings a backend of its own: a plug-in is loaded, lent to a context and named in a plan.
 * Usage: outside_host outside_backend.so
 * SPDX-License-Identifier: Apache-2.0 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <fp8route/backend.h>

static void check(fp8r_status status, const char *what)
{
    if (status == FP8R_OK)
        return;
    fprintf(stderr, "%s: %s: %s\n", what, fp8r_status_name(status), fp8r_last_error());
    exit(EXIT_FAILURE);
}

static const fp8r_backend *const *load(const char *file)
{
    fp8r_backends_function list = NULL;
    void *object = dlopen(file, RTLD_NOW | RTLD_LOCAL); /* stays open: the context runs its code */
    void *symbol = object ? dlsym(object, "fp8r_backends") : NULL;
    if (!symbol) {
        fprintf(stderr, "%s: %s\n", file, dlerror());
        exit(EXIT_FAILURE);
    }
    memcpy(&list, &symbol, sizeof list); /* C has no cast from an object's pointer to a function's */
    return list();
}

static fp8r_context *create(const fp8r_backend *const *backends)
{
    fp8r_context_options options = {.struct_size = sizeof options, .backends = backends};
    while (backends[options.backend_count])
        options.backend_count++;
    fp8r_context *context;
    check(fp8r_context_create((fp8r_device){FP8R_DEVICE_CPU, 0}, &options, &context), "context");
    return context;
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: outside_host FILE.so\n");
        return EXIT_FAILURE;
    }
    fp8r_context *context = create(load(argv[1]));

    /* [1 2; 3 4] * [5 6; 7 8], in e4m3 codes; b is stored column by column. */
    static const uint8_t a[2][2] = {{0x38, 0x40}, {0x44, 0x48}}, b[2][2] = {{0x4A, 0x4E}, {0x4C, 0x50}};
    float out[2][2] = {{0}};
    fp8r_matmul family;
    check(fp8r_matmul_parse("2x2x2:fp32:align=1", &family), "parse");
    memset(&family.scale_a, 0, sizeof family.scale_a); /* absent: 1 */
    memset(&family.scale_b, 0, sizeof family.scale_b);
    family.out.data = out; /* only its alignment is looked at here */
    fp8r_plan *plan;
    check(fp8r_plan_create(context, &family, "outside", &plan), "plan");
    printf("runs on %s\n", fp8r_plan_backend(plan, 2));
    fp8r_pointers pointers = {.struct_size = sizeof pointers, .m = 2, .a = a, .b = b, .out = out};
    check(fp8r_plan_run(plan, &pointers, NULL, 0, NULL), "run");
    printf("%g %g\n%g %g\n", (double)out[0][0], (double)out[0][1], (double)out[1][0], (double)out[1][1]);

    /* What it cannot do, it says. */
    fp8r_plan *refused;
    check(fp8r_matmul_parse("2x2x2:bf16:bias", &family), "parse");
    fp8r_status status = fp8r_plan_create(context, &family, "outside", &refused);
    printf("%s: %s\n", fp8r_status_name(status), fp8r_last_error());

    fp8r_plan_destroy(plan);
    fp8r_context_destroy(context);
    bool right = out[0][0] == 19 && out[0][1] == 22 && out[1][0] == 43 && out[1][1] == 50;
    return right && status == FP8R_ERROR_UNSUPPORTED ? EXIT_SUCCESS : EXIT_FAILURE;
}
