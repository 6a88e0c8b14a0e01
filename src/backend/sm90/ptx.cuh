/* The Hopper instructions that CUDA C has no word for: barriers in shared memory, the bulk copy engine,
 * clusters, programmatic launch. One thin function an instruction; knows nothing of products.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef FP8R_SM90_PTX_CUH
#define FP8R_SM90_PTX_CUH

#include <cuda.h>
#include <stdint.h>

#include "backend/sm90/args.h"

#define FP8R_DEVICE static __device__ __forceinline__

/* Cache policies of the copy engine, as createpolicy would make them for the whole access. */
#define FP8R_L2_EVICT_NORMAL 0x1000000000000000ull
#define FP8R_L2_EVICT_FIRST  0x12F0000000000000ull
#define FP8R_L2_EVICT_LAST   0x14F0000000000000ull

FP8R_DEVICE uint32_t smem_address(const void *pointer)
{
    return (uint32_t)__cvta_generic_to_shared(pointer);
}

/* The same value in every lane, in a register: the compiler neither asks nor computes it again in every loop.
 */
FP8R_DEVICE uint32_t kept(uint32_t value)
{
    return __shfl_sync(0xFFFFFFFFu, value, 0);
}

/* The same value, of which the compiler knows nothing: what is made of it is made here, not kept in registers from before
 * a loop. */
template <typename VALUE> FP8R_DEVICE VALUE opaque(VALUE value)
{
    if constexpr (sizeof(VALUE) == 8)
        asm volatile("" : "+l"(value));
    else
        asm volatile("" : "+r"(value));
    return value;
}

/* Behind opaque() the compiler no longer knows that an address lies in device memory. */
FP8R_DEVICE float load_global(const float *from)
{
    __builtin_assume(__isGlobal(from));
    return *from;
}

FP8R_DEVICE void store_global(uint16_t *to, uint2 value)
{
    __builtin_assume(__isGlobal(to));
    *(uint2 *)to = value;
}

/* True in one lane of a warp whose lanes are all here. The compiler knows that it is one: what that lane then
 * does needs no loop over lanes. */
FP8R_DEVICE bool elected()
{
    uint32_t one;
    asm volatile("{\n"
                 ".reg .pred p;\n"
                 "elect.sync _|p, 0xFFFFFFFF;\n"
                 "selp.u32 %0, 1, 0, p;\n"
                 "}"
                 : "=r"(one));
    return one != 0;
}

/* ---- Barriers in shared memory
 * ----------------------------------------------------------------------------------- */

FP8R_DEVICE void barrier_init(uint32_t barrier, uint32_t count)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(count) : "memory");
}

/* Makes barriers that this thread initialised visible to the copy engine and to the cluster. */
FP8R_DEVICE void barrier_init_fence()
{
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

/* Shows this thread's own writes to shared memory to the tensor cores, which read it by another way. */
FP8R_DEVICE void async_fence()
{
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

/* Arrives, and lets the phase end only when `bytes` more have been written under this barrier. */
FP8R_DEVICE void barrier_expect(uint32_t barrier, uint32_t bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes)
                 : "memory");
}

FP8R_DEVICE void barrier_arrive(uint32_t barrier)
{
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}

/* The address that block `rank` of the cluster has for the same place in its own shared memory. */
FP8R_DEVICE uint32_t cluster_address(uint32_t address, uint32_t rank)
{
    uint32_t mapped;
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(mapped) : "r"(address), "r"(rank));
    return mapped;
}

/* Says only that this thread's reads are done; a release at cluster scope would wait for all its memory
 * traffic, at every stage. */
FP8R_DEVICE void barrier_arrive_remote(uint32_t barrier, uint32_t rank)
{
    asm volatile("mbarrier.arrive.shared::cluster.b64 _, [%0];" ::"r"(cluster_address(barrier, rank))
                 : "memory");
}

/* Waits until the phase of this parity has ended. A fresh barrier answers at once for parity 1. */
FP8R_DEVICE void barrier_wait(uint32_t barrier, uint32_t parity)
{
    uint32_t done;
    do {
        asm volatile("{\n"
                     ".reg .pred p;\n"
                     "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
                     "selp.u32 %0, 1, 0, p;\n"
                     "}"
                     : "=r"(done)
                     : "r"(barrier), "r"(parity)
                     : "memory");
    } while (!done);
}

