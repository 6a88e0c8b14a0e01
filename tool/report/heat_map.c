/* Drawing the heat map as SVG. SPDX-License-Identifier: Apache-2.0 */
#include "report/heat_map.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LABEL_PX = 250, CELL_WIDTH_PX = 54, CELL_HEIGHT_PX = 24, TOP_PX = 26, COLUMNS_MAX = 4096 };

static int compare_m(const void *a, const void *b)
{
    int64_t one = *(const int64_t *)a, other = *(const int64_t *)b;
    return (one > other) - (one < other);
}

/* Every M of every family, ascending, each once; count of them. NULL when out of memory. */
static int64_t *all_m(const struct analysis *analysis, size_t *count)
{
    size_t total = 0, kept = 0;
    for (size_t i = 0; i < analysis->count; i++)
        total += analysis->families[i].count;
    int64_t *m = calloc(total + 1, sizeof *m);
    if (!m)
        return NULL;
    for (size_t i = 0, at = 0; i < analysis->count; i++)
        for (size_t j = 0; j < analysis->families[i].count; j++)
            m[at++] = analysis->families[i].points[j].it->m;
    qsort(m, total, sizeof *m, compare_m);
    for (size_t i = 0; i < total; i++)
        if (kept == 0 || m[kept - 1] != m[i])
            m[kept++] = m[i];
    *count = kept < COLUMNS_MAX ? kept : COLUMNS_MAX;
    return m;
}

static size_t column_of(const int64_t *m, size_t count, int64_t wanted)
{
    const int64_t *found = bsearch(&wanted, m, count, sizeof *m, compare_m);
    return found ? (size_t)(found - m) : count;
}

/* Gain of the chosen over the default by medians. */
static double gain_of(const struct analysis_point *point)
{
    const struct analysis_candidate *chosen = &point->candidates[point->chosen];
    const struct analysis_candidate *fallback = &point->candidates[point->it->fallback];
    return chosen->count > 0 && fallback->count > 0 ? fallback->median_us / chosen->median_us : 1;
}

/* 1.0 to 4 and more in six steps, a class g0..g5 each; ties and noise have classes of their own. */
static void add_cell(const struct analysis_point *point, double x, double y, struct markup *markup)
{
    double gain = gain_of(point);
    int step = gain > 1 ? (int)ceil(log2(gain) * 2.5) : 0;
    char time[32];
    const char *kind = point->verdict == ANALYSIS_CLEAR ? "" : point->verdict == ANALYSIS_TIE ? " tie" : " noisy";
    markup_time(point->candidates[point->chosen].median_us, time, sizeof time);
    markup_add(markup, "<g><title>");
    markup_add_text(markup, point->it->problem);
    markup_add(markup, ": ");
    markup_add_text(markup, point->it->candidates[point->chosen].name);
    markup_add(markup, ", %s, %s</title><rect class=\"cell g%d%s\" x=\"%.0f\" y=\"%.0f\" width=\"%d\" height=\"%d\"/>", time,
               analysis_verdict_name(point->verdict), step > 5 ? 5 : step, kind, x, y, CELL_WIDTH_PX, CELL_HEIGHT_PX);
    markup_add(markup, "<text class=\"gain\" x=\"%.0f\" y=\"%.0f\">", x + CELL_WIDTH_PX / 2.0, y + 16);
    if (point->verdict == ANALYSIS_CLEAR && point->chosen != point->it->fallback)
        markup_add(markup, "%.2f&#215;", gain);
    else
        markup_add(markup, "%s", point->verdict == ANALYSIS_CLEAR ? "1" : point->verdict == ANALYSIS_TIE ? "&#8776;" : "?");
    markup_add(markup, "</text></g>\n");
}

static void add_row(const struct analysis_family *family, const int64_t *m, size_t columns, double y,
                    struct markup *markup)
{
    markup_add(markup, "<text class=\"family\" x=\"%d\" y=\"%.0f\">", LABEL_PX - 8, y + 16);
    markup_add_text(markup, family->text);
    markup_add(markup, "</text>\n");
    for (size_t i = 0; i < family->count; i++) {
        size_t column = column_of(m, columns, family->points[i].it->m);
        if (column < columns)
            add_cell(&family->points[i], LABEL_PX + (double)column * CELL_WIDTH_PX, y, markup);
    }
    for (size_t i = 0; i + 1 < family->count; i++) {
        size_t column = column_of(m, columns, family->points[i + 1].it->m);
        double x = LABEL_PX + (double)column * CELL_WIDTH_PX;
        if (column < columns && analysis_is_switch(family, i))
            markup_add(markup, "<line class=\"border\" x1=\"%.0f\" y1=\"%.0f\" x2=\"%.0f\" y2=\"%.0f\"/>\n", x, y, x,
                       y + CELL_HEIGHT_PX);
    }
}

void heat_map_add(const struct analysis *analysis, struct markup *markup)
{
    size_t columns = 0;
    int64_t *m = all_m(analysis, &columns);
    if (!m) {
        markup->failed = true;
        return;
    }
    double width = LABEL_PX + (double)columns * CELL_WIDTH_PX + 8, height = TOP_PX + (double)analysis->count * CELL_HEIGHT_PX + 8;
    markup_add(markup, "<div class=\"scroll\"><svg role=\"img\" aria-label=\"gain over the default by family and M\" "
                       "width=\"%.0f\" height=\"%.0f\" viewBox=\"0 0 %.0f %.0f\">\n", width, height, width, height);
    for (size_t i = 0; i < columns; i++)
        markup_add(markup, "<text class=\"axis\" x=\"%.0f\" y=\"%d\">%lld</text>\n",
                   LABEL_PX + ((double)i + 0.5) * CELL_WIDTH_PX, TOP_PX - 8, (long long)m[i]);
    for (size_t i = 0; i < analysis->count; i++)
        add_row(&analysis->families[i], m, columns, TOP_PX + (double)i * CELL_HEIGHT_PX, markup);
    markup_add(markup, "</svg></div>\n");
    free(m);
}
