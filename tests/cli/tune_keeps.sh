# fp8route tune: whatever is tuned, in whichever protocol, the file's other entries stay; what cannot be added to is refused
# before anything is measured. Full tunes of one tiny product each, warm, take some seconds.
# SPDX-License-Identifier: Apache-2.0
. "$LIB"

file=$work/mine.routes
full() { expect 0 tune --family "$1" --m "${2:-1}" --warm --samples "$work/samples" --out "$file"; }
quick() { expect 0 tune --quick --family "$1" --m 2,4 --out "$file"; }
holds() { # holds FAMILY full|quick: as an entry of that protocol
    pattern="^entry $1\$"
    if [ "$2" = quick ] && grep -q '^protocol full' "$file"; then pattern="^entry $1 quick\$"; fi
    if [ "$2" = full ]; then grep -q '^protocol full' "$file" || fail "$last: the file is not of full measurements"; fi
    grep -q "$pattern" "$file" || fail "$last: the file has no $1 ($2)"
}

# full after quick, quick after full, full in place of quick
quick 16x16
quick 16x24
full 16x32 4
holds Mx16x16 quick
holds Mx16x24 quick
holds Mx16x32 full
quick 16x40
holds Mx16x32 full
holds Mx16x40 quick
full 16x16
complains "^Mx16x16: the file's routes for M=2\\.\\.4 are gone: a new entry replaces the old one whole$"
for family in Mx16x16 Mx16x32; do holds $family full; done
for family in Mx16x24 Mx16x40; do holds $family quick; done
says '^Mx16x16 '
never '^Mx16x(24|32|40) '
[ "$(grep -c '^entry' "$file")" -eq 4 ] || fail "entries are there twice"
expect 0 table check "$file"
says '4 entries'
expect 0 table show "$file"
says '^Mx16x24 \(quick\)'
expect 0 table show "$file" --json
says '"protocol": "quick"'
expect 0 explain 2x16x40 --routes "$file"
says "^note: +from $file \(quick\)"

# what explain advises is what works: in full where the family was measured so, and with an M that no grid has
expect 0 explain 1x16x32 --routes "$file"
says "^note: .* has this family, but not around this M; fp8route tune --family 'Mx16x32' measures it in about"
expect 0 explain 1x16x40 --routes "$file"
says "; fp8route tune --quick --family 'Mx16x40' measures it in about"
expect 0 explain 1x16x72 --routes "$file"
says "; fp8route tune --quick --family 'Mx16x72' measures it in about"
expect 0 explain 5000x16x72 --routes "$file"
says "; fp8route tune --quick --family 'Mx16x72' --m [0-9,]*,2048,5000 measures it in about"

# rows that the new entry does not reach are named, on both sides of it
quick 16x24
! grep -q 'are gone' "$work/err" || fail "$last: rows are gone though all were measured again"
expect 0 tune --quick --family 16x24 --m 3 --out "$file"
complains "^Mx16x24: the file's routes for M=2 and 4 are gone: "

# a quick tune replaces no full measurement, and says what does
cp "$file" "$work/before"
refuses 2 'holds full measurements of Mx16x16, .*: without --quick they are made anew, --out names another file' \
    tune --quick --family 16x24 16x16 --m 1 --out "$file"
cmp -s "$file" "$work/before" || fail "a refused tune changed the file"

# what the samples' folder holds of others does not undo what the file says of them; where it says nothing, it is added
sed '/^entry Mx16x32$/,/^$/s/ config=[^ ]*/ config=elsewhere/; s/^fact date.*/&\nfact commit "abc"/' "$work/before" >"$file"
full 16x48
grep -q 'config=elsewhere' "$file" || fail "an entry of the file was replaced by older samples"
grep -q '^fact commit "abc"$' "$file" || fail "a fact of the file was lost"
holds Mx16x48 full
expect 0 tune --family 16x48 --m 1 --warm --samples "$work/samples" --out "$work/other.routes"
for family in Mx16x16 Mx16x32 Mx16x48; do
    grep -q "^entry $family\$" "$work/other.routes" || fail "samples of $family were not used"
done

# how many problems are too noisy is said of the families asked for, not of all that the folder holds
mkdir "$work/loud"
sed 's/"noisy":false/"noisy":true/' "$work/samples/all.jsonl" >"$work/loud/all.jsonl"
[ "$(grep -c '"noisy":true' "$work/loud/all.jsonl")" -ge 3 ] || fail "the folder is not one of three noisy problems"
expect 0 tune --family 16x48 --m 1 --warm --samples "$work/loud" --out "$work/loud.routes"
says "of these families' problems 1 too noisy, kept at the default"

# the same command again measures nothing: what the file has of its family by now stays, and how to undo that is said; once
# something is measured it is replaced, and that its backend did not race is said
sed '/^entry Mx16x48$/,/^$/s/ m=[0-9.]* .*backend=[^ ]* config=[^ ]*/ m=3..3 backend=mine config=call/' "$file" >"$work/before"
cp "$work/before" "$file"
full 16x48
says '^0 problems measured now'
complains "^Mx16x48: nothing was measured now, and the routes that the file holds stay; .*table build $work/samples --into $file\$"
grep -q 'm=3..3 backend=mine config=call' "$file" || fail "$last: older samples replaced the file's entry"
full 16x48 1,2
complains '^Mx16x48: its routes went to mine, which did not race here, and are replaced; .*table build SAMPLES --into'
grep -q 'backend=mine' "$file" && fail "$last: the file's entry was not replaced"
full 16x48 1,2
[ "$(grep -c . "$work/err")" -eq "$(grep -c '%' "$work/err")" ] || fail "$last: a note where the file is what the samples say"