/* Has it ended? Asks once. */
FP8R_DEVICE bool barrier_ready(uint32_t barrier, uint32_t parity)
{
    uint32_t done;
    asm volatile("{\n"
                 ".reg .pred p;\n"
                 "mbarrier.test_wait.parity.shared::cta.b64 p, [%1], %2;\n"
                 "selp.u32 %0, 1, 0, p;\n"
                 "}"
                 : "=r"(done)
                 : "r"(barrier), "r"(parity)
                 : "memory");
    return done != 0;
}

/* barrier_wait for data or arrivals of other blocks of the cluster. */
FP8R_DEVICE void barrier_wait_cluster(uint32_t barrier, uint32_t parity)
{
    uint32_t done;
    do {
        asm volatile("{\n"
                     ".reg .pred p;\n"
                     "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%1], %2;\n"
                     "selp.u32 %0, 1, 0, p;\n"
                     "}"
                     : "=r"(done)
                     : "r"(barrier), "r"(parity)
                     : "memory");
    } while (!done);
}

/* Barriers among the threads of one block, by number. */
FP8R_DEVICE void named_barrier_sync(int barrier, int threads)
{
    asm volatile("bar.sync %0, %1;" ::"r"(barrier), "r"(threads) : "memory");
}

FP8R_DEVICE void named_barrier_arrive(int barrier, int threads)
{
    asm volatile("bar.arrive %0, %1;" ::"r"(barrier), "r"(threads) : "memory");
}

/* x / d and the rest, for 0 <= x: a product and a correction instead of a division. */
FP8R_DEVICE int divide(int x, const struct fp8r_sm90_divisor *by, int *rest)
{
    int quotient = (int)__umulhi((uint32_t)x, by->reciprocal);
    *rest = x - quotient * by->d;
    if (*rest >= by->d) {
        ++quotient;
        *rest -= by->d;
    }
    return quotient;
}

/* ---- Clusters
 * ---------------------------------------------------------------------------------------------------- */

FP8R_DEVICE uint32_t cluster_rank()
{
    uint32_t rank;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return rank;
}

/* The barrier of the cluster: all threads of a warp together, each once. The hardware counts warps, and parts
 * of a warp that wait one after the other would wait for two phases. Relaxed: without ordering of memory, for
 * those who have a fence of their own. */
FP8R_DEVICE void cluster_arrive_relaxed()
{
    __syncwarp();
    asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
}

FP8R_DEVICE void cluster_wait()
{
    __syncwarp();
    asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}

/* Writes 16 bytes into a block of the cluster; its barrier counts them. Both are addresses from
 * cluster_address. The barrier is updated for every 16 bytes, one after the other: good for a few KB only. */
FP8R_DEVICE void cluster_store_counted(uint32_t address, float4 value, uint32_t barrier)
{
    asm volatile(
        "st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.f32 [%0], {%1, %2, %3, %4}, [%5];" ::"r"(
            address),
        "f"(value.x), "f"(value.y), "f"(value.z), "f"(value.w), "r"(barrier)
        : "memory");
}

/* The same without a count: follow all of a warp's stores by barrier_arrive_release. */
FP8R_DEVICE void cluster_store(uint32_t address, float4 value)
{
    asm volatile("st.shared::cluster.v4.f32 [%0], {%1, %2, %3, %4};" ::"r"(address), "f"(value.x),
                 "f"(value.y), "f"(value.z), "f"(value.w)
                 : "memory");
}

/* Tells blocks first .. first + count - 1 that what this warp stored to them is there. */
FP8R_DEVICE void barrier_arrive_release(uint32_t barrier, int first, int count)
{
    __syncwarp();
    if ((int)(threadIdx.x % 32) < count)
        asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" ::"r"(
                         cluster_address(barrier, first + threadIdx.x % 32))
                     : "memory");
}

/* ---- The bulk copy engine
 * ---------------------------------------------------------------------------------------- */

/* Asks the L2 for the line that this address lies in. */
FP8R_DEVICE void prefetch_line(const void *address)
{
    asm volatile("prefetch.global.L2 [%0];" ::"l"(address) : "memory");
}

