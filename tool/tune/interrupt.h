/* Ctrl-C and termination, as a question: has somebody asked this process to stop?
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_INTERRUPT_H
#define FP8R_INTERRUPT_H

#include <stdbool.h>

/* From now on SIGINT and SIGTERM are only remembered; a second one ends the process as usual. */
void fp8r_interrupt_watch(void);
bool fp8r_interrupted(void);

#endif
