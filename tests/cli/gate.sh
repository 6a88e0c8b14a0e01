# fp8route gate: verdicts by backends of set speed, what is measured first, files, exit codes.
# SPDX-License-Identifier: Apache-2.0
. "$LIB"
. "$SCRIPTS/pace.sh"

# what cannot be gated is refused before anything is measured
routes "$work/one.routes" steady rival 1
refuses 2 'something is missing|ROUTES' gate
refuses 2 '--share is "2"' gate "$work/one.routes" --share 2
refuses 2 '--shard is "3/2"' gate "$work/one.routes" --shard 3/2
refuses 2 '--shard says nothing to gate --unseen' gate "$work/one.routes" --shard 1/2 --unseen 2
refuses 2 '--share says nothing to gate --unseen' gate "$work/one.routes" --share 0.5 --unseen 2
refuses 2 '--family says nothing to gate --unseen' gate "$work/one.routes" --family 16x16 --unseen 2
refuses 2 '--family Mx8x8: the file has no such entry' gate "$work/one.routes" --plugin "$pace" --family 8x8 \
    --samples "$work/refused" --markdown "$work/refused.md"
if [ -e "$work/refused" ] || [ -e "$work/refused.md" ]; then fail 'a refused gate left files'; fi
refuses 2 '--markdown names the route file itself' gate "$work/one.routes" --plugin "$pace" --markdown "$work/./one.routes"
grep -q '^fp8route-routes' "$work/one.routes" || fail 'the route file is gone'
refuses 5 '--markdown: .*nowhere' gate "$work/one.routes" --plugin "$pace" --markdown "$work/nowhere/sum.md" --samples "$work/refused"
[ ! -e "$work/refused" ] || fail 'a gate without a place for its summary left samples'
mkdir "$work/junk" && echo junk >"$work/junk/x.jsonl" && echo old >"$work/old.md"
refuses 5 'x.jsonl' gate "$work/one.routes" --plugin "$pace" --samples "$work/junk" --markdown "$work/new.md"
refuses 5 'x.jsonl' gate "$work/one.routes" --plugin "$pace" --samples "$work/junk" --markdown "$work/old.md"
[ ! -e "$work/new.md" ] && [ "$(cat "$work/old.md")" = old ] || fail 'a gate without a place for its samples wrote a summary'
refuses 2 '--margin is "0"' gate "$work/one.routes" --margin 0
refuses 2 '--unseen' gate "$work/one.routes" --unseen 0
refuses 2 '--unseen is 10001: it must be at most 10000' gate "$work/one.routes" --unseen 10001
refuses 2 '--unseen is 9223372036854775807: ' gate "$work/one.routes" --unseen 9223372036854775807
refuses 2 '--budget soon' gate "$work/one.routes" --budget soon
refuses 2 '--routes is not taken' gate "$work/one.routes" --routes "$work/one.routes"
refuses 5 '--markdown: .*nowhere' gate "$work/one.routes" --markdown "$work/nowhere/sum.md" --plugin "$pace"
refuses 5 'nowhere' gate "$work/nowhere.routes"
sed 's/threads=[0-9]*/threads=97/' "$work/one.routes" >"$work/foreign.routes"
refuses 5 'not of this machine: it was measured with threads=97' gate "$work/foreign.routes" --plugin "$pace"

# the chosen one is the faster: fine at every M, and every sample is kept
PACE_STEADY_US=300 PACE_RIVAL_US=420
export PACE_STEADY_US PACE_RIVAL_US
routes "$work/three.routes" steady rival 9
expect 0 gate "$work/three.routes" --plugin "$pace" --samples "$work/samples" --markdown "$work/sum.md"
says '^Mx16x16 +1\.\.9 +steady:loops +fine '
says '^1 of 1 route of .*: 1 fine, 0 regressions'
grep -q '^### fp8route gate: the routes hold$' "$work/sum.md" || fail "the summary has no headline"
grep -q '^| fine | `Mx16x16` | 1\.\.9 | `steady:loops` | `rival:loops`, runner-up, at M=[139] | -[23]' "$work/sum.md" ||
    fail "the summary has no row"
