/* Looking before loading: dlopen opens a pipe and waits there for a writer.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/shared_object.h"

#include <dlfcn.h>
#include <stddef.h>
#include <string.h>
#include <sys/stat.h>

void *fp8r_shared_object_open(const char *file, int mode)
{
    struct stat facts;
    /* A name without a slash is searched for in the system's folders. */
    if (strchr(file, '/') && stat(file, &facts) == 0 && !S_ISREG(facts.st_mode))
        return NULL;
    return dlopen(file, mode);
}
