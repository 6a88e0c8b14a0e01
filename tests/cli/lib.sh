# What the tests of the program share: run it, look at what it said. Source it with PROGRAM, PLUGINS, DATA in the
# environment. Every test starts without fp8route variables, in an empty folder that is its HOME.
# SPDX-License-Identifier: Apache-2.0
set -u
for name in BACKEND DENY TABLE UNROUTED VERBOSE THREADS TRACE CPU_MASK BLAS CHECK; do unset "FP8ROUTE_$name"; done
unset XDG_CACHE_HOME
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
HOME=$work
export HOME
failures=0

fail() {
    echo "FAILED: $*"
    sed 's/^/    out: /' "$work/out" 2>/dev/null | head -40
    sed 's/^/    err: /' "$work/err" 2>/dev/null | head -40
    failures=$((failures + 1))
}

# expect CODE WORD...: run the program, which must end with this code.
expect() {
    wanted=$1
    shift
    last="fp8route $*"
    "$PROGRAM" "$@" >"$work/out" 2>"$work/err" </dev/null
    code=$?
    [ "$code" -eq "$wanted" ] || fail "$last: exit code $code, not $wanted"
}

# says PATTERN, never PATTERN: of standard output; complains PATTERN: of standard error (extended regular expressions).
says() { grep -Eq -- "$1" "$work/out" || fail "$last: output has no /$1/"; }
never() { ! grep -Eq -- "$1" "$work/out" || fail "$last: output has /$1/"; }
complains() { grep -Eq -- "$1" "$work/err" || fail "$last: error has no /$1/"; }
silent() { [ ! -s "$work/err" ] || fail "$last: standard error is not empty"; }

# refuses CODE PATTERN WORD...: this code, one line on standard error, nothing on standard output.
refuses() {
    code_wanted=$1 pattern=$2
    shift 2
    expect "$code_wanted" "$@"
    [ ! -s "$work/out" ] || fail "$last: standard output is not empty"
    [ "$(wc -l <"$work/err")" -eq 1 ] || fail "$last: not one line of error"
    complains "$pattern"
}

# ends_at SIGNAL PID VERB: a program that runs in the background; the signal must end it with 75, as one that may go on.
ends_at() {
    kill "-$1" "$2" 2>/dev/null
    wait "$2"
    code=$? last="$3, at SIG$1"
    [ "$code" -eq 75 ] || fail "$last: exit code $code, not 75"
}

finish() {
    [ "$failures" -eq 0 ] || { echo "$failures failed"; exit 1; }
    exit 0
}
