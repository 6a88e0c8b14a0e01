# fp8route run: verified on every backend, zero sizes, refusals.
# SPDX-License-Identifier: Apache-2.0
. "$LIB"

blas=$("$PROGRAM" info | grep -c '^blas *yes')
backends="reference cpu"
[ "$blas" -eq 0 ] || backends="$backends blas"

expect 0 run 3x1000x777:fp32:bias --json
says '"schema": "fp8route.run/1"'
says '"verified": true'
says '"checked_elements": 3000'
for backend in $backends; do
    expect 0 run 3x1000x777:fp32:bias --json --backend "$backend"
    says "\"backend\": \"$backend:"
    says '"verified": true'
    says '"source": "explicit"'
    for problem in 0x16x32 16x16x0 16x16x0:bias 16x0x4 1x1x1 33x65x129:fp16:tensor '2*5x7x9:ta:tb:to' \
        '9x17x33:a=bf16:bias=fp32' '18x34x66:lda=80:ldo=50:align=1' '5x8x16:a=e5m2:precise'; do
        expect 0 run "$problem" --backend "$backend"
        says '^verified +yes'
    done
done
expect 0 run 0x16x32
says 'no element, and nothing was touched'
expect 0 run 16x16x0:bias
says 'largest error 0 of 0 allowed'
expect 0 run 700x700x700 --seed 5
says 'all 490000 elements'
expect 0 run 1200x1200x1200
says 'a sample of [0-9]+ elements'

refuses 2 'no backend is named "nonesuch": there are sm90' run 1x1x1 --backend nonesuch
refuses 2 'has no configuration "nonesuch"' run 1x1x1 --backend reference:nonesuch
refuses 4 'backend sm90 runs on CUDA devices only' run 1x1x1 --backend sm90
refuses 2 'position 5: expected' run 1x1xx
refuses 6 'the operands need [0-9.]+ GiB, and [0-9.]+ GiB of memory are available' run 3000000x3000000x3000000
refuses 2 'an operand of these sizes has more elements than 63 bits count' run 4000000000000x4000000000000x4000000000000

# policies
if [ "$blas" -ne 0 ]; then
    FP8ROUTE_UNROUTED=error
    export FP8ROUTE_UNROUTED
    refuses 4 'only measured routes may decide.*cpu, blas' run 4x64x64
    expect 0 run 4x64x64 --backend cpu
    unset FP8ROUTE_UNROUTED
fi
FP8ROUTE_BACKEND=reference expect 0 run 4x64x64
says '^backend +reference:double \(forced\)'
FP8ROUTE_DENY=cpu expect 0 run 4x64x64
never '^backend +cpu:'
FP8ROUTE_VERBOSE=1 expect 0 run 4x64x64
complains '^fp8route: .*4x64x64: M=[0-9]+\.\.4 -> cpu:'

# a checkpoint's tensor
file=$DATA/checkpoints/small.safetensors
expect 0 run 3x48x64 --weights "$file:model.layers.0.self_attn.q_proj" # e4m3 with its scale
says '^verified +yes'
refuses 5 'block scales' run 3x64x96 --weights "$file:model.layers.0.mlp.down_proj"
expect 0 run 3x16x64:fp32 --weights "$file:model.layers.1.self_attn.k_proj.weight"
says '^verified +yes'
expect 0 run 3x96x64 --weights "$file:model.layers.0.mlp.up_proj" # fp16, quantised on the way in
says '^verified +yes'
expect 0 run 3x64x48:bias --weights "$file:model.layers.0.self_attn.o_proj" --json # bf16
says '"verified": true'
expect 0 run 3x40x64 --weights "$DATA/checkpoints/small.safetensors.index.json:lm_head" # fp32, sharded
says '^verified +yes'
expect 0 run 2*3x40x64 --weights "$file:lm_head"
says '^verified +yes'
refuses 2 'the tensor has N=48 and K=64, but the problem N=64 and K=48' run 3x64x48 \
    --weights "$file:model.layers.0.self_attn.q_proj"
refuses 2 'leave tb, ib and ldb out' run 3x48x64:tb --weights "$file:model.layers.0.self_attn.q_proj"
refuses 2 'nonesuch' run 3x64x96 --weights "$file:nonesuch"
refuses 2 'FILE:TENSOR' run 1x1x1 --weights "$file"
refuses 5 'nowhere' run 1x1x1 --weights "$work/nowhere:x"

# a signal ends it as it ends the other verbs
PACE_STEADY_US=1500000 "$PROGRAM" run 1x16x16 --backend steady --plugin "$PLUGINS/plugin_pace.so" >"$work/out" 2>"$work/err" &
sleep 0.7
ends_at TERM $! run
[ ! -s "$work/out" ] || fail "$last: it printed a result"
complains 'interrupted: the same command starts again'
finish
