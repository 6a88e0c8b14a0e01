/* Reading lists of M.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/m_list.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

int fp8r_m_list_parse(const char *text, int64_t **ms, size_t *count, struct fp8r_tool_error *error)
{
    size_t room = strlen(text) / 2 + 1, made = 0;
    int64_t *list = calloc(room, sizeof *list);
    if (!list) return fp8r_tool_error_memory(error, "the list of M");
    for (const char *at = text;; at++) {
        char *end = NULL;
        errno = 0;
        intmax_t m = *at >= '0' && *at <= '9' ? strtoimax(at, &end, 10) : 0;
        if (m < 1 || errno != 0 || (*end != ',' && *end != '\0')) {
            free(list);
            return fp8r_tool_error_set(
                error, FP8R_EXIT_USAGE,
                "--m is \"%.60s\": it must be whole numbers from 1 with commas between them: 1,2,4", text);
        }
        list[made++] = m;
        at = end;
        if (*at == '\0') break;
    }
    *ms = list;
    *count = made;
    return FP8R_EXIT_GOOD;
}
