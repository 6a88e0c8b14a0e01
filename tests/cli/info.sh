# fp8route info and explain: every row of the list, each with its reason.
# SPDX-License-Identifier: Apache-2.0
. "$LIB"

expect 0 info
silent
for row in sm90 cublaslt cuda; do says "^$row +no .*runs on CUDA devices only"; done
for row in cpu reference; do says "^$row +yes "; done
says '^blas +(yes|no) '
says 'reference:double'
says 'id: [0-9a-f]{64}'
says 'FP8ROUTE_DENY'
says "the user's file: $HOME/.cache/fp8route/cpu-[0-9a-f]{16}.routes"
expect 0 info --json
says '"schema": "fp8route.info/1"'
says '"reason_name": "DEVICE_KIND"'
says '"identity": "features='
FP8ROUTE_DENY=cpu expect 0 info
says '^cpu +no .*denied by FP8ROUTE_DENY'
expect 0 info --threads 1
says ': 1 thread, '

expect 0 explain 1x4096x14336
silent
for row in sm90 cublaslt cuda; do says "^$row +refused .*runs on CUDA devices only"; done
says '^cpu +chosen '
says '^reference +eligible +double'
says '^source: default$'
says "^note: .*tune --quick --family 'Mx4096x14336' measures it in about [0-9]+ s"
expect 0 explain 512x4096x4096 --json
says '"schema": "fp8route.explain/1"'
for row in sm90 cublaslt cuda cpu blas reference; do says "\"backend\": \"$row\""; done
[ "$(grep -c '"verdict"' "$work/out")" -eq 6 ] || fail "not six rows"
for field in config numerics reason reason_name sentence have need median_us gain_low gain_high; do
    [ "$(grep -c "\"$field\": " "$work/out")" -eq 6 ] || fail "$field is not in every row"
done
refuses 2 'position 1: expected' explain MxNxK

FP8ROUTE_BACKEND=reference expect 0 explain 4x64x64
says '^reference +chosen '
says '^source: forced'
FP8ROUTE_DENY=cpu expect 0 explain 4x64x64
says '^cpu +refused .*denied by FP8ROUTE_DENY'
FP8ROUTE_DENY=cpu,blas expect 0 explain 4x64x64
says '^source: reference'
FP8ROUTE_DENY=cpu,blas,reference expect 0 explain 4x64x64
says '^source: none'
says '^note: +not measured on this machine$'
FP8ROUTE_BACKEND=nonesuch expect 0 explain 4x64x64
complains 'FP8ROUTE_BACKEND is ignored: no backend is named "nonesuch"'
FP8ROUTE_UNROUTED=error FP8ROUTE_DENY=blas expect 0 explain 4x64x64
says '^source: only'
for problem in 0x64x64 4x0x64 4x64x0 '0*4x64x64'; do
    expect 0 explain "$problem"
    says '^source: nothing to do'
    says '^note: +an empty product reaches no backend: '
    never 'eligible|sm90|cuda'
done
expect 0 explain 0x64x64 --json
says '"candidates": \[\]'
finish
