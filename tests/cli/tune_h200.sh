# bench/tune_h200: every family goes once to one of the GPUs, with options that tune takes, and a failed one is told.
# SPDX-License-Identifier: Apache-2.0
. "$LIB"
tune=$SCRIPTS/../../bench/tune_h200

last="bench/tune_h200 --list"
"$tune" "$PROGRAM" here --list >"$work/out" 2>"$work/err" || fail 'it does not list'
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

printf '#!/bin/sh\necho "${CUDA_VISIBLE_DEVICES-unset} $*" >>"%s/ran"\ncase $* in *3420*) exit 5 ;; esac\n' "$work" >"$work/stub"
chmod +x "$work/stub"
last="bench/tune_h200 --gpus 2"
PATH=$work:$PATH CUDA_VISIBLE_DEVICES=5,7 "$tune" stub there --gpus 2 --budget 9s >"$work/out" 2>"$work/err" && fail 'a failed family is not told'
[ "$(wc -l <"$work/ran")" -eq "$("$tune" "$PROGRAM" here --list | wc -l)" ] || fail 'not every family ran once'
[ "$(sed 's/.*--device //' "$work/ran" | sort -u | tr '\n' ' ')" = 'cuda:0 cuda:1 ' ] || fail 'not both GPUs were used'
grep -qv '^5,7 ' "$work/ran" && fail 'which GPUs are visible was changed'
[ "$(grep -c -- '--out gpu.routes --budget 9s --family' "$work/ran")" -eq "$(wc -l <"$work/ran")" ] || fail 'options were not handed on'
finish
