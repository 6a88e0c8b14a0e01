/* Reading case lists.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tune/case_list.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tool_input.h"

enum { FILE_MAX_BYTES = 16 << 20 };

static int read_text(const char *path, char **text, struct fp8r_tool_error *error)
{
    size_t size = 0, capacity = 1 << 16;
    FILE *file = NULL;
    int code = fp8r_tool_input_stream(path, &file, error);
    if (code != FP8R_EXIT_GOOD) return code;
    char *made = malloc(capacity + 1);
    while (made) {
        size += fread(made + size, 1, capacity - size, file);
        if (size < capacity || size > FILE_MAX_BYTES) break;
        char *grown = realloc(made, 2 * capacity + 1);
        if (!grown) free(made);
        made = grown;
        capacity *= 2;
    }
    if (!made)
        code = fp8r_tool_error_memory(error, "the case list");
    else if (ferror(file))
        code = fp8r_tool_error_set(error, FP8R_EXIT_BAD_DATA, "%s: it cannot be read: %s", path,
                                   strerror(errno));
    else if (size > FILE_MAX_BYTES || memchr(made, '\0', size))
        code = fp8r_tool_error_set(error, FP8R_EXIT_BAD_DATA,
                                   "%s: it is no case list: a text of at most 16 MiB", path);
    fclose(file);
    if (code == FP8R_EXIT_GOOD) {
        made[size] = '\0';
        *text = made;
    } else {
        free(made);
    }
    return code;
}

/* Cuts the comment and the blanks around what is left. */
static char *trim(char *line)
{
    static const char blanks[] = " \t\r";
    line[strcspn(line, "#")] = '\0';
    line += strspn(line, blanks);
    size_t length = strlen(line);
    while (length > 0 && strchr(blanks, line[length - 1]))
        line[--length] = '\0';
    return line;
}

static void split(struct fp8r_case_list *list)
{
    int number = 1;
    for (char *at = list->text; at; number++) {
        char *end = strchr(at, '\n');
        if (end) *end = '\0';
        const char *line = trim(at);
        if (*line) {
            list->lines[list->count] = line;
            list->numbers[list->count++] = number;
        }
        at = end ? end + 1 : NULL;
    }
}

int fp8r_case_list_read(const char *path, struct fp8r_case_list *list, struct fp8r_tool_error *error)
{
    *list = (struct fp8r_case_list){0};
    int code = read_text(path, &list->text, error);
    if (code != FP8R_EXIT_GOOD) return code;
    size_t lines = 1;
    for (const char *at = list->text; *at; at++)
        lines += *at == '\n';
    list->lines = calloc(lines, sizeof *list->lines);
    list->numbers = calloc(lines, sizeof *list->numbers);
    if (!list->lines || !list->numbers) {
        fp8r_case_list_fini(list);
        return fp8r_tool_error_memory(error, "the case list");
    }
    split(list);
    if (list->count > 0) return FP8R_EXIT_GOOD;
    fp8r_case_list_fini(list);
    return fp8r_tool_error_set(error, FP8R_EXIT_BAD_DATA, "%s: it holds no case", path);
}

void fp8r_case_list_fini(struct fp8r_case_list *list)
{
    free(list->text);
    free(list->lines);
    free(list->numbers);
    *list = (struct fp8r_case_list){0};
}
