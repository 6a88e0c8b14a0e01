/* Terminal or not, colour or not.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cli/terminal.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool fp8r_is_terminal(FILE *stream)
{
    return isatty(fileno(stream)) == 1;
}

bool fp8r_is_read_no_more(FILE *stream)
{
    struct pollfd end = {.fd = fileno(stream), .events = POLLOUT};
    return poll(&end, 1, 0) == 1 && (end.revents & POLLERR);
}

static bool is_set(const char *name)
{
    const char *value = getenv(name);
    return value && *value;
}

const char *fp8r_style(FILE *stream, enum fp8r_style style)
{
    static const char *const sequences[FP8R_STYLE_COUNT] = {"\033[0m", "\033[1m", "\033[2m", "\033[32m",
                                                            "\033[31m"};
    const char *term = getenv("TERM");
    bool is_plain = is_set("NO_COLOR") || !fp8r_is_terminal(stream) || !term || strcmp(term, "dumb") == 0;
    return is_plain ? "" : sequences[style];
}
