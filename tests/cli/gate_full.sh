# fp8route gate, live: a backend that takes 10 % longer than its runner-up is caught three times of three, one that is as
# fast is never flagged. SPDX-License-Identifier: Apache-2.0
. "$LIB"
. "$SCRIPTS/pace.sh"
routes "$work/live.routes" steady rival 1
# Short waits: where other processes have the processor most of the time, few of them are cut in two.
PACE_RIVAL_US=200
export PACE_RIVAL_US
for seed in 1 2 3; do
    PACE_STEADY_US=220 expect 1 gate "$work/live.routes" --plugin "$pace" --seed "$seed"
    says '^Mx16x16 +1\.\.1 +steady:loops +regression'
    PACE_STEADY_US=200 expect 0 gate "$work/live.routes" --plugin "$pace" --seed "$seed"
    says '^Mx16x16 +1\.\.1 +steady:loops +fine'
done
finish
