/* Putting the page together: device and protocol, heat map, curves, routes, what stayed open, regret. No script, nothing
 * loaded from elsewhere.
 * SPDX-License-Identifier: Apache-2.0 */
#include "report/page.h"

#include <stdlib.h>
#include <string.h>

#include "plural.h"
#include "report/curve.h"
#include "report/heat_map.h"
#include "tune/segment_text.h"

static const char style[] =
    ":root{color-scheme:light dark;--bg:#fff;--fg:#1b1f24;--dim:#667;--line:#d5d9df;--tie:#e8eaee;--hot:21,128,61}\n"
    "@media(prefers-color-scheme:dark){:root{--bg:#14171b;--fg:#e3e6ea;--dim:#98a;--line:#353b44;--tie:#262b32;"
    "--hot:74,222,128}}\n"
    "body{background:var(--bg);color:var(--fg);font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:1240px;"
    "padding:0 1rem}h1{font-size:1.5rem}h2{font-size:1.15rem;margin-top:2.2rem}code,td,.family{font-family:ui-monospace,"
    "monospace;font-size:13px}table{border-collapse:collapse}td,th{border-bottom:1px solid var(--line);padding:.25rem .7rem;"
    "text-align:left}td.n,th.n{text-align:right}.scroll{overflow-x:auto}figure{display:inline-block;margin:0 1rem 1.5rem 0}"
    "figcaption{font-family:ui-monospace,monospace;font-size:13px}svg text{fill:var(--fg);font-size:12px}"
    "svg .axis,svg .gain{text-anchor:middle}svg .family,svg .tick{text-anchor:end}svg .tick,svg .axis{fill:var(--dim)}"
    ".cell{stroke:var(--bg);fill:rgba(var(--hot),.06)}.g1{fill:rgba(var(--hot),.18)}.g2{fill:rgba(var(--hot),.32)}"
    ".g3{fill:rgba(var(--hot),.46)}.g4{fill:rgba(var(--hot),.6)}.g5{fill:rgba(var(--hot),.75)}.cell.tie,.cell.noisy{fill:"
    "var(--tie)}.border{stroke:#dc2626;stroke-width:3}.grid{stroke:var(--line)}.limit{stroke:var(--dim);stroke-dasharray:5 "
    "4;fill:none}.line{fill:none;stroke-width:2}.dim{color:var(--dim)}\n"
    ".c0{stroke:#2563eb;fill:#2563eb}.c1{stroke:#ea580c;fill:#ea580c}.c2{stroke:#16a34a;fill:#16a34a}"
    ".c3{stroke:#9333ea;fill:#9333ea}.c4{stroke:#0891b2;fill:#0891b2}.c5{stroke:#be185d;fill:#be185d}"
    ".c6{stroke:#a16207;fill:#a16207}.c7{stroke:#4d7c0f;fill:#4d7c0f}.c8{stroke:#475569;fill:#475569}"
    ".c9{stroke:#b91c1c;fill:#b91c1c}polyline.line{fill:none}\n";

static void add_pair(struct markup *markup, const char *name, const char *value)
{
    markup_add(markup, "<tr><th>");
    markup_add_text(markup, name);
    markup_add(markup, "</th><td>");
    markup_add_text(markup, value);
    markup_add(markup, "</td></tr>\n");
}

static size_t sample_count(const struct samples *samples, int machine)
{
    size_t count = 0;
    for (size_t i = 0; i < samples->case_count; i++)
        for (int j = 0; samples->cases[i].machine == machine && j < samples->cases[i].count; j++)
            count += samples->cases[i].candidates[j].count;
    return count;
}

