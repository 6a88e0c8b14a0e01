/* Printing the gate's routes. SPDX-License-Identifier: Apache-2.0 */
#include "cli/gate_print.h"

#include <math.h>

#include "cli/text_table.h"
#include "plural.h"

void fp8r_gate_count(const struct gate_routes *routes, size_t counts[GATE_VERDICTS])
{
    for (int i = 0; i < GATE_VERDICTS; i++)
        counts[i] = 0;
    for (size_t i = 0; i < routes->count; i++)
        counts[routes->items[i].verdict]++;
}

static const char *role_of(const struct gate_comparison *comparison)
{
    return !comparison->is_runner_up ? "default"
           : comparison->is_default  ? "runner-up and default"
                                     : "runner-up";
}

static double percent(double ratio)
{
    return 100 * (ratio - 1);
}

/* What the tune made of it: a tie was left open, and its default kept. */
static const char *stored_name(const struct gate_route *route)
{
    return route->segment->is_clear ? "clear" : "tie";
}

static size_t count_lost_ties(const struct gate_routes *routes)
{
    size_t count = 0;
    for (size_t i = 0; i < routes->count; i++)
        count += routes->items[i].verdict == GATE_REGRESSION && !routes->items[i].segment->is_clear;
    return count;
}

/* ---- Text ---- */

static enum fp8r_style style_of(enum gate_verdict verdict)
{
    return verdict == GATE_REGRESSION ? FP8R_STYLE_BAD
           : verdict == GATE_FINE     ? FP8R_STYLE_GOOD
           : verdict == GATE_LEFT     ? FP8R_STYLE_DIM
                                      : FP8R_STYLE_BOLD;
}

static void add_route(struct fp8r_text_table *table, const struct gate_route *route)
{
    const struct gate_point *at = NULL;
    const struct gate_comparison *worst = gate_route_worst(route, &at);
    fp8r_text_table_add(table, FP8R_STYLE_NONE, "%s", route->family);
    fp8r_text_table_add(table, FP8R_STYLE_NONE, "%lld..%lld", (long long)route->segment->m_first,
                        (long long)route->segment->m_last);
    fp8r_text_table_add(table, FP8R_STYLE_NONE, "%s%s", route->label, route->is_stale ? " (stale)" : "");
    fp8r_text_table_add(table, style_of(route->verdict), "%s", gate_verdict_name(route->verdict));
    if (worst) {
        fp8r_text_table_add(table, FP8R_STYLE_NONE, "%lld", (long long)at->m);
        fp8r_text_table_add(table, FP8R_STYLE_NONE, "%s (%s)", worst->label, role_of(worst));
        fp8r_text_table_add(table, FP8R_STYLE_NONE, "%+.1f %%", percent(worst->result.ratio));
        fp8r_text_table_add(table, FP8R_STYLE_NONE, "%+.1f..%+.1f %%", percent(worst->result.low),
                            percent(worst->result.high));
        fp8r_text_table_add(table, FP8R_STYLE_NONE, "%d", worst->result.pairs);
    } else {
        for (int i = 0; i < 5; i++)
            fp8r_text_table_add(table, FP8R_STYLE_DIM, "-");
    }
    fp8r_text_table_add(table, FP8R_STYLE_NONE, "%s", stored_name(route));
}

static void print_reasons(const struct gate_routes *routes)
{
    for (size_t i = 0; i < routes->count; i++)
        if (routes->items[i].why[0])
            printf("%s M=%lld..%lld: %s\n", routes->items[i].family,
                   (long long)routes->items[i].segment->m_first, (long long)routes->items[i].segment->m_last,
                   routes->items[i].why);
}

