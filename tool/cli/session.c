/* Opening a context by the shared options.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/session.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tool_status.h"
#include "tune/machine.h"

static void print_line(void *user, int level, const char *line)
{
    (void)user;
    if (level <= FP8R_LOG_WARNING) fprintf(stderr, "fp8route: %s\n", line);
}

/* With FP8ROUTE_VERBOSE the library prints its lines itself, in the form its users know. */
static bool is_verbose(void)
{
    const char *verbose = getenv("FP8ROUTE_VERBOSE");
    return verbose && *verbose && strcmp(verbose, "0") != 0;
}

int fp8r_device_parse(const char *text, fp8r_device *device, struct fp8r_tool_error *error)
{
    *device = (fp8r_device){.kind = FP8R_DEVICE_CPU};
    if (!text || strcmp(text, "cpu") == 0) return FP8R_EXIT_GOOD;
    device->kind = FP8R_DEVICE_CUDA;
    if (strcmp(text, "cuda") == 0) return FP8R_EXIT_GOOD;
    char *end = NULL;
    long index =
        strncmp(text, "cuda:", 5) == 0 && text[5] >= '0' && text[5] <= '9' ? strtol(text + 5, &end, 10) : -1;
    if (index < 0 || index > 1023 || *end)
        return fp8r_tool_error_set(
            error, FP8R_EXIT_USAGE,
            "--device is \"%.40s\": it must be cpu, cuda or cuda:I with I from 0 to 1023", text);
    device->index = (int32_t)index;
    return FP8R_EXIT_GOOD;
}

int fp8r_common_mode(const struct fp8r_common *common)
{
    bool is_gpu = common->device && strncmp(common->device, "cuda", 4) == 0;
    return is_gpu && !(common->mode && strcmp(common->mode, "eager") == 0) ? FP8R_MODE_GRAPH : FP8R_MODE_EAGER;
}

static int check_mode(const struct fp8r_common *common, struct fp8r_tool_error *error)
{
    const char *mode = common->mode ? common->mode : "eager";
    if (strcmp(mode, "graph") != 0 && strcmp(mode, "eager") != 0)
        return fp8r_tool_error_set(error, FP8R_EXIT_USAGE, "--mode is \"%.40s\": it must be graph or eager", mode);
    if (strcmp(mode, "graph") == 0 && fp8r_common_mode(common) != FP8R_MODE_GRAPH)
        return fp8r_tool_error_set(error, FP8R_EXIT_USAGE, "--mode graph needs --device cuda: a CPU has no graphs");
    return FP8R_EXIT_GOOD;
}

int fp8r_session_measure(struct fp8r_session *session, struct fp8r_measure_device *device,
                         struct fp8r_tool_error *error)
{
    int code = fp8r_tool_status(error, fp8r_measure_device_init(fp8r_context_device(session->context),
                                                                session->mode == FP8R_MODE_GRAPH, &session->measure));
    *device = session->measure;
    return code;
}

static int create_context(const struct fp8r_common *common, uint32_t flags, struct fp8r_session *session,
                          struct fp8r_tool_error *error)
{
    if (common->threads > 4096)
        return fp8r_tool_error_set(error, FP8R_EXIT_USAGE, "--threads is %lld: it must be 1 to 4096",
                                   (long long)common->threads);
    fp8r_context_options options = {.struct_size = sizeof options,
                                    .threads = (int32_t)common->threads,
                                    .flags = flags | (session->mode == FP8R_MODE_EAGER ? FP8R_EAGER_ROUTES : 0),
                                    .routes = common->routes,
                                    .backends = session->plugins.backends,
                                    .backend_count = session->plugins.count,
                                    .log = is_verbose() ? NULL : print_line};
    return fp8r_tool_status(error, fp8r_context_create(session->device, &options, &session->context));
}

int fp8r_session_open(const struct fp8r_common *common, uint32_t flags, struct fp8r_session *session,
                      struct fp8r_tool_error *error)
{
    *session = (struct fp8r_session){0};
    int code = fp8r_device_parse(common->device, &session->device, error);
    if (code == FP8R_EXIT_GOOD) code = check_mode(common, error);
    session->mode = fp8r_common_mode(common);
    if (code == FP8R_EXIT_GOOD) code = fp8r_plugins_open(&common->plugins, &session->plugins, error);
    if (code == FP8R_EXIT_GOOD) code = create_context(common, flags, session, error);
    if (code != FP8R_EXIT_GOOD) fp8r_session_close(session);
    return code;
}

void fp8r_session_close(struct fp8r_session *session)
{
    fp8r_measure_device_fini(&session->measure);
    fp8r_context_destroy(session->context);
    fp8r_plugins_close(&session->plugins);
    *session = (struct fp8r_session){0};
}

int fp8r_problem_read(const char *text, fp8r_matmul *matmul, struct fp8r_tool_error *error)
{
    return fp8r_tool_status(error, fp8r_matmul_parse(text, matmul));
}
