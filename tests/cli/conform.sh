# fp8route conform: ours pass; an outside backend passes, or fails for the right reason.
# SPDX-License-Identifier: Apache-2.0
. "$LIB"

# a crash must be one under the sanitizers too, not their report
ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}handle_segv=0:handle_sigbus=0
export ASAN_OPTIONS

expect 0 conform
silent
for row in sm90 cublaslt cuda; do says "^$row +unfit .*runs on CUDA devices only"; done
says '^cpu +passed '
says '^reference +passed '
never failed
expect 0 conform --backend reference --json
says '"schema": "fp8route.conform/1"'
says '"outcome": "passed"'
refuses 2 'no backend is named "nonesuch"' conform --backend nonesuch
refuses 2 'no backend is named "cpu:portable_skinny": it is examined with all its configurations' conform --backend cpu:portable_skinny
expect 4 conform --backend sm90
complains 'sm90 cannot run on this device: runs on CUDA devices only'

refuses 2 'nowhere.so' conform --plugin "$work/nowhere.so"
printf 'no object' >"$work/text.so"
refuses 2 'text.so' conform --plugin "$work/text.so"
expect 0 conform --plugin "$PLUGINS/plugin_none.so"
says '^plain +passed '
never '^cpu'
expect 0 explain 2x8x8 --plugin "$PLUGINS/plugin_none.so"
says '^plain +eligible +loops'
expect 0 run 2x8x8 --plugin "$PLUGINS/plugin_none.so" --backend plain:loops2
says '^verified +yes'
(cd "$PLUGINS" && "$PROGRAM" explain 2x8x8 --plugin plugin_none.so >/dev/null) || fail "a file without a slash"

# breaks FAULT CHECK PATTERN: the check that fails, and what it says
breaks() {
    expect 1 conform --plugin "$PLUGINS/plugin_$1.so" --json
    says "\"failed_check\": \"$2\""
    says "\"text\": \".*$3"
}
breaks dropped_term runs 'elements are wrong, first: out\[0,0,0\] is'
breaks swapped_scales runs 'elements are wrong, first: out\[0,0,0\] is'
breaks missing_element runs 'out\[0,16,15\] was never written'
breaks writes_gap runs 'memory between the rows of out was written'
breaks reads_beyond runs 'it crashed \(signal (11|7)\): memory that is not'
breaks overruns_workspace runs 'it crashed'
breaks refuses_run runs 'supports says yes, but run answers FP8R_ERROR_UNSUPPORTED'
breaks no_reason supports 'reason 0, which is not in the catalogue'
breaks lying_horizon horizon 'promises the same up to M='
breaks lying_class runs 'elements are wrong'
breaks lying_pick pick 'pick names loops, which supports refuses'
breaks shrinking_workspace workspace 'workspace shrinks from 512 bytes to 256 at M=9'
breaks writes_nan runs 'out\[0,0,0\] is -?nan'
breaks changes_input runs 'a was changed'
breaks ends_process runs 'it ended the process'
breaks old_struct contract 'struct_size is not sizeof'
says '"problem": ""'
expect 1 run 5x16x32 --plugin "$PLUGINS/plugin_swapped_scales.so" --backend plain
says '^verified +NO: .*elements are wrong, first: out\[0,0,0\]'
expect 1 run 5x16x32:ldo=20 --plugin "$PLUGINS/plugin_writes_gap.so" --backend plain
says 'memory between the rows of out was written'

# a signal to the program alone ends the examining process, too
PACE_STEADY_US=1500000 "$PROGRAM" conform --backend steady --plugin "$PLUGINS/plugin_pace.so" >"$work/out" 2>"$work/err" &
sleep 0.7
ends_at TERM $! conform
[ ! -s "$work/out" ] || fail "$last: it printed a result"
complains 'interrupted: the same command starts again'
finish
