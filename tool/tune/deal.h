/* Dealing the problems of a tune to shards, the longest first, each to the shard that has least so far.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_TUNE_DEAL_H
#define TOOL_TUNE_DEAL_H

#include <stdbool.h>

#include "tune/families.h"

/* Problems of all families together. */
size_t deal_count(const struct fp8r_tune_families *families);

/* shard_of[i]: the shard, 1..shards, of problem i in the order of families and their M. A function of the families and
 * the number of shards only, so that every process deals alike. False when out of memory. */
bool deal(const struct fp8r_tune_families *families, int shards, int *shard_of);

#endif
