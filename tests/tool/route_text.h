/* Route files as a few words: "FAMILY FIRST..LAST BACKEND:CONFIG VERDICT, ...".
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_ROUTE_TEXT_H
#define FP8R_ROUTE_TEXT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "route/route_file.h"

#define ROUTE_HEAD(threads, facts, protocol)                                                                           \
    "fp8route-routes 1\ndevice cpu\nidentity features=avx2+fma threads=" threads " llc_bytes=1048576\n" facts          \
    "protocol " protocol " mode=eager operands=cold\n"

/* One segment: its m, choice ("cpu:one"), rev and verdict. */
static inline size_t route_text_segment(char *text, size_t size, const char *rows, const char *choice, const char *rev,
                                        const char *verdict)
{
    size_t name = strcspn(choice, ":");
    const char *gain = strcmp(verdict, "clear") == 0 ? "1.1..1.2" : "1..1";
    return (size_t)snprintf(text, size, "  m=%s backend=%.*s config=%s rev=%s median_us=10 gain=%s verdict=%s\n", rows,
                            (int)name, choice, choice + name + 1, rev, gain, verdict);
}

/* body: lines, each "FAMILY" or "ROWS CHOICE REV VERDICT". */
static inline void route_text_parse(const char *head, const char *body, struct fp8r_route_file *file)
{
    char text[16384];
    int entries = 0;
    size_t used = (size_t)snprintf(text, sizeof text, "%s", head);
    for (const char *at = body; *at; at += strcspn(at, "\n"), at += *at == '\n') {
        char words[4][64];
        int count = sscanf(at, "%63s %63s %63s %63[^\n]", words[0], words[1], words[2], words[3]);
        if (memchr(at, ' ', strcspn(at, "\n")) && count == 4)
            used += route_text_segment(text + used, sizeof text - used, words[0], words[1], words[2], words[3]);
        else
            used += (size_t)snprintf(text + used, sizeof text - used, "entry %s\n", words[0]), entries++;
    }
    used += (size_t)snprintf(text + used, sizeof text - used, "end entries=%d\n", entries);
    assert_true(used < sizeof text);
    if (fp8r_route_file_parse("made", text, used, file) != FP8R_OK)
        fail_msg("%s in:\n%s", fp8r_last_error(), text);
}

static inline char *route_text_of(const struct fp8r_route_file *file)
{
    char *text = NULL;
    assert_int_equal(fp8r_route_file_format(file, &text), FP8R_OK);
    return text;
}

#endif
