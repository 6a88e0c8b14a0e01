#!/usr/bin/env python3
"""Samples of a machine whose truth is known: make_samples.py THREADS M_BORDER. `fast` is 30 % faster where m >= M_BORDER and
k >= 2048, `slow` elsewhere (a tie at m = 8, k = 1024), `third` never. SPDX-License-Identifier: Apache-2.0"""
import json
import random
import sys

threads, border = int(sys.argv[1]), int(sys.argv[2])
noise = random.Random(7)
machine = ('fp8route-routes 1\ndevice cpu\nidentity features=avx2 threads=%d llc_bytes=1048576\nfact name "made up"\n'
           "protocol full mode=eager operands=cold\n\nend entries=0\n" % threads)


def put(**record):
    print(json.dumps(record, separators=(",", ":")))


put(record="run", schema="fp8route.samples/1", run="1-%d" % threads, seed=7, margin=0.02, machine=machine)
number = 0
for n, k in (4096, 4096), (4096, 1024), (1024, 2048), (1024, 8192):
    for m in 1, 8, 32, 64, 512:
        put(record="case", case=number, problem="%dx%dx%d" % (m, n, k), weight=1.0, default=1,
            candidates=[{"name": name, "rev": "1"} for name in ("fast:one", "slow:one", "third:one")])
        holds = m >= border and k >= 2048
        times = (100, 130, 260) if holds else (101, 100, 260) if (m, k) == (8, 1024) else (130, 100, 260)
        for phase, rounds, racing in ("grid", 16, 3), ("confirm", 60 if holds else 0, 2):
            for turn in range(rounds):
                for candidate, time in enumerate(times[:racing]):
                    print('{"record":"sample","case":%d,"candidate":%d,"phase":"%s","round":%d,"us":%.6f,"mhz":0}'
                          % (number, candidate, phase, turn, time * (1 + 0.01 * noise.uniform(-1, 1))))
            if phase == "grid":
                put(record="done", case=number, noisy=False)
        number += 1
