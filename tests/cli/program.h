/* Runs the program as a user does and keeps what it wrote.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_TEST_PROGRAM_H
#define FP8R_TEST_PROGRAM_H

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* What a run left; free with program_fini. */
struct program {
    int exit_code; /* -1: ended by a signal */
    char *output, *errors;
};

static inline char *program_text(FILE *file)
{
    assert_int_equal(fseek(file, 0, SEEK_END), 0);
    long bytes = ftell(file);
    char *text = malloc((size_t)bytes + 1);
    assert_non_null(text);
    rewind(file);
    assert_int_equal(fread(text, 1, (size_t)bytes, file), bytes);
    text[bytes] = '\0';
    (void)fclose(file);
    return text;
}

/* Runs FP8R_PROGRAM with these words (NULL ends them), standard input empty. */
static inline struct program program_run(const char *const *words)
{
    const char *argv[32] = {FP8R_PROGRAM};
    FILE *output = tmpfile(), *errors = tmpfile();
    assert_non_null(output);
    assert_non_null(errors);
    for (size_t i = 0; words[i]; i++) {
        assert_true(i + 2 < sizeof argv / sizeof *argv);
        argv[i + 1] = words[i];
    }
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        int nothing = open("/dev/null", O_RDONLY);
        if (dup2(nothing, 0) == 0 && dup2(fileno(output), 1) == 1 && dup2(fileno(errors), 2) == 2)
            execv(FP8R_PROGRAM, (char *const *)(void *)argv);
        _exit(126);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    return (struct program){.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1,
                            .output = program_text(output),
                            .errors = program_text(errors)};
}

static inline void program_fini(struct program *program)
{
    free(program->output);
    free(program->errors);
}

/* A run that must fail: this exit code, nothing on standard output, one line on standard error with every one
 * of the expected texts (NULL ends them). */
static inline void expect_refusal(const char *const *words, int exit_code, const char *const *texts)
{
    struct program run = program_run(words);
    if (run.exit_code != exit_code)
        fail_msg("exit code %d, not %d: %s", run.exit_code, exit_code, run.errors);
    assert_string_equal(run.output, "");
    const char *newline = strchr(run.errors, '\n');
    if (!newline || newline[1] != '\0') fail_msg("not one line: '%s'", run.errors);
    for (; *texts; texts++)
        if (!strstr(run.errors, *texts)) fail_msg("no '%s' in '%s'", *texts, run.errors);
    program_fini(&run);
}

#endif
