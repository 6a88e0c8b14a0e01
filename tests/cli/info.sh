# fp8route info and explain: every row of the list, each with its reason.
# SPDX-License-Identifier: Apache-2.0
. "$LIB"

expect 0 info
silent
says 'none in use: fp8route tune --quick --family NxK measures some'
for row in sm90 cublaslt cuda; do says "^$row +no .*runs on CUDA devices only"; done
for row in cpu reference; do says "^$row +yes "; done
says '^blas +(yes|no) '
says 'reference:double'
[ "$(sed -n '/^Configurations/,/^Routes/p' "$work/out" | wc -L)" -le 100 ] || fail 'a line of configurations is longer than 100'
sed -n '/^Configurations/,/^Routes/p' "$work/out" >"$work/configurations"
[ "$(grep -c '^$' "$work/configurations")" -eq 1 ] || fail 'an empty line among the configurations'
grep -Eq '(sm90|cublaslt|cuda):' "$work/configurations" && fail 'configurations of what cannot be used here'
[ "$(grep -c '^  cpu:' "$work/out")" -gt 1 ] || fail 'one line of configurations, not several'
says 'id: [0-9a-f]{64}'
says 'FP8ROUTE_DENY'
says "the user's file: $HOME/.cache/fp8route/cpu-[0-9a-f]{16}.routes"
# where the environment names no place, what is wrong with it
XDG_CACHE_HOME=here expect 0 info
says "the user's file: none, XDG_CACHE_HOME is not an absolute path"
HOME='' expect 0 info
says "the user's file: none, HOME is not set"
for verb in 'tune --family 8x8 --m 1' 'tune --quick --family 8x8 --m 1' 'table show'; do
    # shellcheck disable=SC2086 -- words
    XDG_CACHE_HOME=here refuses 2 'XDG_CACHE_HOME is not an absolute path' $verb
done
# the demonstration keeps its own cache, wherever its folder is said to be
last="scripts/demo"
for missing in cuda nothing; do # a machine without a GPU, and one with
    printf '#!/bin/sh\ncase $* in *%s*) exit 4 ;; info*) exec "$PROGRAM" info ;; esac\n' $missing >"$work/stub"
    chmod +x "$work/stub"
    mkdir -p "$work/demonstration"
    echo mine >"$work/demonstration/notes"
    (cd "$work" && sh "$SCRIPTS/../../scripts/demo" ./stub demonstration >"$work/out" 2>"$work/err") || fail 'the demonstration failed'
    says "the user's file: $work/demonstration/fp8route/"
    [ -e "$work/demonstration/notes" ] || fail 'the demonstration took away a file that it did not make'
    mkdir -p "$work/cache/fp8route"
    echo mine >"$work/cache/fp8route/user.routes"
    (cd "$work" && sh "$SCRIPTS/../../scripts/demo" ./stub cache >/dev/null 2>"$work/err") && fail 'the demonstration took a folder of others'
    [ -e "$work/cache/fp8route/user.routes" ] || fail "the demonstration took away a user's routes"
    tail -n 1 "$work/out" | grep -q "$work/demonstration/report.html in a browser" || fail 'the demonstration does not say what to open'
    # what it explains is tuned first: the budget may end before the others
    family=$(sed -n 's/.* explain 1x\([0-9x]*\) .*/\1/p' "$work/out")
    says " tune .*--family ${family:-?} "
done
expect 0 info --json
says '"schema": "fp8route.info/1"'
says '"reason_name": "DEVICE_KIND"'
says '"identity": "features='
FP8ROUTE_DENY=cpu expect 0 info
says '^cpu +no .*denied by FP8ROUTE_DENY'
never '^ *cpu:'
expect 0 info --threads 1
says ': 1 thread, '

