# fp8route compare: equal bits or the first difference, faster or slower, refusals.
# SPDX-License-Identifier: Apache-2.0
. "$LIB"
. "$SCRIPTS/pace.sh"

refuses 2 'A B|something is missing' compare steady
refuses 2 'either problems' compare steady rival --plugin "$pace"
refuses 2 'either problems' compare steady rival 2x8x8 --cases "$work/cases" --plugin "$pace"
refuses 2 'leave nothing' compare steady rival 2x8x8 --bits-only --time-only
refuses 2 'no backend is named "nobody"' compare steady nobody 2x8x8 --plugin "$pace"
refuses 2 'position' compare steady rival 2y8x8
refuses 2 'multiplies nothing' compare steady rival 2x0x8
refuses 5 'nowhere' compare steady rival --cases "$work/nowhere"
printf '2x8x8\n# a comment\n3x8y8\n' >"$work/cases"
refuses 5 'cases, line 3: ' compare steady rival --cases "$work/cases" --plugin "$pace"

# equal bits, NaN included; a case list; other layouts
printf '2x8x8\n3*2x9x7:fp32\n5x16x24:ta:lda=40\n' >"$work/cases"
expect 0 compare steady rival --cases "$work/cases" --bits-only --plugin "$pace"
says '^2x8x8 +steady:loops +rival:loops +equal, 64 elements'
says '^3\*2x9x7:fp32 .*equal, 216 elements'
expect 0 compare reference steady 4x8x8:fp32 --bits-only --plugin "$pace" --json
says '"equal": true'
says '"inputs": 4'
never '"time"'

# one element is the next value
for type in fp32 bf16; do
    problem=2x8x8
    [ "$type" = fp32 ] && problem=2x8x8:fp32
    PACE_FAULT=ulp expect 1 compare steady rival "$problem" --bits-only --plugin "$pace"
    says "^$problem .*[34] of 64 differ, first out\[0,0,1\]: .*, 1 ulp"
done
PACE_FAULT=ulp expect 1 compare steady rival 2x8x8:fp32 --bits-only --plugin "$pace" --json
says '"first_ulp": 1'
says '"most_ulp": 1'
# a number where NaN belongs, only seen on the operands with NaN codes; an element that nobody writes
PACE_FAULT=number expect 1 compare steady rival 3x8x8 --bits-only --plugin "$pace"
says 'differ, first out\[0,[012],[0-7]\]: -?nan and 0, not comparable'
PACE_FAULT=hole expect 1 compare steady rival 3x8x8 --bits-only --plugin "$pace"
says '4 of 96 differ, first out\[0,0,1\]'
PACE_FAULT=hole expect 1 compare rival rival 3x8x8 --bits-only --plugin "$pace"

# times: slower, faster, as fast
PACE_STEADY_US=300 PACE_RIVAL_US=420
export PACE_STEADY_US PACE_RIVAL_US
expect 1 compare steady rival 2x8x8 --plugin "$pace"
says 'equal, 64 elements .* slower$'
expect 0 compare rival steady 2x8x8 --plugin "$pace" --json
says '"verdict": "faster"'
PACE_RIVAL_US=300
expect 0 compare steady rival 2x8x8 --time-only --plugin "$pace" --margin 0.2
says ' not slower$'

# a problem that one of them refuses; something worse wins
expect 4 compare steady rival 2x8x8:fp16 --plugin "$pace"
says 'not compared: steady: '
complains '1 of 1 cases cannot be run by both'
PACE_FAULT=ulp expect 1 compare steady rival 2x8x8:fp16 2x8x8 --bits-only --plugin "$pace"
finish
