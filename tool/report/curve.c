/* Drawing curves as SVG. A backend's line goes through its fastest configuration at every M.
 * SPDX-License-Identifier: Apache-2.0 */
#include "report/curve.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { WIDTH_PX = 580, HEIGHT_PX = 300, LEFT_PX = 64, RIGHT_PX = 110, TOP_PX = 12, BOTTOM_PX = 36, BACKENDS_MAX = 16 };

/* Data to pixels, both axes logarithmic. */
struct frame {
    double m_low, m_high, us_low, us_high;
};

static double place_x(const struct frame *frame, double m)
{
    double span = log(frame->m_high / frame->m_low);
    return LEFT_PX + (span > 0 ? log(m / frame->m_low) / span : 0.5) * (WIDTH_PX - LEFT_PX - RIGHT_PX);
}

static double place_y(const struct frame *frame, double us)
{
    double span = log(frame->us_high / frame->us_low);
    return HEIGHT_PX - BOTTOM_PX - (span > 0 ? log(us / frame->us_low) / span : 0.5) * (HEIGHT_PX - TOP_PX - BOTTOM_PX);
}

static double flops_of(const struct analysis_family *family, const struct analysis_point *point)
{
    return 2.0 * (double)family->key.batch * (double)point->it->m * (double)family->key.n * (double)family->key.k;
}

double curve_best_gflops(const struct analysis *analysis)
{
    double best = 0;
    for (size_t i = 0; i < analysis->count; i++) {
        for (size_t j = 0; j < analysis->families[i].count; j++) {
            const struct analysis_point *point = &analysis->families[i].points[j];
            double us = point->fastest >= 0 ? point->candidates[point->fastest].median_us : INFINITY;
            best = fmax(best, flops_of(&analysis->families[i], point) / us / 1e3);
        }
    }
    return best;
}

/* The larger of the two limits; 0 where none is known. */
static double limit_us(const struct analysis_family *family, const struct analysis_point *point,
                       const struct curve_limits *limits)
{
    double bytes = (double)family->key.batch * (double)family->key.n * (double)family->key.k;
    double reading = limits->read_gbs > 0 ? bytes / limits->read_gbs / 1e3 : 0;
    double computing = limits->best_gflops > 0 ? flops_of(family, point) / limits->best_gflops / 1e3 : 0;
    return fmax(reading, computing);
}

/* A backend's fastest configuration at a point; -1 where it was not measured. */
static int fastest_of(const struct analysis_point *point, const char *backend)
{
    int best = -1;
    size_t length = strlen(backend);
    for (int i = 0; i < point->it->count; i++) {
        const char *name = point->it->candidates[i].name;
        if (strncmp(name, backend, length) != 0 || name[length] != ':' || point->candidates[i].count == 0)
            continue;
        if (best < 0 || point->candidates[i].median_us < point->candidates[best].median_us)
            best = i;
    }
    return best;
}

/* Names of the backends that were measured anywhere in the family. */
static int list_backends(const struct analysis_family *family, char backends[BACKENDS_MAX][FP8R_NAME_BYTES])
{
    int count = 0;
    for (size_t i = 0; i < family->count; i++) {
        const struct sample_case *it = family->points[i].it;
        for (int j = 0; j < it->count; j++) {
            char name[FP8R_NAME_BYTES];
            int known = 0;
            snprintf(name, sizeof name, "%.*s", (int)strcspn(it->candidates[j].name, ":"), it->candidates[j].name);
            while (known < count && strcmp(backends[known], name) != 0)
                known++;
            if (known == count && count < BACKENDS_MAX)
                memcpy(backends[count++], name, sizeof name);
        }
    }
    return count;
}

static struct frame frame_of(const struct analysis_family *family, const struct curve_limits *limits)
{
    struct frame frame = {.m_low = INFINITY, .us_low = INFINITY};
    for (size_t i = 0; i < family->count; i++) {
        const struct analysis_point *point = &family->points[i];
        double limit = limit_us(family, point, limits);
        frame.m_low = fmin(frame.m_low, (double)point->it->m);
        frame.m_high = fmax(frame.m_high, (double)point->it->m);
        if (limit > 0)
            frame.us_low = fmin(frame.us_low, limit);
        for (int j = 0; j < point->it->count; j++) {
            if (point->candidates[j].count == 0)
                continue;
            frame.us_low = fmin(frame.us_low, point->candidates[j].low_us);
            frame.us_high = fmax(frame.us_high, point->candidates[j].high_us);
        }
    }
    frame.us_low /= 1.2;
    frame.us_high *= 1.2;
    return frame;
}

