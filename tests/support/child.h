/* Children of a test. A parent's alarm is not inherited: a child that hangs would outlive the test and keep its output
 * open, for which ctest waits. SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_TESTS_SUPPORT_CHILD_H
#define FP8R_TESTS_SUPPORT_CHILD_H

#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

/* fork, whose child is ended after so long. */
static inline pid_t child_begin(unsigned seconds)
{
    pid_t child = fork();
    if (child == 0)
        (void)alarm(seconds);
    return child;
}

/* Its exit code; 100 where it did not exit. */
static inline int child_end(pid_t child)
{
    int status = -1;
    (void)waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 100;
}

#endif