static void add_machine(const struct samples *samples, int machine, const struct analysis *analysis,
                        struct markup *markup)
{
    const struct fp8r_route_file *header = &samples->machines[machine];
    char identity[FP8R_IDENTITY_BYTES];
    size_t points = 0;
    for (size_t i = 0; i < analysis->count; i++)
        points += analysis->families[i].count;
    fp8r_identity_format(&header->identity, identity);
    markup_add(markup, "<h2 id=\"machine\">Machine and protocol</h2>\n<table>\n");
    for (int i = 0; i < header->fact_count; i++)
        add_pair(markup, header->facts[i].name, header->facts[i].value);
    add_pair(markup, "identity", identity);
    for (int i = 0; i < header->identity.library_count; i++)
        add_pair(markup, header->identity.libraries[i].backend, header->identity.libraries[i].version);
    add_pair(markup, "protocol", header->is_quick ? "quick: one pass over a grid" : "full: grid, borders, confirmation");
    add_pair(markup, "mode", header->mode == FP8R_MODE_GRAPH ? "graph" : "eager");
    add_pair(markup, "operands", header->is_cold ? "cold: rotated out of the caches" : "warm");
    if (header->is_behind_both) add_pair(markup, "calls", "half behind a small kernel, half behind themselves");
    size_t count = sample_count(samples, machine);
    markup_add(markup, "<tr><th>measured</th><td>%zu famil%s, %zu problem%s, %zu sample%s</td></tr>\n</table>\n",
               analysis->count, fp8r_plural(analysis->count, "y", "ies"), points, fp8r_s(points), count, fp8r_s(count));
}

static void add_segment(const struct fp8r_segment *segment, const char *family, struct markup *markup)
{
    char time[32], second[32] = "", rows[FP8R_SEGMENT_TEXT_BYTES], gain[FP8R_SEGMENT_TEXT_BYTES];
    fp8r_rows_format(segment->m_first, segment->m_last, rows);
    fp8r_gain_format(segment->gain_low, segment->gain_high, gain);
    markup_time(segment->median_us, time, sizeof time);
    if (segment->runner_up_us > 0)
        markup_time(segment->runner_up_us, second, sizeof second);
    markup_add(markup, "<tr class=\"route\"><td>");
    markup_add_text(markup, family);
    markup_add(markup, "</td><td class=\"n\">%s</td><td>", rows);
    markup_add_text(markup, segment->backend);
    markup_add(markup, ":");
    markup_add_text(markup, segment->config);
    markup_add(markup, "</td><td class=\"n\">%s</td><td>", time);
    markup_add_text(markup, segment->runner_up);
    markup_add(markup, "</td><td class=\"n\">%s</td><td class=\"n\">%s</td><td>%s</td></tr>\n", second, gain,
               segment->is_clear ? "clear" : "tie");
}

static void add_routes(const struct fp8r_route_file *file, struct markup *markup)
{
    markup_add(markup, "<h2 id=\"routes\">Routes</h2>\n<div class=\"scroll\"><table>\n<tr><th>family</th><th class=\"n\">M</th>"
                       "<th>backend</th><th class=\"n\">time</th><th>runner-up</th><th class=\"n\">time</th>"
                       "<th class=\"n\">gain over the default</th><th>verdict</th></tr>\n");
    for (size_t i = 0; i < file->table.count; i++) {
        char family[FP8R_TEXT_BYTES];
        const struct fp8r_entry *entry = &file->table.entries[i];
        if (fp8r_family_format(&entry->key, family, sizeof family) != FP8R_OK)
            continue;
        for (int j = 0; j < entry->segment_count; j++)
            add_segment(&entry->segments[j], family, markup);
    }
    markup_add(markup, "</table></div>\n");
}

