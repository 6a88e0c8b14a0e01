# fp8route audit: a wrong rule is named, a right one passes, picks of anybody, samples already taken.
# SPDX-License-Identifier: Apache-2.0
. "$LIB"
FP8ROUTE_DENY=cpu,blas,reference
export FP8ROUTE_DENY
plugin="$PLUGINS/paced.so"

# words
refuses 2 'one of --rule' audit
refuses 2 'one of --rule' audit --rule 'm > 1' --picks x --then a --else b --family 64x64
refuses 2 '--rule needs --then' audit --rule 'm > 1' --then steady --family 64x64
refuses 2 'rule, character 6' audit --rule 'm >= ' --then steady --else brisk --family 64x64
refuses 2 'rule, character 1' audit --rule 'M >= 1' --then steady --else brisk --family 64x64
refuses 2 '--then is ":x"' audit --rule 'm > 1' --then :x --else brisk --family 64x64
refuses 2 '--else is "a:b:c"' audit --rule 'm > 1' --then x --else a:b:c --family 64x64
refuses 2 'nothing to audit on' audit --rule 'm > 1' --then steady --else brisk
refuses 2 '--margin is "nan"' audit --rule 'm > 1' --then steady --else brisk --family 64x64 --margin nan
refuses 2 '--margin is "2%x"' audit --rule 'm > 1' --then steady --else brisk --family 64x64 --margin 2%x
refuses 2 '--margin is "200%"' audit --rule 'm > 1' --then steady --else brisk --family 64x64 --margin 200%
refuses 2 '--budget' audit --rule 'm > 1' --then steady --else brisk --family 64x64 --budget soon --plugin "$plugin"
refuses 2 'quantum' audit --rule 'm > 1' --then quantum --else brisk --family 64x64 --plugin "$plugin"
refuses 2 'quick' audit --rule 'm > 1' --then brisk:quick --else steady --family 64x64 --plugin "$plugin"
# far too many, and sizes that no number holds, are refused at once
refuses 2 '--random is 10001: it must be at most 10000' audit --rule 'm > 1' --then a --else b --random 10001
refuses 2 '--random is 92233720368547759: ' audit --rule 'm > 1' --then a --else b --random 92233720368547759
refuses 2 '--size-max is 9223372036854775807: ' audit --rule 'm > 1' --then a --else b --random 1 --size-max 9223372036854775807
refuses 2 '--m-max is 2000000000: ' audit --rule 'm > 1' --then a --else b --random 1 --m-max 2000000000
refuses 2 '--offline needs' audit --rule 'm > 1' --then a --else b --offline
refuses 2 '--offline audits' audit --rule 'm > 1' --then a --else b --offline --samples x --family 64x64
refuses 2 'one folder' audit --rule 'm > 1' --then a --else b --samples x y --family 64x64
refuses 2 'division by zero|divi' audit --rule 'k % (m - m) == 0' --then steady --else brisk --family 64x64 --m 2 --plugin "$plugin"

# the truth: brisk below 16 rows, steady from 16 on. Always brisk loses the many; always steady the few.
on='--family 64x48 --m 1,8,16,32 --warm --seed 5'
expect 0 audit --rule 'm >= 16' --then steady --else brisk $on --plugin "$plugin" --samples right
says '0 lost, 0 open, 4 fine'
says '^verdict: no significant loss'
[ -s right/audit.jsonl ] || fail "no samples were kept"
grep -q '"phase":"audit"' right/audit.jsonl || fail "the samples are of another phase"
grep -q '"record":"done"' right/audit.jsonl && fail "an audit finished a case of the tuner's"

expect 1 audit --rule 'm >= 1' --then steady --else brisk $on --plugin "$plugin" --samples wrong --margin 0.02
says '2 lost, 0 open, 2 fine'
says '^(1|8)x64x48 +lost +steady:only +brisk:only +\+[0-9]+\.'
says 'Mx64x48: wrong at M=1\.\.8, up to .* for not taking brisk:only; right again at M=16; the rule has no border'
says '^lost: +50\.0 % of the problems'
expect 1 audit --rule 'm >= 1' --then steady --else brisk $on --plugin "$plugin" --samples wrong --json
says '"schema": "fp8route.audit/1"'
says '"verdict": "lost"'
says '"measured": 0'
can_read_json=$(command -v python3) || echo 'skipped: no python3 here to read the JSON with'
[ -z "$can_read_json" ] || python3 - "$work/out" <<'PY' || fail "the JSON says something else"
import json, sys
found = json.load(open(sys.argv[1]))
machine, = found["machines"]
problems = machine["problems"]
assert [p["verdict"] for p in problems] == ["lost", "lost", "fine", "fine"], problems
assert {p["problem"] for p in problems[:2]} == {"1x64x48", "8x64x48"}
for p in problems[:2]:
    assert 0.02 < p["loss_low"] < p["loss"] < p["loss_high"] and p["loss"] > 0.7 and p["pairs"] >= 30, p
