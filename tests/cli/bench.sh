# fp8route bench: every row that can run, marked and timed.
# SPDX-License-Identifier: Apache-2.0
. "$LIB"

refuses 2 'nothing to measure' bench
refuses 2 'position' bench 1xx1
refuses 2 'multiplies nothing' bench 0x8x8
refuses 2 '--seconds is "-1"|needs a value' bench 1x8x8 --seconds -1
expect 0 bench 3x32x48 1x16x16:fp16:bias --seconds 0.02
says '^3x32x48 +cpu:'
says '^3x32x48 +reference:double +[0-9.]+ us'
says '^1x16x16:fp16:bias +.* chosen$'
[ "$(grep -c chosen "$work/out")" -eq 2 ] || fail "not one row chosen a problem"
printf '2x8x8\n# nothing\n3x8x8\n' >"$work/cases"
expect 0 bench --cases "$work/cases" --seconds 0.01 --json
says '"schema": "fp8route.bench/1"'
says '"problem": "3x8x8"'
says '"standing": "measured"'
expect 1 bench 2x16x16 --seconds 0.01 --plugin "$PLUGINS/plugin_swapped_scales.so"
says 'plain:loops .*must be'
FP8ROUTE_DENY=cpu,blas,reference refuses 4 'no backend can run' bench 2x16x16
finish