int fp8r_gate_print_text(const struct fp8r_gate_setting *setting, const struct gate_routes *routes,
                         struct fp8r_tool_error *error)
{
    static const char *const headings[] = {"family",  "M",          "route",     "verdict", ">at M",
                                           "against", ">slower by", ">interval", ">pairs", "in the file"};
    struct fp8r_text_table table;
    size_t counts[GATE_VERDICTS];
    fp8r_gate_count(routes, counts);
    fp8r_text_table_init(&table, headings, sizeof headings / sizeof *headings);
    for (size_t i = 0; i < routes->count; i++)
        add_route(&table, &routes->items[i]);
    int code = fp8r_text_table_print(&table, stdout, error);
    if (code != FP8R_EXIT_GOOD) return code;
    printf("\n");
    print_reasons(routes);
    printf("%zu of %zu route%s of %s: %zu fine, %zu regression%s, %zu inconclusive, %zu that cannot run here, "
           "%zu left by the "
           "budget; margin %.3g %%, seed %llu\n",
           routes->count, routes->all, fp8r_s(routes->all), setting->path, counts[GATE_FINE], counts[GATE_REGRESSION],
           fp8r_s(counts[GATE_REGRESSION]), counts[GATE_INCONCLUSIVE], counts[GATE_UNMEASURED], counts[GATE_LEFT],
           100 * setting->margin, (unsigned long long)setting->seed);
    size_t ties = count_lost_ties(routes);
    if (ties > 0)
        printf("%zu of the regressions %s in the file, where the noise of the tune left the default: tune %s anew\n", ties,
               fp8r_plural(ties, "is a tie", "are ties"), fp8r_plural(ties, "that family", "those families"));
    return FP8R_EXIT_GOOD;
}

/* ---- JSON ---- */