# finished samples of another revision of a backend are not done: nothing is measured, and it is said
mkdir "$work/older"
sed 's/"rev":"[^"]*"/"rev":"older"/g' "$work/samples/all.jsonl" >"$work/older/all.jsonl"
cp "$file" "$work/before"
refuses 5 '1x16x16 was measured with revision "older" of [a-z0-9]*, which is "[^"]*" now.*: --samples names a new folder' \
    tune --family 16x72 16x16 --m 1 --warm --samples "$work/older" --out "$file"
cmp -s "$file" "$work/before" || fail "$last: the file was changed"

# into the user's own file, with the same samples folder for all of its tunes
expect 0 tune --quick --family 16x16 --m 1
expect 0 tune --family 16x24 --m 1
expect 0 tune --family 16x32 --m 1
own=$(find "$HOME/.cache/fp8route" -name 'cpu-*.routes')
[ "$(grep -c '^entry' "$own")" -eq 3 ] || fail "the user's file lost an entry"
[ -s "${own%.routes}.samples/all.jsonl" ] || fail "no samples beside $own"

# through a symbolic link: it stays one, and the file behind it is added to; one that leads nowhere is refused
mkdir "$work/real" "$work/links"
cp "$file" "$work/real/a.routes"
ln -s ../real/a.routes "$work/links/a.routes"
expect 0 tune --quick --family 16x80 --m 1 --out "$work/links/a.routes"
[ -L "$work/links/a.routes" ] || fail "$last: the link was replaced"
grep -q '^entry Mx16x80 quick$' "$work/real/a.routes" || fail "$last: the file behind the link was not added to"
ln -s nowhere "$work/links/lost.routes"
refuses 5 'links/lost.routes: it is a symbolic link that cannot be followed: No such file' \
    tune --quick --family 16x80 --m 1 --out "$work/links/lost.routes"
[ -L "$work/links/lost.routes" ] || fail "$last: the link was replaced"

# refused before anything is measured, and left as it is
refuse_into() { # refuse_into PATTERN
    cp "$file" "$work/before"
    refuses 5 "$1.*; move it away, or name another file" \
        tune --family 16x16 --m 1 --warm --samples "$work/none" --out "$file"
    cmp -s "$file" "$work/before" || fail "$last: the file was changed"
    [ ! -e "$work/none" ] || fail "$last: samples were begun"
}
cp "$file" "$work/good"
printf 'no route file\n' >"$file"
refuse_into 'mine.routes, line 1'
head -20 "$work/good" >"$file"
refuse_into 'mine.routes .*cut short'
sed 's/threads=[0-9]*/threads=97/' "$work/good" >"$file"
refuse_into 'cannot be added to: .*threads=97'
sed 's/mode=eager/mode=graph/' "$work/good" >"$file"
refuse_into 'it holds routes of mode=graph, and mode=eager is measured now'
sed 's/operands=warm/operands=warm behind=both/' "$work/good" >"$file"
refuse_into 'its routes were measured half behind another kernel, and now all behind themselves'
sed 's/operands=warm/operands=cold/' "$work/good" >"$file"
refuse_into 'cold operands, and now they are warm'
if grep -q '^library blas "openblas' "$work/good"; then
    sed 's/^library blas .*/library blas "openblas 7.1"/' "$work/good" >"$file"
    refuse_into 'cannot be added to: .*openblas 7.1'
fi
# of a library that is not here its routes stay, and it stays named
sed 's/^protocol/library elsewhere "vendor 7.1"\nprotocol/' "$work/good" >"$file"
quick 16x56
grep -q '^library elsewhere "vendor 7.1"$' "$file" || fail "a library of the file was lost"
grep -q 'operands=warm' "$file" || fail "a quick tune changed how the full measurements were made"

# interrupted, the file is as it was, and the same command goes on
cp "$file" "$work/before"
"$PROGRAM" tune --family 512x512 768x512 1024x512 --warm --samples "$work/samples" --out "$file" >"$work/out" 2>"$work/err" &
pid=$!
sleep 1
ends_at INT "$pid" tune
cmp -s "$file" "$work/before" || fail "an interrupted tune changed the file"

# table build: --out writes anew, --into adds as a tune does
cp "$work/good" "$file"
expect 0 tune --family 16x64 --m 1 --warm --samples "$work/more" --out "$work/more.routes"
expect 0 table build "$work/more" --into "$file"
for family in Mx16x48 Mx16x64; do holds $family full; done
holds Mx16x24 quick
expect 0 table build "$work/more" --out "$file"
[ "$(grep -c '^entry' "$file")" -eq 1 ] || fail "table build --out kept old entries"
refuses 2 '^fp8route table: --out writes a file anew, --into adds to one' table build "$work/more" --into "$file" --out "$file"
refuses 2 '^fp8route table: --into says nothing to table merge' table merge "$file" --into "$file"
# several at once: none loses what another adds
cp "$work/good" "$file"
for round in 1 2 3; do
    for n in 1 2 3 4 5 6 7 8; do
        sed "s/1x16x64/1x$((16 * n))x$((100 + round))/" "$work/more/all.jsonl" >"$work/part$n.jsonl"
        "$PROGRAM" table build "$work/part$n.jsonl" --into "$file" >"$work/out" 2>"$work/err" &
    done
    wait
done
last="table build, several at once"
[ "$(grep -c '^entry' "$file")" -eq $((24 + $(grep -c '^entry' "$work/good"))) ] || fail 'an entry was lost'
# the file is looked at even where nothing is measured yet
head -1 "$work/more/all.jsonl" >"$work/begun.jsonl"
refuses 4 'nothing to build' table build "$work/begun.jsonl" --into "$file"
sed 's/threads=[0-9]*/threads=97/' "$work/good" >"$file"
refuses 5 'threads=97' table build "$work/begun.jsonl" --into "$file"
finish