wrong, = machine["wrong_along_m"]
assert (wrong["m_first"], wrong["m_last"], wrong["right_before"], wrong["right_after"]) == (1, 8, None, 16)
assert machine["problem_share_lost"] == 0.5 and 0.3 < machine["time_share_lost"] < 0.8
assert machine["regret_worst"] > 0.7
PY

# a rule with its border at the wrong place
expect 1 audit --rule 'm >= 8' --then steady --else brisk $on --plugin "$plugin" --samples wrong
says '1 lost, 0 open, 3 fine'
says 'wrong at M=8, .*; right at M=1; right again at M=16; the rule changes at M=8'

# what is measured is not measured again; a torn last line is cut off
printf '{"record":"sam' >>right/audit.jsonl
expect 0 audit --rule 'm >= 16' --then steady --else brisk $on --plugin "$plugin" --samples right
says '\(0 problems measured now\)'

# random problems: outside the grid, the same for a seed, with their distribution
expect 1 audit --rule 'm >= 1' --then steady --else brisk --random 3 --size-max 640 --m-max 2 --seed 3 --warm \
    --plugin "$plugin" --samples random --json
says '"from": "random"'
says 'log-uniform 512\.\.640'
says '"lost": 3'

# a wrong result is no choice, whoever picks it; and it hides no loss
PLUGIN2="$PLUGINS/paced_rushed.so"
expect 1 audit --rule 'm >= 1' --then rushed --else brisk --family 64x48 --m 2 --warm --plugin "$PLUGIN2" --samples rushed
says '^2x64x48 +wrong +rushed:only'
complains 'rushed:only is wrong and left out'
expect 0 audit --rule 'm >= 1' --then brisk --else rushed --family 64x48 --m 2 --warm --plugin "$PLUGIN2" --samples rushed

# a pick that cannot run
expect 4 audit --rule 'm >= 1' --then brisk --else steady --family 64x48:bias --m 2 --warm --plugin "$plugin" --samples refused
says '1 that the pick cannot run'

# anybody's picks
cat >picks.jsonl <<'PICKS'
{"problem": "1x64x48", "pick": "brisk:only", "weight": 3}

# two of another kind
{"problem": "32x64x48", "pick": "steady"}
{"pick": "brisk", "problem": "8x64x48", "us": [1, 2]}
PICKS
expect 0 audit --picks picks.jsonl --warm --seed 5 --plugin "$plugin" --samples right
says '3 of 3 problems: 0 lost'
sed 's/"steady"/"brisk"/' picks.jsonl >bad-picks.jsonl
expect 1 audit --picks bad-picks.jsonl --warm --seed 5 --plugin "$plugin" --samples right
says '^32x64x48 +lost +brisk:only +steady:only .* (30|45|60|90|120)$' # though it was dropped as far behind before

# hostile lists: this line, what is wrong with it, and nothing measured
hostile() {
    printf "$1" >hostile.jsonl
    refuses 5 "$2" audit --picks hostile.jsonl --plugin "$plugin" --samples hostile
}
hostile '{"problem": "1x64x48", "pick": NaN}\n' 'hostile.jsonl, line 1: bad JSON'
hostile '{"problem": "1x64x48", "pick": "a", "weight": NaN}\n' 'line 1: bad JSON'
hostile '{"problem": "1x64x48", "pick": "a", "weight": -1}\n' 'line 1: weight'
hostile '{"problem": "1x64x48", "pick": "a", "weight": 1e300}\n' 'line 1: weight'
hostile '{"problem": "1x64x48", "pick": "a", "weight": "1"}\n' 'line 1: weight'
hostile '{"problem": "1x64x48"}\n' 'line 1: .*is wanted'
hostile '{"problem": 1, "pick": "a"}\n' 'line 1: .*is wanted'
hostile '[]\n' 'line 1'
hostile '\n\n{"problem": "1x64", "pick": "a"}\n' 'line 3'
hostile '{"problem": "0x64x48", "pick": "a"}\n' 'multiplies nothing'
hostile '{"problem": "1x64x48", "pick": ""}\n' 'pick is ""'
hostile '{"problem": "1x64x48", "pick": "a b"}\n' 'pick is "a b"'
hostile '{"problem": "1x64x48", "pick": "a:\\u001b[2J"}\n' 'pick is'
hostile '{"problem": "1x64x48", "pick": "a", "pick": "b"}\n' 'duplicate'
hostile '{"problem": "1x64x48", "pick": "a"}\n{"problem": "1x64x48:row", "pick": "b"}\n' 'line 2'
hostile '{"problem": "1x64x48", "pick": "a"}\n{"pick": "b", "problem": "1x64x48"}\n' 'line 2: 1x64x48 was picked for in line 1'
hostile '{"problem": "1x64x48", "pick": "\\ud800"}\n' 'line 1: bad JSON'
hostile '{"problem": "1x64x48", "pick": "a"' 'line 1: bad JSON'
hostile '\000{"problem": "1x64x48", "pick": "a"}\n' 'no case list'
hostile '' 'holds no case'
head -c 300000 /dev/zero | tr '\0' '[' >hostile.jsonl
refuses 5 'line 1: bad JSON' audit --picks hostile.jsonl --plugin "$plugin"
refuses 5 'nowhere' audit --picks nowhere --plugin "$plugin"
[ ! -e hostile ] || fail "something was measured for a bad list"

