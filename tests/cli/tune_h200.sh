# bench/tune_h200: every family goes once to one of the GPUs, with options that tune takes; a failed one is told and costs itself
# only; a GPU that is missing or lost takes no families with it.
# SPDX-License-Identifier: Apache-2.0
. "$LIB"
tune=$SCRIPTS/../../bench/tune_h200

last="bench/tune_h200 --list"
"$tune" --list >"$work/out" 2>"$work/err" || fail 'it does not list'
count=$(wc -l <"$work/out")
[ "$(cut -d' ' -f2 "$work/out" | sort | uniq -d | wc -l)" -eq 0 ] || fail 'a family is listed twice'
[ "$(cut -d' ' -f6 "$work/out" | sort | uniq -d | wc -l)" -eq 0 ] || fail 'two families share a folder'
sed -n 's/^entry Mx/--family /p' "$SCRIPTS/../../routes/h200.routes" | while read -r option family; do
    grep -q -- "^$option $family " "$work/out" || echo "$family"
done >"$work/missing"
[ ! -s "$work/missing" ] || fail "shipped, and not listed: $(tr '\n' ' ' <"$work/missing")"
# what it hands to tune, tune reads: without a GPU it is the device that is missing
while read -r line; do
    # shellcheck disable=SC2086 -- words
    CUDA_VISIBLE_DEVICES='' expect 4 tune --out gpu.routes $line --device cuda:0
done <<LINES
$(sed -n '1p;20p;$p' "$work/out")
LINES

# A program that says what it was asked and then does what the case says: ask has the question, device its GPU.
stub() {
    rm -f "$work/ran"
    {
        printf '#!/bin/sh\nask=$* device=${*##*--device } work=%s\n' "$work"
        echo 'if [ "$1" = tune ]; then echo "${CUDA_VISIBLE_DEVICES-unset} $PWD $ask" >>"$work/ran"; fi'
        echo "$1"
    } >"$work/stub"
    chmod +x "$work/stub"
}
# list CODE WORD...: the script, which must end with this code
list() {
    wanted=$1
    shift
    last="bench/tune_h200 $*"
    PATH=$work:$PATH "$tune" "$@" >"$work/out" 2>"$work/err" </dev/null
    code=$?
    [ "$code" -eq "$wanted" ] || fail "$last: exit code $code, not $wanted"
}
ran() { if [ -e "$work/ran" ]; then wc -l <"$work/ran"; else echo 0; fi; }

stub 'case $ask in *3420*) exit 5 ;; esac'
CUDA_VISIBLE_DEVICES=5,7 list 123 stub there --budget 9s --gpus 2 --routes base.routes
[ "$(ran)" -eq "$count" ] || fail 'not every family ran once'
[ "$(sed 's/.*--device //' "$work/ran" | sort -u | tr '\n' ' ')" = 'cuda:0 cuda:1 ' ] || fail 'not both GPUs were used'
grep -qv "^5,7 $work tune" "$work/ran" && fail 'which GPUs are visible, or the folder, was changed'
[ "$(grep -c -- '--out there/gpu.routes --budget 9s --routes base.routes --family .* --samples there/' "$work/ran")" -eq "$count" ] ||
    fail 'options were not handed on'
complains '^tune_h200: --family 4096x3420.* ended with 5 on cuda:'
stub ''
list 0 stub 'two words'
[ "$(grep -c -- '--samples two words/[0-9]' "$work/ran")" -eq "$count" ] || fail 'a folder with a blank in its name was changed'
list 0 stub 'a@FAMILY@{}%b' --note 'x {} @FAMILY@  y'
[ "$(grep -c -- '--note x {} @FAMILY@  y --family [^ ]* --m [^ ]* --samples a@FAMILY@{}%b/[0-9]' "$work/ran")" -eq "$count" ] ||
    fail 'a folder or an option was taken for a family'

# what no family takes is asked once
stub '[ "$1" = info ] || exit 2'
list 124 stub there --nonsense
[ "$(ran)" -eq 1 ] || fail 'a wrong option was tried with every family'
complains '^tune_h200: it would be the same with every family: no more are begun$'

# a program in this folder, without its path
(cd "$work" && PATH=$PATH "$tune" stub here >out 2>err </dev/null)
[ "$(ran)" -ge 1 ] || fail 'a program of the current folder was not run'

# one that crashes is one that fails
stub 'case $ask in *5376x28672:static*) kill -SEGV $$ ;; *28672x5376:static*) exit 255 ;; esac'
list 123 --gpus=2 stub there
[ "$(ran)" -eq "$count" ] || fail 'a crash ended the list'

# a GPU that is not there, and one that is lost on the way
stub '[ "$device" != cuda:1 ] || { echo "no such device" >&2; exit 4; }'
list 4 stub there --gpus 2
complains '^no such device$'
complains '^tune_h200: cuda:1 cannot be used'
[ "$(ran)" -eq 0 ] || fail 'families were begun without a GPU'
stub '[ "$device" != cuda:1 ] || [ "$1" = info ] && [ ! -e "$work/lost" ] || { touch "$work/lost"; exit 4; }
[ "$1" = info ] || until [ -e "$work/lost" ]; do sleep 0.01; done'
list 124 stub there --gpus 2
complains '^tune_h200: cuda:1 does not answer'
[ "$(grep -c cuda:1 "$work/ran")" -eq 1 ] || fail 'a lost GPU was given more families'

# at a signal no more begin, and those under way finish
stub '[ "$1" = info ] || { until [ -e "$work/go" ]; do sleep 0.01; done; echo "$ask" >>"$work/done"; }'
PATH=$work:$PATH "$tune" stub there --gpus 2 >"$work/out" 2>"$work/err" </dev/null &
script=$! last='bench/tune_h200, at SIGTERM'
until [ "$(ran)" -eq 2 ]; do sleep 0.01; done
kill -TERM "$script"
wait "$script"
touch "$work/go"
until [ "$(cat "$work/done" 2>/dev/null | wc -l)" -eq 2 ]; do sleep 0.01; done
sleep 0.2
[ "$(ran)" -eq 2 ] || fail 'families were begun after the signal'

# what is no use of it says so in a line
stub ''
for words in '' stub '--budget 9s stub there' 'stub there --gpus' 'stub there --gpus 0' 'stub there --gpus -1' 'stub there --gpus 2x' \
    'stub there --gpus 99999999999999999999' \
    'stub there --gpus=' 'echo there' 'missing there' "$work there"; do
    # shellcheck disable=SC2086 -- words
    list 2 $words
    complains '^tune_h200: (usage:|.* is no program$)'
    [ "$(wc -l <"$work/err")" -eq 1 ] || fail "$last: not one line of error"
done
mkdir "$work/few"
for name in sh sort cut tr; do ln -s "$(command -v "$name")" "$work/few/$name"; done
last='bench/tune_h200 without awk'
PATH=$work/few "$tune" "$work/stub" there >"$work/out" 2>"$work/err" && fail 'an empty list is no error'
complains '^tune_h200: the list is empty'
[ "$(ran)" -eq 0 ] || fail "$last: it ran something"
finish