expect 0 explain 1x4096x14336
silent
for row in sm90 cublaslt cuda; do says "^$row +refused .*runs on CUDA devices only"; done
says '^cpu +chosen '
says '^reference +eligible +double'
says '^source: default$'
says "^note: .*tune --quick --family 'Mx4096x14336' measures it in about [0-9]+ to [0-9]+ s"
expect 0 explain 1x64x64
says "^note: .*tune --quick --family 'Mx64x64' measures it in about [0-9]+ s$"
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

# variables that do nothing as they stand say so: one line each, whatever is in them
one_line() { [ "$(wc -l <"$work/err")" -eq 1 ] || fail "$last: not one line of warning"; }
FP8ROUTE_DENY=nosuch expect 0 info
complains 'FP8ROUTE_DENY: no backend is named "nosuch": there are .*cpu'
one_line
FP8ROUTE_DENY=' cpu,reference,,' expect 0 info
complains 'FP8ROUTE_DENY: no backend is named " cpu"'
one_line
says '^cpu +yes'
says '^reference +no .*denied'
FP8ROUTE_DENY=one,cpu,two expect 0 info
[ "$(grep -c 'no backend is named "\(one\|two\)"' "$work/err")" -eq 2 ] || fail 'not every unknown name is warned about'
FP8ROUTE_DENY=cpu, expect 0 info
silent
FP8ROUTE_BACKEND=$(printf 'a\nb\033[31m\302\2331mc') expect 0 info
complains 'FP8ROUTE_BACKEND is ignored: no backend is named "a.b.\[31m..1mc"'
one_line
grep -q "$(printf '\033')" "$work/err" && fail 'a variable drives the terminal'
FP8ROUTE_THREADS=$(printf '1\n2') expect 0 info
complains 'FP8ROUTE_THREADS=1.2 is ignored'
one_line

# the user's file that is there and cannot be used: products say nothing of it, info says why
XDG_CACHE_HOME=$work/cache expect 0 tune --quick --family 16x16 --m 1
own=$(find "$work/cache/fp8route" -name 'cpu-*.routes')
XDG_CACHE_HOME=$work/cache expect 0 info
never 'not in use: '
cp "$own" "$work/good.routes"
head -c 300 "$work/good.routes" >"$own"
XDG_CACHE_HOME=$work/cache expect 0 info
says "not in use: $own, line [0-9]*: "
silent
sed 's/threads=[0-9]*/threads=97/' "$work/good.routes" >"$own"
XDG_CACHE_HOME=$work/cache expect 0 info
says 'not in use: it was measured with threads=97'

# libraries that are none, and pipes: left out with a line, and never waited for
mkfifo "$work/pipe"
for file in /dev/null "$work/pipe" "$work/nowhere.so"; do
    FP8ROUTE_BLAS=$file
    export FP8ROUTE_BLAS
    last="FP8ROUTE_BLAS=$file info"
    timeout 20 "$PROGRAM" info >"$work/out" 2>"$work/err" || fail "$last: it waits or fails"
    complains "backend blas is left out: it needs FP8ROUTE_BLAS=$file"
    one_line
    says '^blas +no '
done
FP8ROUTE_DENY=blas expect 0 info
silent
FP8ROUTE_BLAS=/$(printf '%0600d' 0) expect 0 info
complains 'FP8ROUTE_BLAS is ignored: a path has at most 511 bytes'
one_line
unset FP8ROUTE_BLAS
FP8ROUTE_CUBLASLT="$work/pipe" timeout 20 "$PROGRAM" info >"$work/out" 2>"$work/err" || fail 'it waits for a cuBLASLt'
FP8ROUTE_TRACE="$work/pipe" timeout 20 "$PROGRAM" run 1x64x64 >"$work/out" 2>"$work/err" || fail 'it waits for a trace'
complains 'FP8ROUTE_TRACE=.*/pipe is not a regular file: nothing is traced'
one_line
FP8ROUTE_TRACE=/dev/null expect 0 run 1x64x64
silent
FP8ROUTE_TRACE="$work/trace.jsonl" expect 0 run 1x64x64
silent
[ -s "$work/trace.jsonl" ] || fail 'nothing was traced'
finish
