# Route files for two outside backends of set speed. Source it after lib.sh.
# SPDX-License-Identifier: Apache-2.0
FP8ROUTE_DENY=cpu,blas
export FP8ROUTE_DENY
pace=$PLUGINS/plugin_pace.so

# A header of this machine, as the tuner writes it.
"$PROGRAM" tune --quick --family 8x8 --m 1 --plugin "$pace" --out "$work/made.routes" >/dev/null 2>&1
# Warm: backends that wait need no gigabyte of operands to rotate through.
sed '/^entry/,$d; s/operands=cold/operands=warm/' "$work/made.routes" >"$work/header"
grep -q '^identity' "$work/header" || fail "no header to work with"

# routes FILE CHOSEN RUNNER_UP LAST [REV]: one family, one segment from M=1 to LAST.
routes() {
    {
        cat "$work/header"
        printf 'entry Mx16x16\n  m=1..%s backend=%s config=loops rev=%s median_us=300 ' "$4" "$2" "${5:-1}"
        printf 'runner_up=%s:loops runner_up_us=330 gain=1.05..1.15 verdict=clear\n\nend entries=1\n' "$3"
    } >"$1"
}