static void add_open(const struct analysis *analysis, struct markup *markup)
{
    size_t ties = 0, noisy = 0;
    for (size_t i = 0; i < analysis->count; i++) {
        noisy += analysis_noisy(&analysis->families[i]);
        for (size_t j = 0; j < analysis->families[i].count; j++)
            ties += analysis->families[i].points[j].verdict == ANALYSIS_TIE;
    }
    markup_add(markup, "<h2 id=\"open\">Ties and noise</h2>\n<p>%zu problem%s: nothing beats the default by the "
                       "margin, so it stays. %zu %s noisy: the times spread too much to say, so it stays too.</p>\n",
               ties, fp8r_plural(ties, " is a tie", "s are ties"), noisy, fp8r_plural(noisy, "is", "are"));
    if (ties + noisy == 0)
        return;
    markup_add(markup, "<table>\n<tr><th>problem</th><th>verdict</th><th>default</th><th>fastest by median</th></tr>\n");
    for (size_t i = 0; i < analysis->count; i++) {
        for (size_t j = 0; j < analysis->families[i].count; j++) {
            const struct analysis_point *point = &analysis->families[i].points[j];
            if (point->verdict == ANALYSIS_CLEAR)
                continue;
            markup_add(markup, "<tr><td>");
            markup_add_text(markup, point->it->problem);
            markup_add(markup, "</td><td>%s</td><td>", analysis_verdict_name(point->verdict));
            markup_add_text(markup, point->it->candidates[point->it->fallback].name);
            markup_add(markup, "</td><td>");
            markup_add_text(markup, point->fastest >= 0 ? point->it->candidates[point->fastest].name : "");
            markup_add(markup, "</td></tr>\n");
        }
    }
    markup_add(markup, "</table>\n");
}

static void add_regret(const struct page_regret *regret, struct markup *markup)
{
    markup_add(markup, "<h2 id=\"regret\">Regret on unseen problems</h2>\n<p>");
    if (regret->counted == 0) {
        markup_add(markup, "Not measured. <code>fp8route gate ROUTES --unseen 50</code> measures it.</p>\n");
        return;
    }
    markup_add(markup, "%d problem%s: mean %.2f&#8239;%%, worst %.2f&#8239;%%. <span class=\"dim\">", regret->counted,
               fp8r_s((size_t)regret->counted),
               100 * regret->mean, 100 * regret->worst);
    markup_add_text(markup, regret->text);
    markup_add(markup, "</span></p>\n");
}

/* The reading speed that the tuner measured, from the facts. */
static double read_gbs(const struct fp8r_route_file *header)
{
    for (int i = 0; i < header->fact_count; i++)
        if (strcmp(header->facts[i].name, "read_gbs") == 0)
            return strtod(header->facts[i].value, NULL);
    return 0;
}

int page_add(const struct samples *samples, int machine, const struct analysis *analysis, const struct page_regret *regret,
             struct markup *markup, struct fp8r_tool_error *error)
{
    struct fp8r_route_file routes;
    struct curve_limits limits = {.read_gbs = read_gbs(&samples->machines[machine]),
                                  .best_gflops = curve_best_gflops(analysis)};
    int code = analysis_routes(samples, machine, analysis, &routes, error);
    if (code != FP8R_EXIT_GOOD)
        return code;
    markup_add(markup, "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" "
                       "content=\"width=device-width\"><title>fp8route report</title>\n<style>\n%s</style></head><body>\n"
                       "<h1>fp8route: measured routes</h1>\n", style);
    add_machine(samples, machine, analysis, markup);
    markup_add(markup, "<h2 id=\"map\">Gain over the default</h2>\n<p class=\"dim\">A number is how much faster the chosen "
                       "backend is than the default; 1 means the default itself is fastest, &#8776; a tie, ? noise. A "
                       "red line stands where the choice changes.</p>\n");
    heat_map_add(analysis, markup);
    markup_add(markup, "<h2 id=\"curves\">Time against M</h2>\n<p class=\"dim\">Large dots are the chosen ones; bars are 95 %% "
                       "intervals of the median; the dashed line is reading the weights once, or the best arithmetic rate "
                       "that any sample here reached, whichever takes longer.</p>\n");
    for (size_t i = 0; i < analysis->count; i++)
        curve_add(&analysis->families[i], &limits, markup);
    add_routes(&routes, markup);
    add_open(analysis, markup);
    add_regret(regret, markup);
    markup_add(markup, "</body></html>\n");
    fp8r_route_file_fini(&routes);
    return markup->failed ? fp8r_tool_error_memory(error, "the report") : FP8R_EXIT_GOOD;
}
