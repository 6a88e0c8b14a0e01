/* Where route files are looked for, in order: the context option, FP8ROUTE_TABLE, the user's cache directory, the
 * system's directory, the shipped files. Merged per entry into one table.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_ROUTE_SEARCH_H
#define FP8R_ROUTE_SEARCH_H

#include "base/environment.h"
#include "base/log.h"
#include "route/route_file.h"

/* option: options.routes, or NULL; a bad or foreign file there is this call's error. FP8ROUTE_TABLE's gets one warning. Others that
 * are bad or foreign are passed over with a debug line, and so is a missing directory. only_option: read no other.
 * Errors: IO, FORMAT, OUT_OF_MEMORY. */
fp8r_status fp8r_routes_load(const char *option, bool only_option, const struct fp8r_environment *environment,
                             const struct fp8r_identity *identity, const struct fp8r_log *log,
                             struct fp8r_table *table);

/* Merges all usable *.routes files of a directory, in the order of their names. A missing directory is no error.
 * Errors: OUT_OF_MEMORY. */
fp8r_status fp8r_routes_load_directory(const char *directory, const struct fp8r_identity *identity,
                                       const struct fp8r_log *log, struct fp8r_table *table);

/* The file in the user's cache directory for this machine, e.g. ~/.cache/fp8route/cpu-0123456789abcdef.routes; false
 * where the environment names no home or the path is too long. */
bool fp8r_routes_user_path(const struct fp8r_environment *environment, const struct fp8r_identity *identity,
                           char *path, size_t size);

#endif
