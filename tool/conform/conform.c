/* The examining process.
 * SPDX-License-Identifier: Apache-2.0 */
#define _DEFAULT_SOURCE /* MAP_ANONYMOUS */
#include "conform/conform.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "conform/conform_cases.h"
#include "conform/subject.h"

enum { PROBLEM_SECONDS = 60 }; /* a problem that takes longer hangs: the slowest takes milliseconds */

/* What the examining process leaves behind for its parent. */
struct shared {
    struct fp8r_conform_result result;
    struct fp8r_tool_error error;
    bool is_complete;
};

static bool examine_problem(struct fp8r_subject *subject, const char *text)
{
    const fp8r_backend *backend = &subject->row->backend;
    alarm(PROBLEM_SECONDS);
    if (!fp8r_subject_open(subject, text)) return false;
    bool good = fp8r_check_answers(subject);
    for (int i = 0; backend->configs[i] && good; i++)
        good = fp8r_check_config(subject, i);
    good = good && fp8r_check_classes(subject);
    fp8r_subject_close(subject);
    return good;
}

static void examine_row(const struct fp8r_conform_host *host, fp8r_context *context,
                        const struct fp8r_row *row, struct fp8r_conform_result *result)
{
    struct fp8r_subject subject = {.context = context,
                                   .device = fp8r_context_device(context),
                                   .row = row,
                                   .seed = host->seed,
                                   .result = result};
    for (int i = 0; fp8r_conform_cases[i]; i++)
        if (!examine_problem(&subject, fp8r_conform_cases[i])) return;
    result->outcome = FP8R_CONFORM_PASSED;
}

static bool is_outside(const char *name, const fp8r_backend *const *outside, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(outside[i]->name, name) == 0) return true;
    return false;
}

/* The row as the library registers it, found by name; NULL where the examination cannot go on. */
static const struct fp8r_row *find_row(const char *name, const fp8r_backend *const *outside, size_t count,
                                       struct fp8r_registry *registry)
{
    if (fp8r_registry_init(registry, outside, count) != FP8R_OK) return NULL;
    int row = fp8r_registry_find(registry, name, strlen(name));
    return row < 0 ? NULL : &registry->rows[row];
}

static void examine_index(const struct fp8r_conform_host *host, fp8r_context *context,
                          const fp8r_backend *const *outside, size_t outside_count, size_t index,
                          struct fp8r_conform_result *result)
{
    static struct fp8r_registry registry; /* this process examines one backend and ends */
    fp8r_backend_info info = {.struct_size = sizeof info};
    result->backend_count = (int)fp8r_context_backend_count(context);
    result->outcome = FP8R_CONFORM_SKIPPED;
    if (fp8r_context_backend(context, index, &info) != FP8R_OK) return;
    snprintf(result->backend, sizeof result->backend, "%s", info.name);
    bool is_wanted = host->only ? strcmp(host->only, info.name) == 0
                                : !host->outside_only || is_outside(info.name, outside, outside_count);
    if (!is_wanted) return;
    const struct fp8r_row *row = find_row(info.name, outside, outside_count, &registry);
    if (!info.fits || !row) {
        result->outcome = FP8R_CONFORM_UNFIT;
        snprintf(result->text, sizeof result->text, "%s", info.fits ? fp8r_last_error() : info.sentence);
        return;
    }
    result->outcome = FP8R_CONFORM_FAILED; /* until the last check has passed */
    examine_row(host, context, row, result);
}

/* Registration that refuses an outside backend's struct is the first check of its contract. */
static void refuse(const struct fp8r_tool_error *error, struct fp8r_conform_result *result)
{
    result->outcome = FP8R_CONFORM_FAILED;
    snprintf(result->backend, sizeof result->backend, "%s", "(plug-in)");
    snprintf(result->check, sizeof result->check, "%s", "contract");
    snprintf(result->text, sizeof result->text, "%s", error->text);
}

/* Runs in the new process, which ends here: with everything that a backend may have broken in it. */
static void examine_here(const struct fp8r_conform_host *host, size_t index, struct shared *shared)
{
    fp8r_context *context = NULL;
    const fp8r_backend *const *outside = NULL;
    size_t outside_count = 0;
    signal(SIGALRM, SIG_DFL);
    signal(SIGINT, SIG_DFL); /* this process has nothing to tidy up */
    signal(SIGTERM, SIG_DFL);
    int code = host->open(host->user, &context, &outside, &outside_count, &shared->error);
    if (code == FP8R_EXIT_GOOD) {
        examine_index(host, context, outside, outside_count, index, &shared->result);
    } else if (strncmp(shared->error.text, "options.backends[", 17) == 0) {
        refuse(&shared->error, &shared->result);
        shared->error = (struct fp8r_tool_error){0};
    }
    shared->is_complete = true;
    _exit(0);
}

static void describe_death(int status, struct fp8r_conform_result *result)
{
    result->outcome = FP8R_CONFORM_FAILED;
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM)
        snprintf(result->text, sizeof result->text, "it did not return within %d s", PROBLEM_SECONDS);
    else if (WIFSIGNALED(status) && (WTERMSIG(status) == SIGSEGV || WTERMSIG(status) == SIGBUS))
        snprintf(result->text, sizeof result->text,
                 "it crashed (signal %d): memory that is not an operand's or the workspace's was touched",
                 WTERMSIG(status));
    else if (WIFSIGNALED(status))
        snprintf(result->text, sizeof result->text, "it crashed (signal %d)", WTERMSIG(status));
    else
        snprintf(result->text, sizeof result->text, "it ended the process (exit status %d)",
                 WEXITSTATUS(status));
}

/* A signal to this process alone ends the examination, too. */
static bool wait_for(pid_t process, int *status)
{
    pid_t ended = waitpid(process, status, 0);
    if (ended < 0 && errno == EINTR) {
        (void)kill(process, SIGKILL);
        ended = waitpid(process, status, 0);
    }
    return ended == process;
}

int fp8r_conform_examine(const struct fp8r_conform_host *host, size_t index,
                         struct fp8r_conform_result *result, struct fp8r_tool_error *error)
{
    int status = 0;
    struct shared *shared =
        mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) return fp8r_tool_error_memory(error, "the examination");
    fflush(NULL); /* what is buffered would be printed twice */
    pid_t process = fork();
    if (process == 0) examine_here(host, index, shared);
    int code = FP8R_EXIT_GOOD;
    if (process < 0 || !wait_for(process, &status))
        code = fp8r_tool_error_set(error, FP8R_EXIT_INTERNAL,
                                   "no process could be made to examine a backend in");
    if (code == FP8R_EXIT_GOOD && !shared->is_complete) describe_death(status, &shared->result);
    *result = shared->result;
    if (code == FP8R_EXIT_GOOD && shared->error.exit_code != FP8R_EXIT_GOOD)
        code = fp8r_tool_error_set(error, shared->error.exit_code, "%s", shared->error.text);
    munmap(shared, sizeof *shared);
    return code;
}
