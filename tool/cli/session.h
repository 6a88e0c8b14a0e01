/* What a verb works with: a context made from the shared options, with the plug-ins' backends in it.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_SESSION_H
#define FP8R_SESSION_H

#include <fp8route/backend.h>

#include "cli/verb.h"
#include "measure/measure_device.h"

/* Backends of shared objects. */
struct fp8r_plugins {
    void **handles;
    size_t handle_count;
    const fp8r_backend **backends;
    size_t count;
};

struct fp8r_session {
    struct fp8r_plugins plugins;
    fp8r_device device;
    int mode; /* FP8R_MODE_*: how calls are timed, and which routes decide */
    fp8r_context *context;
    struct fp8r_measure_device measure; /* once asked for */
};

/* Loads the shared objects of --plugin. Exit codes: USAGE, with the file and what it lacks. */
int fp8r_plugins_open(const struct fp8r_words *files, struct fp8r_plugins *plugins,
                      struct fp8r_tool_error *error);
void fp8r_plugins_close(struct fp8r_plugins *plugins);

/* How the options say that calls are timed: as they ask, or in graphs on a GPU. */
int fp8r_common_mode(const struct fp8r_common *common);

/* A copy of what times calls on the session's device; the session keeps it open. Exit codes: UNMEASURED, INTERNAL. */
int fp8r_session_measure(struct fp8r_session *session, struct fp8r_measure_device *device,
                         struct fp8r_tool_error *error);

/* "cpu", "cuda" or "cuda:I"; NULL is the CPU. */
int fp8r_device_parse(const char *text, fp8r_device *device, struct fp8r_tool_error *error);

/* flags: FP8R_NO_ROUTE_FILES and the like. The context's lines go to standard error. On failure nothing is
 * left open. */
int fp8r_session_open(const struct fp8r_common *common, uint32_t flags, struct fp8r_session *session,
                      struct fp8r_tool_error *error);
void fp8r_session_close(struct fp8r_session *session);

/* Reads a problem's text; the error is the library's. */
int fp8r_problem_read(const char *text, fp8r_matmul *matmul, struct fp8r_tool_error *error);

#endif
