# bench/gpu/bench_gpu.py without a GPU: see check_bench_gpu.py.
# SPDX-License-Identifier: Apache-2.0
. "$LIB"
command -v python3 >/dev/null || { echo 'skipped: no python3 here'; exit 77; }
PYTHONDONTWRITEBYTECODE=1 python3 "$SCRIPTS/check_bench_gpu.py" "$SCRIPTS/../../bench/gpu" "$work" || fail 'it failed'
finish
