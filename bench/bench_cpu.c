/* The bars of the CPU: measures each, prints it beside what it must and should be, and keeps a result file.
 *
 *     bench_cpu [--threads N] [--rounds N] [--results DIRECTORY] [--commit TEXT] [BAR...]
 *
 * --commit: what the result file says was measured, for a copy without git.
 * Exit: 0 all measured bars hold, 1 one does not, 2 usage, 4 nothing could be measured, 6 the result could
 * not be written.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bar.h"
#include "blas_core.h"
#include "device/device.h"
#include "result_file.h"
#include "tool_error.h"

enum { BARS = 8, ROUNDS = 31 };

static const char *const names[BARS] = {"decode-4096", "decode-14336", "prefill-512", "decode-torch",
                                        "routed-1",    "routed-512",   "decision",    "plan-run"};

static void measure(int index, const struct bench_settings *settings, struct bench_bar *bar)
{
    switch (index) {
    case 0:
        bench_decode(settings, 4096, 4096, names[0], bar);
        break;
    case 1:
        bench_decode(settings, 14336, 4096, names[1], bar);
        break;
    case 2:
        bench_sgemm(settings, bar);
        break;
    case 3:
        bench_torch(settings, bar);
        break;
    case 4:
        bench_routed(settings, "1x4096x4096", names[4], bar);
        break;
    case 5:
        bench_routed(settings, "512x4096x4096", names[5], bar);
        break;
    case 6:
        bench_decision(settings, bar);
        break;
    default:
        bench_plan_run(settings, bar);
    }
}

static bool reaches(const struct bench_bar *bar, double limit)
{
    if (bar->larger_is_better) return (bar->by_interval ? bar->high : bar->ratio) >= limit;
    return (bar->by_interval ? bar->low : bar->ratio) <= limit;
}

static void print(const struct bench_bar *bar)
{
    if (!bar->is_measured) {
        printf("%-13s %s\n%13s not measured: %s\n", bar->name, bar->what, "", bar->note);
        return;
    }
    const char *verdict = !reaches(bar, bar->must) ? "DOES NOT HOLD"
                          : reaches(bar, bar->aim) ? "holds, aim met"
                                                   : "holds";
    printf("%-13s %s\n", bar->name, bar->what);
    printf("%13s %.3f [%.3f, %.3f]  must %s %.2f, aim %.2f: %s\n", "", bar->ratio, bar->low, bar->high,
           bar->larger_is_better ? ">=" : "<=", bar->must, bar->aim, verdict);
    printf("%13s %s %.1f us, %.1f %s; peer %.1f us, %.1f %s (%s; %d rounds)\n", "", bar->config, bar->mine_us,
           bar->mine_rate, bar->rate_unit, bar->peer_us, bar->peer_rate, bar->rate_unit, bar->note,
           bar->rounds);
}

/* Marks the bars that were named; false on an unknown name. */
static bool choose(int count, char **words, bool chosen[BARS])
{
    for (int i = 0; i < BARS; i++)
        chosen[i] = count == 0;
    for (int w = 0; w < count; w++) {
        int i = 0;
        while (i < BARS && strcmp(names[i], words[w]) != 0)
            i++;
        if (i == BARS) {
            fprintf(stderr, "bench_cpu: no bar named '%s'; there are", words[w]);
            for (int j = 0; j < BARS; j++)
                fprintf(stderr, " %s", names[j]);
            fprintf(stderr, "\n");
            return false;
        }
        chosen[i] = true;
    }
    return true;
}

/* Reads the options; *first_word is where the names of bars begin. */
static bool read_options(int argc, char **argv, struct bench_settings *settings, const char **results,
                         int *first_word)
{
    int i = 1;
    for (; i + 1 < argc && strncmp(argv[i], "--", 2) == 0; i += 2) {
        if (strcmp(argv[i], "--threads") == 0)
            settings->threads = atoi(argv[i + 1]);
        else if (strcmp(argv[i], "--rounds") == 0)
            settings->rounds = atoi(argv[i + 1]);
        else if (strcmp(argv[i], "--results") == 0)
            *results = argv[i + 1];
        else if (strcmp(argv[i], "--commit") == 0)
            settings->commit = argv[i + 1];
        else
            break;
    }
    *first_word = i;
    return (i >= argc || strncmp(argv[i], "--", 2) != 0) && settings->threads >= 0 && settings->rounds >= 1 &&
           settings->rounds <= BENCH_ROUNDS_MOST;
}

int main(int argc, char **argv)
{
    struct bench_settings settings = {.rounds = ROUNDS, .backend = "cpu"};
    const char *results = NULL;
    int first_word = 1;
    bool chosen[BARS];
    if (!read_options(argc, argv, &settings, &results, &first_word)) {
        fprintf(stderr,
                "usage: bench_cpu [--threads N] [--rounds 1..%d] [--results DIRECTORY] [--commit TEXT] "
                "[BAR...]\n",
                BENCH_ROUNDS_MOST);
        return FP8R_EXIT_USAGE;
    }
    if (!choose(argc - first_word, argv + first_word, chosen)) return FP8R_EXIT_USAGE;
    fp8r_cpu_facts_read(settings.threads, &settings.facts);
    settings.threads = settings.facts.threads;
    bench_blas_core(&settings.facts, argv);
    char features[128];
    fp8r_cpu_features_format(settings.facts.cpu_features, features, sizeof features);
    printf("%s, %d threads, %s\n", settings.facts.name, (int)settings.threads, features);
    struct bench_bar bars[BARS];
    int count = 0, measured = 0, exit_code = FP8R_EXIT_GOOD;
    for (int i = 0; i < BARS; i++) {
        if (!chosen[i]) continue;
        measure(i, &settings, &bars[count]);
        print(&bars[count]);
        fflush(stdout);
        measured += bars[count].is_measured;
        if (bars[count].is_measured && !reaches(&bars[count], bars[count].must)) exit_code = FP8R_EXIT_FAILED;
        count++;
    }
    if (measured == 0) return FP8R_EXIT_UNMEASURED;
    if (results && !bench_result_write(results, &settings, bars, count, argc, argv))
        return FP8R_EXIT_INTERNAL;
    return exit_code;
}
