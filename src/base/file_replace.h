/* Files that are there whole or not at all.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_BASE_FILE_REPLACE_H
#define FP8R_BASE_FILE_REPLACE_H

#include <fp8route/fp8route.h>

/* Makes the file, with the directories above it, or takes the place of the one that is there; a symbolic link stays, and
 * the file it leads to is replaced. Errors: IO (also where there is something at path that is no regular file, or a link that
 * leads nowhere), OUT_OF_MEMORY; the old file then stays as it was. */
fp8r_status fp8r_file_replace(const char *path, const char *text);

/* Could it be replaced now? Makes missing directories and leaves nothing else. Errors: IO, OUT_OF_MEMORY. */
fp8r_status fp8r_file_probe(const char *path);

#endif
