/* Decode against torch: its fp32 mm of the same shape, M = 1, weights rotating. A Python of its own does one
 * pass a line that it reads and answers with nanoseconds, so that passes alternate.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/sizes.h"
#include "workload.h"

enum { N = 4096, K = 4096 };

static const char program[] = "import sys, time\n"
                              "try:\n"
                              "    import torch\n"
                              "except Exception as error:\n"
                              "    print('no torch:', error, flush=True)\n"
                              "    raise SystemExit(1)\n"
                              "n, k, threads, copies = map(int, sys.argv[1:])\n"
                              "torch.set_num_threads(threads)\n"
                              "a = torch.randn(1, k)\n"
                              "first = torch.randn(n, k)\n"
                              "weights = [first.clone().t() for _ in range(copies)]\n"
                              "out = torch.empty(1, n)\n"
                              "print('torch', torch.__version__, flush=True)\n"
                              "for line in sys.stdin:\n"
                              "    start = time.perf_counter_ns()\n"
                              "    for w in weights:\n"
                              "        torch.mm(a, w, out=out)\n"
                              "    print(time.perf_counter_ns() - start, flush=True)\n";

struct peer {
    pid_t process;
    FILE *to, *from;
};

static void run_python(int in, int out, int32_t threads, int64_t copies)
{
    char numbers[4][24];
    snprintf(numbers[0], sizeof numbers[0], "%d", N);
    snprintf(numbers[1], sizeof numbers[1], "%d", K);
    snprintf(numbers[2], sizeof numbers[2], "%d", (int)threads);
    snprintf(numbers[3], sizeof numbers[3], "%lld", (long long)copies);
    dup2(in, STDIN_FILENO);
    dup2(out, STDOUT_FILENO);
    setenv("OMP_WAIT_POLICY", "passive", 1); /* its threads must not spin while ours are measured */
    execlp("python3", "python3", "-c", program, numbers[0], numbers[1], numbers[2], numbers[3], (char *)NULL);
    _exit(127);
}

static bool peer_start(struct peer *peer, int32_t threads, int64_t copies)
{
    int to[2], from[2];
    if (pipe(to) != 0) return false;
    if (pipe(from) != 0) {
        close(to[0]);
        close(to[1]);
        return false;
    }
    peer->process = fork();
    if (peer->process == 0) {
        close(to[1]);
        close(from[0]);
        run_python(to[0], from[1], threads, copies);
    }
    close(to[0]);
    close(from[1]);
    peer->to = fdopen(to[1], "w");
    peer->from = fdopen(from[0], "r");
    return peer->process > 0 && peer->to && peer->from;
}

static void peer_stop(struct peer *peer)
{
    if (peer->to) fclose(peer->to);
    if (peer->from) fclose(peer->from);
    if (peer->process > 0) waitpid(peer->process, NULL, 0);
}

static int64_t peer_pass(void *argument)
{
    struct peer *peer = argument;
    char line[64];
    if (fputs("go\n", peer->to) < 0 || fflush(peer->to) != 0 || !fgets(line, sizeof line, peer->from))
        return -1;
    return strtoll(line, NULL, 10);
}

static void measure(const struct bench_settings *settings, struct bench_workload *workload,
                    struct bench_bar *bar)
{
    /* A pass of torch reads as many bytes as all our copies hold, so each side's pass finds its own weights
     * cold. */
    int64_t copies = fp8r_size_min(workload->copies, workload->copies / (int64_t)sizeof(float) + 2);
    struct peer peer = {0};
    char banner[160] = "";
    if (peer_start(&peer, settings->threads, copies) && fgets(banner, sizeof banner, peer.from) &&
        strncmp(banner, "torch", 5) == 0) {
        banner[strcspn(banner, "\n")] = '\0';
        snprintf(bar->note, sizeof bar->note, "%s", banner);
        workload->copies = copies; /* as many products in a pass */
        if (!bench_pair(bar, settings->rounds, bench_workload_pass, workload, peer_pass, &peer,
                        (double)copies))
            snprintf(bar->note, sizeof bar->note, "the Python process ended early");
    } else {
        snprintf(bar->note, sizeof bar->note, "needs a python3 with torch");
    }
    peer_stop(&peer);
    if (bar->is_measured) {
        bar->mine_rate = (double)workload->copy_bytes / bar->mine_us / 1e3;
        bar->peer_rate = (double)workload->copy_bytes * (double)sizeof(float) / bar->peer_us / 1e3;
    }
}

void bench_torch(const struct bench_settings *settings, struct bench_bar *bar)
{
    struct bench_workload workload;
    *bar = (struct bench_bar){.name = "decode-torch", .must = 0.5, .aim = 0.3, .rate_unit = "GB/s"};
    snprintf(bar->what, sizeof bar->what, "M=1, N=%d, K=%d, cold: time / fp32 mm of torch", N, K);
    if (!bench_workload_make(settings, "1x4096x4096", 0, &workload, bar)) return;
    measure(settings, &workload, bar);
    bench_workload_drop(&workload);
}
