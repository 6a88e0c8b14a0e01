/* Keeps what was measured: one JSON file a run, with the machine, the commit, the date and the command.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_BENCH_RESULT_FILE_H
#define FP8R_BENCH_RESULT_FILE_H

#include "bar.h"

/* Writes directory/cpu-DATE-FEATURES-THREADS.json. False, with a line on standard error, where it cannot. */
bool bench_result_write(const char *directory, const struct bench_settings *settings,
                        const struct bench_bar *bars, int count, int argc, char **argv);

#endif