# measurements already taken: two machines side by side, never pooled
expect 0 audit --rule 'm >= 16' --then steady --else brisk --offline --samples right
says '0 lost'
mkdir two
cp wrong/audit.jsonl two/a.jsonl
sed 's/threads=[0-9]*/threads=77/; s/"run":"/"run":"2/' right/audit.jsonl >two/b.jsonl
expect 1 audit --rule 'm >= 1' --then steady --else brisk --offline --samples two
[ "$(grep -c '^machine: ' "$work/out")" -eq 2 ] || fail "not two machines"
says 'threads=77'
expect 0 audit --picks picks.jsonl --offline --samples two
[ "$(grep -c '3 of 3 problems: 0 lost' "$work/out")" -eq 2 ] || fail "the picks are not good on both machines"
# their weights are those of the list
for weight in 0 1 1e6; do
    printf '{"problem": "1x64x48", "pick": "brisk"}\n{"problem": "32x64x48", "pick": "brisk", "weight": %s}\n' $weight >weighted.jsonl
    expect 1 audit --offline --samples right --json --picks weighted.jsonl
    [ -z "$can_read_json" ] || python3 - "$work/out" "$weight" <<'PY' || fail "$last: the weight $weight does not count"
import json, sys
machine, = json.load(open(sys.argv[1]))["machines"]
weight, share = float(sys.argv[2]), machine["time_share_lost"]
loss, = [p["loss"] for p in machine["problems"] if p["verdict"] == "lost"]
alone = loss / (1 + loss)
assert {p["problem"]: p["weight"] for p in machine["problems"]} == {"1x64x48": 1, "32x64x48": weight}
assert share == 0 if weight == 0 else (share > 0.999 * alone) == (weight > 1), (share, alone)
PY
done
refuses 2 'quantum: no candidate of these samples' audit --rule 'm >= 1' --then quantum --else brisk --offline --samples two
refuses 5 'nowhere' audit --rule 'm >= 1' --then steady --else brisk --offline --samples nowhere

# a table made by the tuner, and the rule that is equal to it
expect 0 tune --family 64x48 --m 1,8,16,32 --warm --plugin "$plugin" --samples tuned --out tuned.routes
expect 0 audit --rule 'm >= 16' --then steady --else brisk --offline --samples tuned
expect 1 audit --rule 'm >= 1' --then steady --else brisk --offline --samples tuned
says '^(1|8)x64x48 +lost'

# interrupted: everything so far is kept
"$PROGRAM" audit --rule 'm >= 1' --then steady --else brisk --family 96x96 128x96 96x128 --warm --plugin "$plugin" \
    --samples interrupted >"$work/out" 2>"$work/err" &
pid=$!
sleep 1
ends_at INT "$pid" audit
complains 'every sample is in interrupted'
grep -q '"phase":"audit"' interrupted/audit.jsonl || fail "nothing was kept"
# a budget that ends in the middle: what was judged is good, and nothing is claimed of the rest
expect 0 audit --rule 'm >= 16' --then steady --else brisk --family 96x96 --m 1 --warm --plugin "$plugin" --samples part
expect 3 audit --rule 'm >= 16' --then steady --else brisk --family 96x96 --m 1,2,4 --warm --plugin "$plugin" --samples part \
    --budget 0.001s
says '^verdict: inconclusive'
says 'with 2 problems to go'
# a used-up budget: nothing is begun any more, and nothing is claimed
expect 4 audit --rule 'm < 0' --then steady --else brisk --family 96x96 --m 1,2 --warm --plugin "$plugin" \
    --samples budget --budget 0.001s
says 'with 2 problems to go'
finish
