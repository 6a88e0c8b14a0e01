/* Writing the result file.
 * SPDX-License-Identifier: Apache-2.0 */
#include "result_file.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "device/device.h"

/* The commit that is checked out where the program runs, "unknown" without git; marked where files differ
 * from it. */
static void read_commit(const char *given, char *commit, size_t size)
{
    snprintf(commit, size, "%s", given ? given : "unknown");
    if (given) return;
    FILE *git = popen("git describe --always --dirty --abbrev=12 --exclude '*' 2>/dev/null", "r");
    if (!git) return;
    if (fgets(commit, (int)size, git))
        commit[strcspn(commit, "\n")] = '\0';
    else
        snprintf(commit, size, "unknown");
    pclose(git);
}

static double rounded(double value)
{
    char text[32];
    snprintf(text, sizeof text, "%.5g", value);
    return strtod(text, NULL);
}

static json_t *bar_json(const struct bench_bar *bar)
{
    json_t *object = json_pack("{ss, ss, sb, ss, sf, sf, sb}", "bar", bar->name, "what", bar->what,
                               "measured", bar->is_measured, "note", bar->note, "must", bar->must, "aim",
                               bar->aim, "larger_is_better", bar->larger_is_better);
    if (!object || !bar->is_measured) return object;
    json_t *numbers =
        json_pack("{ss, si, sf, s[f,f], sf, sf, sf, sf, ss}", "config", bar->config, "rounds", bar->rounds,
                  "ratio", rounded(bar->ratio), "interval_95", rounded(bar->low), rounded(bar->high),
                  "mine_us", rounded(bar->mine_us), "peer_us", rounded(bar->peer_us), "mine_rate",
                  rounded(bar->mine_rate), "peer_rate", rounded(bar->peer_rate), "rate_unit", bar->rate_unit);
    if (!numbers || json_object_update(object, numbers) != 0) {
        json_decref(object);
        object = NULL;
    }
    json_decref(numbers);
    return object;
}

/* A word as a user would type it: of a path elsewhere only the name, since folders of this machine say nothing. */
static const char *typed(const char *word)
{
    const char *slash = *word == '/' ? strrchr(word, '/') : NULL;
    return slash && slash[1] ? slash + 1 : word;
}

static json_t *result_json(const struct bench_settings *settings, const char *features, const char *date,
                           int argc, char **argv)
{
    char commit[64];
    const fp8r_device_facts *facts = &settings->facts;
    json_t *command = json_array();
    for (int i = 0; i < argc; i++)
        json_array_append_new(command, json_string(i == 0 ? "bench_cpu" : typed(argv[i])));
    read_commit(settings->commit, commit, sizeof commit);
    return json_pack("{ss, ss, ss, s{ss, ss, si, sI, sI}, so}", "schema", "fp8route-bench-1", "date", date,
                     "commit", commit, "machine", "processor", facts->name, "features", features, "threads",
                     (int)settings->threads, "l2_bytes", (json_int_t)facts->l2_bytes, "last_level_bytes",
                     (json_int_t)facts->last_level_bytes, "command", command);
}

bool bench_result_write(const char *directory, const struct bench_settings *settings,
                        const struct bench_bar *bars, int count, int argc, char **argv)
{
    char date[32] = "", features[128], path[512];
    time_t now = time(NULL);
    struct tm utc;
    if (gmtime_r(&now, &utc)) strftime(date, sizeof date, "%Y-%m-%dT%H-%M-%SZ", &utc);
    fp8r_cpu_features_format(settings->facts.cpu_features, features, sizeof features);
    const char *last = strrchr(features, '+');
    snprintf(path, sizeof path, "%s/cpu-%s-%s-%dt.json", directory, date, last ? last + 1 : features,
             (int)settings->threads);
    json_t *result = result_json(settings, features, date, argc, argv), *list = json_array();
    for (int i = 0; i < count; i++)
        json_array_append_new(list, bar_json(&bars[i]));
    bool good = result && json_object_set_new(result, "bars", list) == 0 &&
                json_dump_file(result, path, JSON_INDENT(2) | JSON_REAL_PRECISION(6)) == 0;
    json_decref(result);
    if (good)
        fprintf(stderr, "bench_cpu: wrote %s\n", path);
    else
        fprintf(stderr, "bench_cpu: could not write %s\n", path);
    return good;
}