/* An interval that is not bounded yet has no JSON number. */
static json_t *number(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

static void set_point(struct fp8r_output *output, json_t *object, const struct gate_point *point)
{
    fp8r_output_set(output, object, "m", json_integer(point->m));
    fp8r_output_set_text(output, object, "verdict", gate_verdict_name(point->verdict));
    fp8r_output_set(output, object, "median_us", json_real(point->median_us));
    json_t *list = fp8r_output_add_array(output, object, "against");
    for (int i = 0; i < point->count; i++) {
        const struct gate_comparison *comparison = &point->against[i];
        json_t *item = fp8r_output_append_object(output, list);
        fp8r_output_set_text(output, item, "candidate", comparison->label);
        fp8r_output_set(output, item, "runner_up", json_boolean(comparison->is_runner_up));
        fp8r_output_set(output, item, "default", json_boolean(comparison->is_default));
        fp8r_output_set(output, item, "median_us", json_real(comparison->median_us));
        fp8r_output_set(output, item, "ratio", number(comparison->result.ratio));
        fp8r_output_set(output, item, "low", number(comparison->result.low));
        fp8r_output_set(output, item, "high", number(comparison->result.high));
        fp8r_output_set(output, item, "pairs", json_integer(comparison->result.pairs));
        fp8r_output_set_text(output, item, "verdict", fp8r_paired_verdict_name(comparison->result.verdict));
    }
}

static void set_route(struct fp8r_output *output, json_t *object, const struct gate_route *route)
{
    fp8r_output_set_text(output, object, "family", route->family);
    fp8r_output_set(output, object, "m_first", json_integer(route->segment->m_first));
    fp8r_output_set(output, object, "m_last", json_integer(route->segment->m_last));
    fp8r_output_set_text(output, object, "chosen", route->label);
    fp8r_output_set(output, object, "stale", json_boolean(route->is_stale));
    fp8r_output_set_text(output, object, "in_file", stored_name(route));
    fp8r_output_set_text(output, object, "verdict", gate_verdict_name(route->verdict));
    fp8r_output_set_text(output, object, "why", route->why[0] ? route->why : NULL);
    json_t *points = fp8r_output_add_array(output, object, "points");
    for (int i = 0; i < route->point_count; i++)
        set_point(output, fp8r_output_append_object(output, points), &route->points[i]);
}

void fp8r_gate_output_init(struct fp8r_output *output, const struct fp8r_gate_setting *setting)
{
    fp8r_output_init(output, "gate");
    fp8r_output_set_text(output, output->root, "path", setting->path);
    fp8r_output_set_text(output, output->root, "sha256", setting->digest);
    fp8r_output_set_text(output, output->root, "machine", setting->machine);
    fp8r_output_set(output, output->root, "seed", json_integer((json_int_t)setting->seed));
    fp8r_output_set(output, output->root, "margin", json_real(setting->margin));
}

int fp8r_gate_print_json(const struct fp8r_gate_setting *setting, const struct gate_routes *routes,
                         struct fp8r_tool_error *error)
{
    struct fp8r_output output;
    size_t counts[GATE_VERDICTS];
    fp8r_gate_count(routes, counts);
    fp8r_gate_output_init(&output, setting);
    fp8r_output_set(&output, output.root, "route_count", json_integer((json_int_t)routes->all));
    fp8r_output_set(&output, output.root, "stale_count", json_integer((json_int_t)routes->stale));
    for (int i = 0; i < GATE_VERDICTS; i++)
        fp8r_output_set(&output, output.root, gate_verdict_name((enum gate_verdict)i),
                        json_integer((json_int_t)counts[i]));
    json_t *list = fp8r_output_add_array(&output, output.root, "routes");
    for (size_t i = 0; i < routes->count; i++)
        set_route(&output, fp8r_output_append_object(&output, list), &routes->items[i]);
    return fp8r_output_print(&output, error);
}

/* ---- Markdown ---- */

static const char *headline(const size_t counts[GATE_VERDICTS])
{
    return counts[GATE_REGRESSION] > 0     ? "routes do not hold"
           : counts[GATE_INCONCLUSIVE] > 0 ? "inconclusive"
           : counts[GATE_UNMEASURED] > 0   ? "some routes cannot run"
           : counts[GATE_FINE] > 0         ? "the routes hold"
                                           : "nothing was measured";
}

/* Names and families have no character that a code span or a table would mind. */
static void print_row(const struct gate_route *route, FILE *stream)
{
    const struct gate_point *at = NULL;
    const struct gate_comparison *worst = gate_route_worst(route, &at);
    fprintf(stream, "| %s%s%s | `%s` | %lld..%lld | `%s`%s | ", route->verdict == GATE_REGRESSION ? "**" : "",
            gate_verdict_name(route->verdict), route->verdict == GATE_REGRESSION ? "**" : "", route->family,
            (long long)route->segment->m_first, (long long)route->segment->m_last, route->label,
            route->is_stale ? " (stale)" : "");
    if (worst)
        fprintf(stream, "`%s`, %s, at M=%lld | %+.1f %% | %+.1f..%+.1f %% | %d | ", worst->label,
                role_of(worst), (long long)at->m, percent(worst->result.ratio), percent(worst->result.low),
                percent(worst->result.high), worst->result.pairs);
    else
        fprintf(stream, "%s | | | | ", route->why[0] ? route->why : "nobody else");
    fprintf(stream, "%s |\n", stored_name(route));
}

void fp8r_gate_print_markdown(const struct fp8r_gate_setting *setting, const struct gate_routes *routes,
                              FILE *stream)
{
    size_t counts[GATE_VERDICTS];
    fp8r_gate_count(routes, counts);
    fprintf(stream, "### fp8route gate: %s\n\n", headline(counts));
    fprintf(stream,
            "%zu of %zu route%s of `%s` (%zu stale), measured anew on `%s`: %zu fine, %zu regression%s, %zu "
            "inconclusive, %zu that cannot run here, %zu left by the budget. Margin %.3g %%, seed %llu.\n\n",
            routes->count, routes->all, fp8r_s(routes->all), setting->path, routes->stale, setting->machine,
            counts[GATE_FINE], counts[GATE_REGRESSION], fp8r_s(counts[GATE_REGRESSION]), counts[GATE_INCONCLUSIVE], counts[GATE_UNMEASURED], counts[GATE_LEFT],
            100 * setting->margin, (unsigned long long)setting->seed);
    fprintf(stream, "| verdict | family | M | route | against | slower by | interval | pairs | in the file |\n"
                    "|---|---|---|---|---|--:|--:|--:|---|\n");
    for (size_t i = 0; i < routes->count; i++)
        if (routes->items[i].verdict != GATE_LEFT) print_row(&routes->items[i], stream);
}
