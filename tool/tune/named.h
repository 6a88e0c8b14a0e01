/* What names of backends stand for among candidates, and why a candidate is no longer measured. Shared by
 * those who judge samples. SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_NAMED_H
#define FP8R_NAMED_H

#include <string.h>

#include "tune/samples.h"

/* Is the label "backend:config" meant by "backend", by itself, or by ""? */
static inline bool fp8r_label_is_named(const char *label, const char *name)
{
    size_t length = strlen(name);
    bool is_start = strncmp(label, name, length) == 0;
    return length == 0 ||
           (is_start && (label[length] == '\0' || (label[length] == ':' && !strchr(name, ':'))));
}

/* Dropped as hopelessly slow after a round or two. */
static inline bool fp8r_candidate_is_behind(const struct sample_candidate *candidate)
{
    return strstr(candidate->dropped, "behind") != NULL;
}

static inline bool fp8r_candidate_is_wrong(const struct sample_candidate *candidate)
{
    return strstr(candidate->dropped, "wrong") != NULL;
}

#endif
