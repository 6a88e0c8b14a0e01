# fp8route tune --quick: a route file that explain then uses, merging, refusals, interruption.
# SPDX-License-Identifier: Apache-2.0
. "$LIB"

refuses 2 'nothing to tune' tune --quick
refuses 2 'family "64y64": it must be NxK' tune --quick --family 64y64
refuses 2 'multiplies nothing' tune --quick --family 64x0
refuses 2 '--m is "1,,2"' tune --quick --family 64x64 --m 1,,2
refuses 2 '--m is "0"' tune --quick --family 64x64 --m 0
for option in '--shard 1/4' '--budget 10s' '--samples folder' --warm; do
    # shellcheck disable=SC2086 -- an option and its value
    refuses 2 "^fp8route tune: ${option%% *} says nothing to tune --quick .*: leave out one of the two" tune --quick --family 64x64 $option
done
refuses 5 'nowhere' tune --quick --cases "$work/nowhere"

# where nothing can be written nothing is measured, by either protocol
echo text >"$work/file"
mkdir "$work/a_folder"
for out in "$work/file/x.routes" "$work/a_folder"; do
    refuses 5 "$out.*: (cannot be made|it is there and not a regular file|it is not a regular file)" \
        tune --quick --family 64x64 --m 1 --out "$out"
    refuses 5 "$out.*: (cannot be made|it is there and not a regular file)" \
        tune --family 64x64 --m 1 --samples "$work/unused" --out "$out"
done
[ ! -e "$work/unused" ] || fail 'samples were begun for routes that cannot be written'
[ -z "$(ls "$work/a_folder")" ] || fail 'something was left in the folder'

# the full protocol, for a user who has no cache folder yet
XDG_CACHE_HOME=$work/a/b expect 0 tune --family 16x16 --m 1 --budget 10s
complains '^  0 %  grid: Mx16x16 M=1$'
! grep -Eq 'about 0 s|100 %' "$work/err" || fail "progress is at its end before the end"
[ -n "$(find "$work/a/b/fp8route" -name '*.routes')" ] || fail "no route file in $work/a/b"

# into the user's file; another family keeps the first
expect 0 tune --quick --family 64x64 --m 1,4
says '^Mx64x64 +[0-9]+\.\.[0-9]+ '
file=$(find "$HOME/.cache/fp8route" -name 'cpu-*.routes')
[ -s "$file" ] || fail "no route file in $HOME/.cache"
expect 0 tune --quick --family 48x64 '2*Mx16x16:fp16' --m 2 --json
says '"schema": "fp8route.tune/1"'
says '"family": "2\*Mx16x16:fp16"'
for family in Mx64x64 Mx48x64 '2\*Mx16x16:fp16'; do
    grep -q "^entry $family\$" "$file" || fail "the file has no $family"
done
expect 0 table check "$file"
expect 0 explain 2x64x64
says '^source: route'
says 'us  '
says "^note: +from $file \(quick\)"
expect 0 explain 4x64x64
says '^source: route'
expect 0 explain 5x64x64
never '^source: route'
FP8ROUTE_UNROUTED=error expect 0 run 2x64x64
says '\(route\)'

# a case list: its own M; --out leaves the user's file alone
cp "$file" "$work/before"
printf '3x32x32\n7x32x32 # two of one family\n1x16x48:bias\n' >"$work/cases"
expect 0 tune --quick --cases "$work/cases" --out "$work/out.routes" --seed 3
grep -q '^entry Mx32x32$' "$work/out.routes" || fail "no Mx32x32"
grep -Eq 'm=7\.\.7|m=[0-9]+\.\.7' "$work/out.routes" || fail "the last segment does not end at M=7"
cmp -s "$file" "$work/before" || fail "--out changed the user's file"
expect 0 explain 7x32x32 --routes "$work/out.routes"
says '^source: route'

# what cannot be added to is refused before anything is measured, and stays as it is
printf 'no route file\n' >"$work/bad.routes"
refuses 5 'bad.routes' tune --quick --family 64x64 --m 1 --out "$work/bad.routes"
grep -qx 'no route file' "$work/bad.routes" || fail "a bad file was changed"
sed 's/threads=[0-9]*/threads=97/' "$work/out.routes" >"$work/foreign.routes"
refuses 5 'threads=97' tune --quick --family 64x64 --m 1 --out "$work/foreign.routes"
sed 's/^protocol quick/protocol full/' "$work/out.routes" >"$work/full.routes"
refuses 2 'full measurements of Mx32x32' tune --quick --family 64x64 32x32 --m 1 --out "$work/full.routes"
refuses 5 'directory|written|regular' tune --quick --family 64x64 --m 1 --out "$work"

# a forced backend would hide the default: it is not looked at, and that is said
FP8ROUTE_BACKEND=reference expect 0 tune --quick --family 64x64 --m 1 --out "$work/forced.routes"
complains 'FP8ROUTE_BACKEND: not looked at while tuning'
grep -q 'backend=reference' "$work/forced.routes" && fail "the forced backend was taken"

