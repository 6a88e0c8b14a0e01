#!/bin/sh
# A cold process computes its first routed product; how long that takes is a bar of `make bench-gpu`. 77 where there is no GPU.
# first_call.sh PROGRAM   SPDX-License-Identifier: Apache-2.0
set -u
out=$("$1" 1x4096x14336:static 2>&1)
code=$?
printf '%s\n' "$out"
case $out in
*"no CUDA-capable device"* | *"driver version is insufficient"*)
    echo "skipped: there is no GPU"
    exit 77
    ;;
esac
exit $code
