# fp8route report: every number of the page is that of the samples, the routes are those of table build, and what cannot be
# read or written is one line.
# SPDX-License-Identifier: Apache-2.0
. "$LIB"
command -v python3 >/dev/null || { echo 'skipped: no python3 here to make samples with'; exit 77; }
python3 "$SCRIPTS/make_samples.py" 2 64 >one.jsonl
expect 0 report one.jsonl --out page.html
says '^page\.html$'
silent
python3 "$SCRIPTS/check_report.py" one.jsonl page.html || fail 'the page says other numbers than the samples'
grep -Eq '(src|href)=' page.html && fail 'the page needs other files'

# other samples do not pass that check
sed 's/"us":[0-9]*/"us":55/' one.jsonl >other.jsonl
python3 "$SCRIPTS/check_report.py" other.jsonl page.html 2>/dev/null && fail 'other samples have the same page'

# the routes on the page are those that table build makes
expect 0 table build one.jsonl --out one.routes
count=$(grep -c '^  m=' one.routes)
[ "$count" -ge 4 ] && [ "$(grep -o 'class="route"' page.html | wc -l)" -eq "$count" ] || fail 'the page has other routes'

expect 0 report one.jsonl --out page.html --json
says '"schema": "fp8route.report/1"'
refuses 2 '--out FILE is missing' report one.jsonl
refuses 5 'one.routes is a route file, and samples are wanted' report one.routes --out page.html
refuses 5 'nowhere' report nowhere --out page.html
echo '{"record":' >bad.jsonl
echo '{}' >>bad.jsonl
cp page.html before.html
refuses 5 'bad.jsonl, line 1' report bad.jsonl --out page.html
cmp -s page.html before.html || fail 'a failed report changed the page'
expect 0 report one.jsonl --out new/folder/page.html
[ -s new/folder/page.html ] || fail 'no folder was made for the page'
refuses 5 'one.jsonl/page.html' report one.jsonl --out one.jsonl/page.html

# text is text, whatever it holds; and a name that no route file takes is none
sed 's/made up/made <b>up/' one.jsonl >facts.jsonl
expect 0 report facts.jsonl --out facts.html
grep -q 'made &lt;b&gt;up' facts.html || fail 'a fact of the samples is not on the page'
grep -q '<b>' facts.html && fail 'a fact of the samples became markup'
sed 's/third:one/<b>:one/' one.jsonl >names.jsonl
refuses 5 'names.jsonl, line 2: .*BACKEND:CONFIG' report names.jsonl --out page.html

# whole or not at all: a disk that fills up leaves the old page
(trap '' XFSZ; ulimit -f 8; "$PROGRAM" report one.jsonl --out page.html >out 2>err)
[ $? -eq 5 ] || fail 'a page that does not fit is not an error'
cmp -s page.html before.html || fail 'half a page was left'
finish