# where the letter M was put in, what was written is quoted
refuses 2 'family "Mx512": expected a whole number N' tune --quick --family Mx512 --m 1
refuses 2 'family "4096": it must be NxK' tune --quick --family 4096 --m 1
refuses 2 'family ":bias": it must be NxK' tune --quick --family :bias --m 1
refuses 2 'family "2x80:no": expected one of bf16' tune --quick --family 2x80:no --m 1
refuses 2 'problem "16x512x64", position 1: expected the letter M' tune --quick --family 16x512x64 --m 1

# without some backends it would misroute later processes: such routes are kept apart, and so are the full protocol's samples
XDG_CACHE_HOME=$work/untouched FP8ROUTE_DENY=cpu refuses 2 "FP8ROUTE_DENY is set.*: unset it, or name --out FILE$" tune --quick --family 64x64 --m 1
XDG_CACHE_HOME=$work/untouched FP8ROUTE_DENY=cpu refuses 2 'or name --out FILE and --samples DIR$' tune --family 64x64 --m 1 --out "$work/denied.routes"
[ ! -e "$work/untouched" ] || fail "$last: something was written to the user's own"

# an outside backend can win a route, which then needs it
FP8ROUTE_DENY=cpu,blas expect 0 tune --quick --family 8x8 --m 2 --plugin "$PLUGINS/plugin_none.so" --out "$work/plain.routes"
FP8ROUTE_DENY=cpu,blas expect 0 explain 2x8x8 --plugin "$PLUGINS/plugin_none.so" --routes "$work/plain.routes"
says '^plain +(chosen|eligible) +loops'
says '^source: route'
# a wrong one is named, left out, and the tune fails though the others were measured
expect 1 tune --quick --family 16x16 --m 2 --plugin "$PLUGINS/plugin_swapped_scales.so" --out "$work/wrong.routes"
complains 'plain:loops is wrong and left out: out\[0,'
grep -q 'backend=plain' "$work/wrong.routes" && fail "a wrong backend won"
[ -s "$work/wrong.routes" ] || fail "nothing was written"

# interrupted: nothing half-written
"$PROGRAM" tune --quick --family 512x512 768x512 1024x512 640x512 --out "$work/interrupted.routes" >"$work/out" 2>"$work/err" &
pid=$!
sleep 1
ends_at INT "$pid" tune
complains 'interrupted: nothing was written'
[ ! -e "$work/interrupted.routes" ] || fail "a file was written all the same"

# what is measured again, as its times did not hold still, does not take progress back
. "$SCRIPTS/pace.sh"
FP8ROUTE_DENY=cpu,blas,reference # what does not hold still is to be among the fastest
PACE_STEADY_US=4000 PACE_RIVAL_US=1000 PACE_FAULT=uneven expect 0 tune --family 8x8 --m 1,2,3 --warm --plugin "$pace" \
    --samples "$work/uneven" --out "$work/uneven.routes"
complains '^ 33 %  grid, again: Mx8x8 M=[123]'
! grep -q '^  0 %  grid, again' "$work/err" || fail "$last: progress goes back"

# where the least rounds overrun a point's share, what is left is said by what they took, not by the plan
PACE_STEADY_US=100000 PACE_RIVAL_US=100000 expect 0 tune --quick --family 8x8 --m 1,2 --plugin "$pace" --out "$work/long.routes"
complains 'M=1  about 1 s left$'
complains 'M=2  about ([3-9]|[1-9][0-9]+) s left$'

# a default that turned out wrong when nothing was confirmed yet: nothing is, however often the tune goes on, and no route leads there
PACE_STEADY_US=1000 PACE_RIVAL_US=800 expect 0 tune --family 8x8 --m 1 --warm --plugin "$pace" --samples "$work/once" --out "$work/once.routes"
grep -q '"record":"case".*"default_last":[1-9]' "$work/once/all.jsonl" || fail "$last: nothing says up to where the default is the same"
mkdir "$work/late"
sed '/"phase":"confirm"/d; s/"record":"done".*/"record":"dropped","case":0,"candidate":0,"why":"wrong result"}\n{&/' \
    "$work/once/all.jsonl" >"$work/late/all.jsonl"
grep -q '"default":0,' "$work/late/all.jsonl" || fail "the default is another"
PACE_STEADY_US=1000 PACE_RIVAL_US=800 expect 0 tune --family 8x8 --m 1 --warm --plugin "$pace" --samples "$work/late" --out "$work/late.routes"
grep -q '"phase":"confirm"' "$work/late/all.jsonl" && fail "a wrong default is confirmed"
grep -q 'backend=rival' "$work/late.routes" || fail "no route to who is right"

# what is too noisy to say is that for the tune as for who builds from its samples: too few pairs to confirm it, here
mkdir "$work/short"
sed -E '/"phase":"confirm","round":[0-9]{2}/d' "$work/once/all.jsonl" >"$work/short/all.jsonl"
PACE_STEADY_US=1000 PACE_RIVAL_US=800 expect 0 tune --family 8x8 --m 1 --warm --plugin "$pace" --samples "$work/short" \
    --out "$work/short.routes" --budget 0.000001
says "of these families' problems 1 too noisy, kept at the default$"
expect 0 table build "$work/short" --out "$work/built.routes"
says '^1 case is too noisy to say: the default stays$'
finish
