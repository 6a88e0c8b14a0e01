# What stands where a file to read should: a pipe nobody writes to, a device, a folder. One line at once, never a wait.
# SPDX-License-Identifier: Apache-2.0
. "$LIB"
command -v mkfifo >/dev/null || { echo 'skipped: no mkfifo here'; exit 77; }
mkdir folder && mkfifo pipe.jsonl folder/x.jsonl || exit 1

# waits_not CODE PATTERN WORD...: as refuses, within 20 seconds.
waits_not() {
    code_wanted=$1 pattern=$2
    shift 2
    last="fp8route $*"
    timeout 20 "$PROGRAM" "$@" >"$work/out" 2>"$work/err" </dev/null
    code=$?
    [ "$code" -ne 124 ] || fail "$last: it waits at a pipe"
    [ "$code" -eq "$code_wanted" ] || fail "$last: exit code $code, not $code_wanted"
    [ "$(wc -l <"$work/err")" -eq 1 ] || fail "$last: not one line of error"
    complains "$pattern"
}

for file in pipe.jsonl /dev/zero; do
    said="$file:? .*not a regular file"
    waits_not 5 "$said" report "$file" --out page.html
    waits_not 5 "$said" fit --samples "$file"
    waits_not 5 "$said" table build "$file"
    waits_not 5 "$said" table check "$file"
    waits_not 5 "$said" trace summary "$file"
    waits_not 5 "$said" tune --quick --trace "$file"
    waits_not 5 "$said" tune --quick --cases "$file"
    waits_not 5 "$said" audit --picks "$file"
    waits_not 5 "$said" audit --rule 'm > 1' --then cpu --else blas --offline --samples "$file"
    waits_not 5 "$said" bench --cases "$file"
    waits_not 5 "$said" shapes --hf-config "$file"
    waits_not 5 "$said" run 1x64x64 --weights "$file:x"
    waits_not 5 "$said" gate "$file"
    waits_not 5 "$said" explain 1x64x64 --routes "$file"
    waits_not 2 "--plugin: .*$file is not a regular file" info --plugin "$file"
done
for verb in 'table build' 'fit --samples' 'tune --family 64x64 --samples'; do
    waits_not 5 'folder/x.jsonl is not a regular file' $verb folder
done
waits_not 5 'not a regular file' report folder/x.jsonl --out page.html
if command -v python3 >/dev/null; then
    python3 "$SCRIPTS/make_samples.py" 2 64 >one.jsonl
    waits_not 5 'pipe.jsonl is not a regular file' report one.jsonl --regret pipe.jsonl --out page.html
fi
[ ! -e page.html ] || fail "a page was made of nothing"
finish
