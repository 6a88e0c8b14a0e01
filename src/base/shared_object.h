/* Shared objects that a variable or a list names, opened so that what is none cannot make the process wait.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_BASE_SHARED_OBJECT_H
#define FP8R_BASE_SHARED_OBJECT_H

/* dlopen(file, mode), NULL where it fails; a path at which no regular file lies (a pipe, a device) counts as absent. */
void *fp8r_shared_object_open(const char *file, int mode);

#endif
