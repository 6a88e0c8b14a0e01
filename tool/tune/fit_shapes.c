/* The annotated shape table: each measured projection, which side of the rule it falls on, and by how much.
 * SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <math.h>

#include "tune/fit_files.h"
#include "tune/text.h"

enum { SEARCH_M = 1 << 20 }; /* borders beyond are no borders of anybody's problems */

/* The nearest m at which the rule changes; 0 where there is none, -1 without memory. */
static int64_t nearest_border(const struct fp8r_fit_story *story, const struct fp8r_fit_case *at)
{
    struct fp8r_rule_borders borders = {0};
    struct fp8r_rule_point point = {.m = at->m, .n = at->n, .k = at->k, .b = 1};
    int64_t nearest = 0;
    double least = INFINITY;
    if (fp8r_rule_borders_find(story->rule, &point, 1, SEARCH_M, &borders, NULL) != FP8R_EXIT_GOOD) return -1;
    for (size_t i = 0; i < borders.count; i++) {
        double distance = fabs(log((double)borders.items[i] / (double)at->m));
        if (!(distance < least)) continue;
        least = distance;
        nearest = borders.items[i];
    }
    fp8r_rule_borders_fini(&borders);
    return nearest;
}

/* "1.23x (1.20 to 1.26)": how much faster the picked one is than the other; below 1: the rule is wrong here.
 */
static void add_gain(struct fp8r_text *text, const struct fp8r_fit_origin *origin, bool holds)
{
    double gain = holds ? origin->ratio : 1 / origin->ratio, low = holds ? origin->low : 1 / origin->high,
           high = holds ? origin->high : 1 / origin->low;
    if (!(low > 0 && isfinite(high))) { /* one of them was dropped early, far behind */
        fp8r_text_add(text, " about %.1fx, not timed further | %s |", gain, gain < 1 ? "**loses**" : "wins");
        return;
    }
    const char *verdict = high < 1 ? "**loses**" : low > 1 ? "wins" : "tie";
    fp8r_text_add(text, " %.2fx (%.2f to %.2f) | %s |", gain, low, high, verdict);
}

static void add_row(struct fp8r_text *text, const struct fp8r_fit_story *story, size_t i)
{
    const struct fp8r_fit_case *one = &story->set->cases[i];
    const struct fp8r_fit_origin *origin = &story->set->origins[i];
    const struct sample_case *it = origin->it;
    bool holds = fp8r_fit_holds(story->fit, one->m, one->n, one->k);
    int64_t border = nearest_border(story, one);
    double price = holds ? origin->x_price : origin->y_price;
    text->is_short |= border < 0;
    fp8r_text_add(text, "| %s | %s |", it->problem, it->candidates[holds ? origin->x : origin->y].name);
    fp8r_text_add(text, " %.2f | %.2f |", holds ? one->then_us : one->else_us,
                  holds ? one->else_us : one->then_us);
    add_gain(text, origin, holds);
    if (border > 0)
        fp8r_text_add(text, " %.3g x from M=%" PRId64 " |",
                      fmax((double)border / (double)one->m, (double)one->m / (double)border), border);
    else
        fp8r_text_add(text, " none |");
    fp8r_text_add(text, " %+.1f %% (%s) |\n", 100 * price, it->candidates[origin->table].name);
}

static void add_machine(struct fp8r_text *text, const struct fp8r_fit_story *story, int device)
{
    const struct fp8r_route_file *machine = &story->samples->machines[story->set->machines[device]];
    struct fp8r_fit_price price = fp8r_fit_set_price(story->set, story->fit, device);
    char identity[FP8R_IDENTITY_BYTES];
    fp8r_identity_format(&machine->identity, identity);
    fp8r_text_add(text, "\n## Machine %d: %s\n\n", device + 1, identity);
    for (int i = 0; i < machine->fact_count; i++)
        fp8r_text_add(text, "- %s: %s\n", machine->facts[i].name, machine->facts[i].value);
    fp8r_text_add(text, "- regret: %.2f %%; price beside the full table: %.2f %%, worst problem %.1f %%\n\n",
                  100 * story->fit->regret.device[device], 100 * price.mean, 100 * price.worst);
    fp8r_text_add(text, "| problem | the rule takes | its us | the other's us | gain over the other (95 %%) "
                        "| there the rule | "
                        "nearest border | beside the full table |\n|---|---|--:|--:|---|---|---|---|\n");
    for (size_t i = 0; i < story->set->count; i++)
        if (story->set->cases[i].device == device) add_row(text, story, i);
}

char *fp8r_fit_shapes(const struct fp8r_fit_story *story)
{
    struct fp8r_text text = {0};
    fp8r_text_add(&text,
                  "# The shapes behind the rule\n\n    %s\n\ntakes `%s` where it holds and `%s` elsewhere.\n",
                  story->text, story->set->x, story->set->y);
    for (int i = 0; i < story->set->device_count; i++)
        add_machine(&text, story, i);
    return fp8r_text_take(&text);
}
