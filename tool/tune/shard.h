/* Which part of a sharded job this process is: "3/8" as said on the command line, or "auto" as a scheduler's variables say
 * it. Knows their names, and nothing of what is divided.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_SHARD_H
#define FP8R_SHARD_H

#include "tool_error.h"

struct fp8r_shard {
    int index, count; /* 1 <= index <= count */
    char source[160]; /* what said so: "3/8", or "SLURM_ARRAY_TASK_ID=3 SLURM_ARRAY_TASK_COUNT=8" */
};

enum { FP8R_SHARDS_MAX = 100000 };

/* The value of an environment variable, NULL where it is not set. */
typedef const char *(*fp8r_variable)(void *user, const char *name);

/* text: "I/N" with I from 1 to N, or "auto". Exit codes: USAGE, with the variable that is missing or wrong. */
int fp8r_shard_parse(const char *text, fp8r_variable variable, void *user, struct fp8r_shard *shard,
                     struct fp8r_tool_error *error);

/* The same from this process's environment. */
int fp8r_shard_here(const char *text, struct fp8r_shard *shard, struct fp8r_tool_error *error);

#endif
