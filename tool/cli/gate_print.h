/* What the gate found, as text, JSON and Markdown.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_GATE_PRINT_H
#define FP8R_GATE_PRINT_H

#include <stdio.h>

#include "cli/output.h"
#include "tune/gate_routes.h"
#include "tune/unseen.h"

/* What was gated, and how. */
struct fp8r_gate_setting {
    const char *path, *machine; /* the route file, the identity in one line */
    char digest[65];            /* of the file, as sha256sum prints it */
    uint64_t seed;
    double margin;
};

/* The object of either kind of gate, with what was gated and how. */
void fp8r_gate_output_init(struct fp8r_output *output, const struct fp8r_gate_setting *setting);

/* How many routes have each verdict. */
void fp8r_gate_count(const struct gate_routes *routes, size_t counts[GATE_VERDICTS]);

/* The routes must be sorted by gate_route_compare. */
int fp8r_gate_print_text(const struct fp8r_gate_setting *setting, const struct gate_routes *routes,
                         struct fp8r_tool_error *error);
int fp8r_gate_print_json(const struct fp8r_gate_setting *setting, const struct gate_routes *routes,
                         struct fp8r_tool_error *error);
void fp8r_gate_print_markdown(const struct fp8r_gate_setting *setting, const struct gate_routes *routes,
                              FILE *stream);

/* Everything that has to be known to read the numbers of unseen problems, in one line. */
enum { FP8R_UNSEEN_LINE_BYTES = 1024 };
void fp8r_unseen_line(const struct unseen *unseen, char text[FP8R_UNSEEN_LINE_BYTES]);

int fp8r_unseen_print_text(const struct fp8r_gate_setting *setting, struct unseen *unseen,
                           struct fp8r_tool_error *error);
int fp8r_unseen_print_json(const struct fp8r_gate_setting *setting, struct unseen *unseen,
                           struct fp8r_tool_error *error);
void fp8r_unseen_print_markdown(const struct fp8r_gate_setting *setting, struct unseen *unseen, FILE *stream);

#endif