[ "$(grep -c '"phase":"gate"' "$work/samples/gate.jsonl")" -ge 180 ] || fail "not every sample is in the folder"
expect 0 gate "$work/three.routes" --plugin "$pace" --json
says "\"sha256\": \"$(sha256sum "$work/three.routes" | cut -d' ' -f1)\""
says '"schema": "fp8route.gate/1"'
says '"fine": 1'
[ "$(grep -c '"m": ' "$work/out")" -eq 3 ] || fail "not at both borders and in the middle"

# the runner-up is faster now: a regression, the first row, whatever else there is
PACE_STEADY_US=420 PACE_RIVAL_US=300
{
    sed '/^end/d' "$work/one.routes"
    printf 'entry Mx24x16\n  m=1..1 backend=rival config=loops rev=1 median_us=300 gain=1.05..1.15 verdict=clear\n\nend entries=2\n'
} >"$work/two.routes"
expect 1 gate "$work/two.routes" --plugin "$pace" --markdown "$work/sum.md"
says '^Mx16x16 +1\.\.1 +steady:loops +regression +1 +rival:loops \(runner-up\) +\+[34]'
says '^Mx24x16 +1\.\.1 +rival:loops +fine +1 +steady:loops \(default\) +-[23].* clear$'
never ' a tie | ties '
says '1 fine, 1 regression, 0 inconclusive'
[ "$(grep -n regression "$work/out" | head -1 | cut -d: -f1)" -lt "$(grep -n 'fine  ' "$work/out" | head -1 | cut -d: -f1)" ] ||
    fail "the worst is not first"
grep -q '^### fp8route gate: routes do not hold$' "$work/sum.md" || fail "the summary does not say that routes do not hold"
grep -q '^| \*\*regression\*\* | `Mx16x16`.* | clear |$' "$work/sum.md" || fail "the summary has no regression"

# a regression of what the tune left open is told from one of what it had decided
sed 's/verdict=clear/verdict=tie/' "$work/one.routes" >"$work/tie.routes"
expect 1 gate "$work/tie.routes" --plugin "$pace"
says '^Mx16x16 +1\.\.1 +steady:loops +regression .* tie$'
says '^1 of the regressions is a tie in the file, .*: tune that family anew$'
expect 1 gate "$work/tie.routes" --plugin "$pace" --json
says '"in_file": "tie"'

# of one family, of one shard: nothing is said of the rest
expect 0 gate "$work/two.routes" --plugin "$pace" --family 24x16
says '^1 of 2 routes .*: 1 fine, 0 regressions'
never 'Mx16x16'
expect 1 gate "$work/two.routes" --plugin "$pace" --shard 1/2 --samples "$work/shards"
says '^1 of 2 routes .*: 0 fine, 1 regression'
expect 0 gate "$work/two.routes" --plugin "$pace" --shard 2/2 --samples "$work/shards"
says '^1 of 2 routes .*: 1 fine, 0 regressions'
[ "$(ls "$work/shards")" = "$(printf 'gate-1-of-2.jsonl\ngate-2-of-2.jsonl')" ] || fail "a shard has no file of its own"
expect 4 gate "$work/two.routes" --plugin "$pace" --shard 3/3
says '^0 of 2 routes'
complains 'nothing was measured: shard 3 of 3 has no family, 2 are dealt out'

# a wider margin lets it pass
expect 0 gate "$work/one.routes" --plugin "$pace" --margin 60%

# stale routes first: of a share of one, it is the stale one
sed 's/^\(  m=1\.\.1 backend=rival.*\)rev=1/\1rev=0/' "$work/two.routes" >"$work/stale.routes"
for seed in 1 2 3; do
    expect 0 gate "$work/stale.routes" --plugin "$pace" --share 0.1 --seed "$seed"
    says '^Mx24x16 +1\.\.1 +rival:loops \(stale\) +fine'
    says '^1 of 2 routes'
done

# a backend that is not here any more: that route could not be measured
sed 's/backend=steady/backend=quantum/' "$work/two.routes" >"$work/missing.routes"
expect 4 gate "$work/missing.routes" --plugin "$pace"
says '^Mx16x16 +1\.\.1 +quantum:loops +unmeasured'
says 'there is no backend quantum here: .*one that Python or another program registers is there only in that program'
complains '^fp8route gate: 1 route of .* could not be measured here, 0 were left'