/* Loads bytes that lie together; both addresses and the number are multiples of 16. */
FP8R_DEVICE void bulk_load(uint32_t to, const void *from, uint32_t bytes, uint32_t barrier)
{
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                     to),
                 "l"(from), "r"(bytes), "r"(barrier)
                 : "memory");
}

FP8R_DEVICE void tma_prefetch_map(const CUtensorMap *map)
{
    asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
}

/* Loads the box at element x of row y of matrix z. */
FP8R_DEVICE void tma_load(uint32_t to, const CUtensorMap *map, int x, int y, int z, uint32_t barrier,
                          uint64_t policy)
{
    asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint "
                 "[%0], [%1, {%3, %4, %5}], [%2], %6;" ::"r"(to),
                 "l"(map), "r"(barrier), "r"(x), "r"(y), "r"(z), "l"(policy)
                 : "memory");
}

/* The same into all blocks of the mask, each at the same place and under its own barrier. */
FP8R_DEVICE void tma_load_multicast(uint32_t to, const CUtensorMap *map, int x, int y, int z,
                                    uint32_t barrier, uint16_t mask, uint64_t policy)
{
    asm volatile(
        "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster"
        ".L2::cache_hint [%0], [%1, {%3, %4, %5}], [%2], %6, %7;" ::"r"(to),
        "l"(map), "r"(barrier), "r"(x), "r"(y), "r"(z), "h"(mask), "l"(policy)
        : "memory");
}

/* tma_load with one more axis: element x of row y of layer z of matrix w. */
FP8R_DEVICE void tma_load_4d(uint32_t to, const CUtensorMap *map, int x, int y, int z, int w,
                             uint32_t barrier, uint64_t policy)
{
    asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint "
                 "[%0], [%1, {%3, %4, %5, %6}], [%2], %7;" ::"r"(to),
                 "l"(map), "r"(barrier), "r"(x), "r"(y), "r"(z), "r"(w), "l"(policy)
                 : "memory");
}

/* tma_load with five axes, of which the last two are v and w; also into all blocks of the mask. */
FP8R_DEVICE void tma_load_5d(uint32_t to, const CUtensorMap *map, int x, int y, int z, int v, int w,
                             uint32_t barrier, uint64_t policy)
{
    asm volatile("cp.async.bulk.tensor.5d.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint "
                 "[%0], [%1, {%3, %4, %5, %6, %7}], [%2], %8;" ::"r"(to),
                 "l"(map), "r"(barrier), "r"(x), "r"(y), "r"(z), "r"(v), "r"(w), "l"(policy)
                 : "memory");
}

FP8R_DEVICE void tma_load_5d_multicast(uint32_t to, const CUtensorMap *map, int x, int y, int z, int v, int w,
                                       uint32_t barrier, uint16_t mask, uint64_t policy)
{
    asm volatile(
        "cp.async.bulk.tensor.5d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster"
        ".L2::cache_hint [%0], [%1, {%3, %4, %5, %6, %7}], [%2], %8, %9;" ::"r"(to),
        "l"(map), "r"(barrier), "r"(x), "r"(y), "r"(z), "r"(v), "r"(w), "h"(mask), "l"(policy)
        : "memory");
}

/* ---- Programmatic launch
 * ----------------------------------------------------------------------------------------- */

/* Until the kernels before this one are complete and their writes visible; at once without the launch
 * attribute. */
FP8R_DEVICE void grid_wait()
{
    asm volatile("griddepcontrol.wait;" ::: "memory");
}

/* Lets the next kernel's blocks be launched as soon as there is room for them. */
FP8R_DEVICE void grid_release()
{
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
}

/* ---- Registers
 * --------------------------------------------------------------------------------------------------- */

template <int REGISTERS> FP8R_DEVICE void registers_grow()
{
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(REGISTERS));
}

template <int REGISTERS> FP8R_DEVICE void registers_shrink()
{
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(REGISTERS));
}

/* Transposes an 8 x 8 matrix of 16-bit elements that the warp holds as one fragment. */
FP8R_DEVICE uint32_t transpose_8x8(uint32_t fragment)
{
    uint32_t transposed;
    asm("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(transposed) : "r"(fragment));
    return transposed;
}

#endif