static void add_axes(const struct analysis_family *family, const struct frame *frame, struct markup *markup)
{
    double last_x = -1e9;
    static const double steps[] = {1, 2, 5};
    for (int i = 0, decade = (int)floor(log10(frame->us_low)); i < 60; i++) {
        double us = steps[i % 3] * pow(10, decade + i / 3);
        char time[32];
        if (us < frame->us_low || us > frame->us_high)
            continue;
        markup_time(us, time, sizeof time);
        markup_add(markup, "<line class=\"grid\" x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\"/><text class=\"tick\" x=\"%d\" "
                           "y=\"%.1f\">%s</text>\n", LEFT_PX, WIDTH_PX - RIGHT_PX, place_y(frame, us),
                   place_y(frame, us), LEFT_PX - 6, place_y(frame, us) + 4, time);
    }
    for (size_t i = 0; i < family->count; i++) {
        double x = place_x(frame, (double)family->points[i].it->m);
        if (x - last_x < 30)
            continue;
        markup_add(markup, "<text class=\"axis\" x=\"%.1f\" y=\"%d\">%lld</text>\n", x, HEIGHT_PX - 18,
                   (long long)family->points[i].it->m);
        last_x = x;
    }
    markup_add(markup, "<text class=\"axis\" x=\"%d\" y=\"%d\">M</text>\n", (LEFT_PX + WIDTH_PX - RIGHT_PX) / 2,
               HEIGHT_PX - 4);
}

static void add_backend(const struct analysis_family *family, const struct frame *frame, const char *backend, int colour,
                        struct markup *markup)
{
    double end_y = 0;
    int drawn = 0;
    markup_add(markup, "<polyline class=\"line c%d\" points=\"", colour % MARKUP_COLOURS);
    for (size_t i = 0; i < family->count; i++) {
        int best = fastest_of(&family->points[i], backend);
        if (best < 0)
            continue;
        end_y = place_y(frame, family->points[i].candidates[best].median_us);
        markup_add(markup, "%.1f,%.1f ", place_x(frame, (double)family->points[i].it->m), end_y);
        drawn++;
    }
    markup_add(markup, "\"/>\n");
    for (size_t i = 0; i < family->count; i++) {
        const struct analysis_point *point = &family->points[i];
        int best = fastest_of(point, backend);
        double x = place_x(frame, (double)point->it->m);
        if (best < 0)
            continue;
        markup_add(markup, "<g class=\"mark c%d\"><title>M=%lld: ", colour % MARKUP_COLOURS, (long long)point->it->m);
        markup_add_text(markup, point->it->candidates[best].name);
        markup_add(markup, " %.2f us (%.2f to %.2f)</title><line x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\"/><circle "
                           "cx=\"%.1f\" cy=\"%.1f\" r=\"%d\"/></g>\n", point->candidates[best].median_us,
                   point->candidates[best].low_us, point->candidates[best].high_us, x, x,
                   place_y(frame, point->candidates[best].low_us), place_y(frame, point->candidates[best].high_us), x,
                   place_y(frame, point->candidates[best].median_us), best == point->chosen ? 4 : 2);
    }
    if (drawn > 0) {
        markup_add(markup, "<circle class=\"key c%d\" cx=\"%d\" cy=\"%d\" r=\"4\"/><text class=\"legend\" x=\"%d\" "
                           "y=\"%d\">", colour % MARKUP_COLOURS, WIDTH_PX - RIGHT_PX + 16, TOP_PX + 14 + 18 * colour,
                   WIDTH_PX - RIGHT_PX + 26, TOP_PX + 18 + 18 * colour);
        markup_add_text(markup, backend);
        markup_add(markup, "</text>\n");
    }
}

static void add_limit(const struct analysis_family *family, const struct frame *frame, const struct curve_limits *limits,
                      int row, struct markup *markup)
{
    if (limits->read_gbs <= 0 && limits->best_gflops <= 0)
        return;
    markup_add(markup, "<polyline class=\"limit\" points=\"");
    for (size_t i = 0; i < family->count; i++)
        markup_add(markup, "%.1f,%.1f ", place_x(frame, (double)family->points[i].it->m),
                   place_y(frame, limit_us(family, &family->points[i], limits)));
    markup_add(markup, "\"/><line class=\"limit\" x1=\"%d\" x2=\"%d\" y1=\"%d\" y2=\"%d\"/><text class=\"legend\" x=\"%d\" "
                       "y=\"%d\">limit</text>\n", WIDTH_PX - RIGHT_PX + 8, WIDTH_PX - RIGHT_PX + 22,
               TOP_PX + 14 + 18 * row, TOP_PX + 14 + 18 * row, WIDTH_PX - RIGHT_PX + 26, TOP_PX + 18 + 18 * row);
}

void curve_add(const struct analysis_family *family, const struct curve_limits *limits, struct markup *markup)
{
    char backends[BACKENDS_MAX][FP8R_NAME_BYTES];
    int count = list_backends(family, backends);
    struct frame frame = frame_of(family, limits);
    markup_add(markup, "<figure><figcaption>");
    markup_add_text(markup, family->text);
    markup_add(markup, "</figcaption><svg role=\"img\" aria-label=\"time against M\" width=\"%d\" height=\"%d\" "
                       "viewBox=\"0 0 %d %d\">\n", WIDTH_PX, HEIGHT_PX, WIDTH_PX, HEIGHT_PX);
    if (frame.us_high > 0) {
        add_axes(family, &frame, markup);
        add_limit(family, &frame, limits, count, markup);
        for (int i = 0; i < count; i++)
            add_backend(family, &frame, backends[i], i, markup);
    }
    markup_add(markup, "</svg></figure>\n");
}
