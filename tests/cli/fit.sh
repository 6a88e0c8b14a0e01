# fp8route fit: a rule that is known is found from samples, its files compile, run and lock it.
# SPDX-License-Identifier: Apache-2.0
. "$LIB"
command -v python3 >/dev/null || { echo 'skipped: no python3 here to make samples with'; exit 77; }
python3 "$SCRIPTS/make_samples.py" 2 64 >one.jsonl
python3 "$SCRIPTS/make_samples.py" 8 512 >two.jsonl
refuses 2 '--samples PATH... is missing' fit
refuses 2 '--x and --y go together' fit --samples one.jsonl --x fast
refuses 2 '--x and --y are both "cpu"' fit --samples one.jsonl --x cpu --y cpu
refuses 2 '--bound is "-1"' fit --samples one.jsonl --bound=-1
refuses 2 '--boxes is 9' fit --samples one.jsonl --boxes 9
refuses 5 'nowhere' fit --samples nowhere
refuses 2 'quantum: no candidate' fit --samples one.jsonl --x quantum --y slow

expect 0 fit --samples one.jsonl --out-dir new/made
mv new/made made
says '^rule: +m >= 64 and k >= 2048$'
says 'takes fast where it holds and slow elsewhere; 2 conditions'
says '^regret: .*within the bound of 1 %'
says 'static inline bool rule_holds'
says 'def rule_holds'
for name in rule.txt rule.h rule.py test_rule.c test_rule.py shapes.md rule.routes; do
    [ -s "made/$name" ] || fail "no $name"
done
expect 0 fit --samples one.jsonl --out-dir again
diff -r made again >/dev/null || fail "the same samples gave other files"

# the tests compile, run, and fail for another rule
strict='-std=c11 -Wall -Wextra -Wconversion -Wmissing-prototypes -Werror'
${CC:-cc} $strict -o locked made/test_rule.c || fail "test_rule.c does not compile"
./locked >/dev/null || fail "test_rule.c fails on its own rule"
sed 's/m >= 64/m >= 65/' made/rule.h >again/rule.h
${CC:-cc} $strict -o unlocked again/test_rule.c && ./unlocked >/dev/null && fail "test_rule.c passes another rule"
python='import test_rule; test_rule.test_rule_at_its_borders()'
(cd made && python3 -c "$python") || fail "test_rule.py fails on its own rule"
sed 's/k >= 2048/k > 2048/' made/rule.py >again/rule.py
(cd again && python3 -c "$python") 2>/dev/null && fail "test_rule.py passes another rule"
if python3 -c 'import pytest' 2>/dev/null; then
    (cd made && python3 -m pytest -q -p no:cacheprovider test_rule.py >/dev/null) || fail "pytest fails"
fi

# the route file is whole, and takes the rule's side with its exact border
expect 0 table show made/rule.routes
says 'Mx4096x4096 +1\.\.63 +slow:'
says ' +64\.\.512 +fast:'
says 'Mx4096x1024 +1\.\.512 +slow:'
grep -q 'rule' made/rule.routes || fail "the file does not name its rule"
grep -q '^| 64x4096x4096 | fast:one |' made/shapes.md || fail "no row of 64x4096x4096"
grep -Eq '^\| 32x4096x4096 .* 2 x from M=64 ' made/shapes.md || fail "no distance to the border"

# two machines that differ: the worst one decides; never pooled
expect 0 fit --samples one.jsonl two.jsonl --bound 20% --json
says '"schema": "fp8route.fit/1"'
[ "$(grep -c '"machine": "features' "$work/out")" -eq 2 ] || fail "not two machines"
expect 1 fit --samples one.jsonl two.jsonl --bound 0 --boxes 1 --out-dir both
says 'ABOVE the bound'
[ -s both/rule-1.routes ] && [ -s both/rule-2.routes ] || fail "no two route files"

# the rule audits well on what it was fitted to
expect 0 audit --rule "$(cat made/rule.txt)" --then fast --else slow --offline --samples one.jsonl
expect 1 audit --rule 'm >= 1' --then fast --else slow --offline --samples one.jsonl
says '^1x'
touch file
refuses 5 'file' fit --samples one.jsonl --out-dir file/below
finish
