/* Linux keeps the AMX tiles' large state from a process until it asks. The grant is the process's, for all of
 * its threads, and its children's.
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE /* syscall */
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "backend/cpu/kernel.h"

static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool granted;

static void ask(void)
{
    enum {
        REQUEST_PERMISSION = 0x1023,
        TILE_DATA = 18
    }; /* ARCH_REQ_XCOMP_PERM; its number among the saved states */
    granted = syscall(SYS_arch_prctl, REQUEST_PERMISSION, TILE_DATA) == 0;
}

bool fp8r_cpu_amx_granted(void)
{
    pthread_once(&once, ask);
    return granted;
}
