/* The one error record of the program: an exit code and one line. Everything under tool/ that can fail fills
 * it and returns its exit code; only cli prints it. SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_TOOL_ERROR_H
#define FP8R_TOOL_ERROR_H

enum fp8r_exit {
    FP8R_EXIT_GOOD = 0,
    FP8R_EXIT_FAILED = 1,       /* regression, wrong values, failed check */
    FP8R_EXIT_USAGE = 2,        /* usage, unknown backend, bad problem text */
    FP8R_EXIT_INCONCLUSIVE = 3, /* the noise is wider than the question */
    FP8R_EXIT_UNMEASURED = 4,   /* no device, backend refused, ambiguous, nothing measured */
    FP8R_EXIT_BAD_DATA = 5,     /* route file, config, safetensors, samples */
    FP8R_EXIT_INTERNAL = 6,     /* internal or out of memory */
    FP8R_EXIT_INTERRUPTED = 75  /* resumable */
};

struct fp8r_tool_error {
    int exit_code;
    char text[512]; /* one line of valid UTF-8, no control characters: what a file holds cannot drive a
                       terminal */
};

/* Fills error (which may be NULL) and returns exit_code, so that a failing function ends with one return. */
__attribute__((format(printf, 3, 4))) int fp8r_tool_error_set(struct fp8r_tool_error *error, int exit_code,
                                                              const char *format, ...);

/* The code that a program with both outcomes ends with: 75 and 2 end it at once, then 6, 5, 1, 3, 4, 0. */
int fp8r_exit_worse(int a, int b);

/* What is left to say when something fails behind another outcome, as when a file is closed: the worse code, and one line of
 * both. other_code GOOD changes nothing. */
int fp8r_tool_error_join(struct fp8r_tool_error *error, int code, const struct fp8r_tool_error *other, int other_code);

/* The out-of-memory line; what names the thing there was no room for ("the tensor list"). */
int fp8r_tool_error_memory(struct fp8r_tool_error *error, const char *what);

#endif
