/* Remembering signals.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tune/interrupt.h"

#include <signal.h>
#include <string.h>

static volatile sig_atomic_t interrupted; /* the one thing a handler may write */

static void remember(int signal_number)
{
    (void)signal_number;
    interrupted = 1;
}

void fp8r_interrupt_watch(void)
{
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = remember;
    action.sa_flags = (int)SA_RESETHAND; /* the second one is not caught */
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

bool fp8r_interrupted(void)
{
    return interrupted != 0;
}