# a summary or samples that do not arrive are said, whatever the verdict is
if [ -w /dev/full ]; then
    expect 5 gate "$work/one.routes" --plugin "$pace" --markdown /dev/full
    says '1 regression'
    complains '^fp8route gate: --markdown: /dev/full cannot be written: No space left'
    expect 5 gate "$work/missing.routes" --plugin "$pace" --markdown /dev/full
    complains 'could not be measured here, .*; --markdown: /dev/full cannot be written'
fi
echo text >"$work/no_folder"
refuses 5 'no_folder.*: Not a directory' gate "$work/one.routes" --plugin "$pace" --samples "$work/no_folder"
refuses 5 'no_folder/in cannot be made: Not a directory' gate "$work/one.routes" --plugin "$pace" --samples "$work/no_folder/in"

# a wrong result is a failure, whoever is faster
PACE_STEADY_US=300 PACE_RIVAL_US=200 PACE_FAULT=wrong expect 1 gate "$work/two.routes" --plugin "$pace"
says '^Mx24x16 +1\.\.1 +rival:loops +regression'
says 'M=1: wrong result'
complains 'rival:loops is wrong and left out'

# nothing fits into the budget
refuses_budget() {
    expect 4 gate "$work/two.routes" --plugin "$pace" --budget 0.000001
    says '2 left by the budget'
    complains '2 were left by the budget'
}
refuses_budget

# interrupted: no verdict, the samples are kept
PACE_STEADY_US=20000 PACE_RIVAL_US=20000
rm -rf "$work/samples"
"$PROGRAM" gate "$work/three.routes" --plugin "$pace" --samples "$work/samples" >"$work/out" 2>"$work/err" &
pid=$!
tries=0
until grep -q M=1 "$work/err" || [ "$tries" -ge 100 ]; do
    sleep 0.1
    tries=$((tries + 1))
done
sleep 0.5
ends_at INT "$pid" gate
complains 'interrupted: no verdict'
grep -q '"record":"run"' "$work/samples/gate.jsonl" || fail "the samples are gone"

# random problems: what the report reads
unset FP8ROUTE_DENY
expect_one_of() {
    "$PROGRAM" "$@" >"$work/out" 2>"$work/err" </dev/null
    code=$? last="fp8route $*"
    [ "$code" -eq 0 ] || [ "$code" -eq 1 ] || fail "$last: exit code $code"
}
"$PROGRAM" tune --quick --family 512x512 --m 1,8 --out "$work/cpu.routes" >/dev/null 2>&1
expect_one_of gate "$work/cpu.routes" --unseen 2 --budget 6s --json --seed 5 --markdown "$work/sum.md"
for key in counted mean_regret worst_regret worst_low above_margin drawn_again; do says "\"$key\": "; done
says '"text": "Seed 5; N and K log-uniform 512\.\.32768.* drawn again\. Candidates'
grep -q 'on unseen problems' "$work/sum.md" || fail "no summary of unseen problems"
grep -q '^| `[0-9]*x[0-9]*x[0-9]*` | `[a-z]*:' "$work/sum.md" || fail "no row of an unseen problem"
cp "$work/out" "$work/unseen.json"
grep -q 'above 2 %' "$work/sum.md" || fail "unseen problems have another margin than 2 %"
"$PROGRAM" tune --family 64x64 --m 1,9 --samples "$work/tuned" --out "$work/tuned.routes" --budget 30s >/dev/null 2>&1
expect 0 report "$work/tuned" --regret "$work/unseen.json" --out "$work/page.html"
grep -q 'Seed 5; N and K' "$work/page.html" || fail "the page has no regret"

# of a gate's problems those count that the tune measured, and the others are counted: here all, whatever the gate says
"$PROGRAM" gate "$work/cpu.routes" --samples "$work/gated" --margin 90% >/dev/null 2>&1
expect 0 table build "$work/tuned" "$work/gated" --into "$work/tuned.routes"
says '^[1-9][0-9]* problems? of a gate or an audit (was|were) not measured by a tune and do(es)? not count: tune at that M$'
finish
