# Options, help, exit codes: what every verb has in common.
# SPDX-License-Identifier: Apache-2.0
. "$LIB"

expect 2
complains 'Usage: fp8route VERB'
expect 0 --help
says '^    explain +say which'
says '^    75 '
never '.{101}'
expect 0 --version
says '^fp8route [0-9]+\.[0-9]+\.[0-9]+$'
refuses 2 'unknown verb "expalin", did you mean explain' expalin
refuses 2 'unknown verb "zzzzzz": ' zzzzzz

# unknown options name the nearest; values are asked for and judged
refuses 2 'unknown option --backnd, did you mean --backend' run 1x1x1 --backnd reference
refuses 2 'unknown option --zzz: ' run 1x1x1 --zzz
refuses 2 'unknown option -j' run 1x1x1 -j
refuses 2 '--backend needs a value: --backend NAME' run 1x1x1 --backend
refuses 2 '--backend needs a value' run 1x1x1 --backend --json
refuses 2 "--rule needs a value: --rule EXPR; one that begins with a dash is written --rule='-m<0'" audit --rule '-m<0'
refuses 2 '--then needs a value: --then BACKEND.:CONFIG.$' audit --then --else x
refuses 2 '--backend has an empty value' run 1x1x1 --backend=
refuses 2 '--backend is given twice' run 1x1x1 --backend reference --backend reference
refuses 2 '--json takes no value' run 1x1x1 --json=yes
refuses 2 '--threads is "0": it must be a whole number of at least 1' run 1x1x1 --threads 0
refuses 2 '--threads is "two"' run 1x1x1 --threads two
refuses 2 '--threads is "99999999999999999999"' run 1x1x1 --threads 99999999999999999999
refuses 2 '--threads is 5000' run 1x1x1 --threads 5000
refuses 2 '--seed is "1e3"' run 1x1x1 --seed 1e3
refuses 2 'something is missing: fp8route run PROBLEM' run
refuses 2 'unexpected "2x2x2": fp8route run PROBLEM' run 1x1x1 2x2x2
refuses 2 'unexpected "foo": fp8route shapes takes options only' shapes foo
refuses 2 '--device is "tpu"' info --device tpu
refuses 2 '--device is "cuda:x"' info --device cuda:x
refuses 2 'problem "1x1", position 4' run 1x1
refuses 2 'position 1: the number is too large, 9223372036854775807 is' run 99999999999999999999x2x3
refuses 2 'position 3: the number is too large' explain 1x9223372036854775808x3
refuses 2 'position 11: the number is too large' explain 1x2x3:lda=99999999999999999999
expect 0 run --backend=reference -- 1x1x1
says '^verified +yes'

# pages: help, --help and the man page say the same things
for verb in $("$PROGRAM" --help | sed -n '/^Verbs/,/^$/s/^    \([a-z]*\) .*/\1/p'); do
    expect 0 "$verb" --help
    silent
    says "^Usage: fp8route $verb "
    cp "$work/out" "$work/help"
    expect 0 help "$verb"
    cmp -s "$work/help" "$work/out" || fail "help $verb is not $verb --help"
    never '.{101}'
    expect 0 help --man "$verb"
    says '^\.TH FP8ROUTE\\-'
    never '([^.]\.|[?!])\.$'
    for option in $(sed -n 's/^    --\([a-z]*\).*/\1/p' "$work/help"); do
        grep -Fq "\\-\\-$option" "$work/out" || fail "the man page of $verb has no --$option"
    done
done
if command -v mandoc >/dev/null; then
    mkdir "$work/pages"
    expect 0 help --pages "$work/pages"
    mandoc -T lint -W warning "$work"/pages/*.1 >"$work/out" || fail "mandoc complains"
    [ "$(find "$work/pages" -name '*.1' | wc -l)" -ge 10 ] || fail "pages are missing"
fi
# every variable that the library reads is on the page
expect 0 help
for name in $(grep -rho '"FP8ROUTE_[A-Z_]*"' "$DATA/../../src" | sort -u | tr -d '"'); do
    says "^    $name "
    [ "$(grep -c "^    $name " "$work/out")" -eq 1 ] || fail "$name is listed twice"
done
expect 0 help --json
says '"schema": "fp8route.help/1"'
expect 0 help run --json
says '"name": "weights"'
never '"name": "tune"'
refuses 2 'json' help --man --json
refuses 5 'no file can be made in' help --pages "$work/nowhere"

# no colour where it is no terminal; output that cannot be written is an error
expect 0 explain 1x64x64
never "$(printf '\033')"
if [ -w /dev/full ]; then
    "$PROGRAM" info >/dev/full 2>"$work/err"
    [ $? -eq 6 ] || fail "a full disk is not noticed"
fi
refuses 4 'CUDA|cuda' info --device cuda
finish

# who reads may have enough: that is no error, in text and in JSON
for words in 'conform --help' 'info' 'info --json' 'explain 1x64x64 --json'; do
    last="fp8route $words, closed"
    # shellcheck disable=SC2086
    { sleep 0.05; "$PROGRAM" $words 2>"$work/err"; echo $? >"$work/code"; } | :
    until [ -s "$work/code" ]; do sleep 0.01; done
    [ "$(cat "$work/code")" -eq 0 ] && [ ! -s "$work/err" ] || fail "$last: exit code $(cat "$work/code"), $(cat "$work/err")"
    rm "$work/code"
done
