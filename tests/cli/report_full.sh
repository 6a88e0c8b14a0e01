# The page in a real browser: it has a size, its pictures are there, nothing is cut off, nothing is fetched.
# SPDX-License-Identifier: Apache-2.0
. "$LIB"
command -v python3 >/dev/null || { echo 'skipped: no python3 here to make samples with'; exit 77; }
browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome) ||
    { echo 'skipped: no Chromium here to look at the page with'; exit 77; }
python3 "$SCRIPTS/make_samples.py" 2 64 >one.jsonl
expect 0 report one.jsonl --out page.html
# Asked of the page as it is laid out, by a copy of it with a script behind.
cp page.html asked.html
cat >>asked.html <<'END'
<script>
const boxes = [...document.querySelectorAll("svg")].map(svg => svg.getBoundingClientRect());
const cut = [...document.querySelectorAll("svg text")].filter(text => {
    const box = text.getBBox(), view = text.ownerSVGElement.viewBox.baseVal;
    return box.x < -1 || box.y < -1 || box.x + box.width > view.width + 1 || box.y + box.height > view.height + 1;
}).map(text => text.textContent);
const hidden = [...document.querySelectorAll("svg rect.cell")].filter(cell => {
    const style = getComputedStyle(cell);
    return style.fill === "none" || style.display === "none";
}).length;
document.body.setAttribute("data-seen", JSON.stringify({
    pictures: boxes.filter(box => box.width > 100 && box.height > 50).length, cut, hidden,
    wide: document.documentElement.scrollWidth > innerWidth, loaded: performance.getEntriesByType("resource").length}));
</script>
END
"$browser" --headless --no-sandbox --disable-gpu --window-size=1280,900 --user-data-dir="$work/profile" --dump-dom \
    "file://$work/asked.html" >dom 2>/dev/null || { echo 'skipped: Chromium does not start here'; exit 77; }
sed -n 's/.*data-seen="\([^"]*\)".*/\1/p' dom | sed 's/&quot;/"/g' >"$work/out"
last='the page in Chromium'
says '"pictures":5' # the map, and a curve for each of four families
says '"cut":\[\]'
says '"hidden":0'
says '"wide":false'
says '"loaded":0'
"$browser" --headless --no-sandbox --disable-gpu --window-size=1280,2000 --user-data-dir="$work/profile" --hide-scrollbars \
    --screenshot="$work/page.png" "file://$work/page.html" >/dev/null 2>&1
[ -s page.png ] && [ "$(wc -c <page.png)" -gt 20000 ] || fail 'the picture of the page is empty'
finish
