/* What a warm call costs the host: a routed product through the public interface, the bare launch of the very kernel that it
 * launches, with the same attributes and parameters, and a call whose backend launches nothing. Alternating batches, so
 * that their difference is one of pairs; a batch is shorter than the stream's queue.
 * SPDX-License-Identifier: Apache-2.0 */
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>

#include <fp8route/backend.h>

#include "support/null_backend.h"

#define BENCH_API __attribute__((visibility("default")))

enum { CALLS = 100 };

BENCH_API int bench_host(fp8r_context *context, const fp8r_matmul *matmul, const fp8r_plan *plan,
                         const fp8r_pointers *pointers, void *stream, int rounds, double *call_us, double *plan_us,
                         double *bare_us);
BENCH_API int bench_decision(const fp8r_matmul *matmul, int rounds, double *ns);

static double now_us(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

/* ---- The bare launch ---- */

struct bare {
    CUgraph graph; /* keeps the parameters */
    CUDA_KERNEL_NODE_PARAMS node;
    CUlaunchAttribute attributes[2];
    CUlaunchConfig config;
    CUresult (*launch)(const CUlaunchConfig *, CUfunction, void **, void **);
};

static bool driver_function(const char *name, void *function)
{
    enum cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
    return cudaGetDriverEntryPointByVersion(name, function, 12000, cudaEnableDefault, &found) == cudaSuccess &&
           found == cudaDriverEntryPointSuccess;
}

/* The one kernel that a run of the plan launches, as a graph holds it. */
static bool bare_init(struct bare *bare, const fp8r_plan *plan, const fp8r_pointers *pointers, void *stream)
{
    CUresult (*nodes_of)(CUgraph, CUgraphNode *, size_t *);
    CUresult (*params_of)(CUgraphNode, CUDA_KERNEL_NODE_PARAMS *);
    CUresult (*attribute_of)(CUgraphNode, CUlaunchAttributeID, CUlaunchAttributeValue *);
    CUgraphNode node;
    size_t count = 1;
    if (!driver_function("cuGraphGetNodes", &nodes_of) || !driver_function("cuGraphKernelNodeGetParams", &params_of) ||
        !driver_function("cuGraphKernelNodeGetAttribute", &attribute_of) ||
        !driver_function("cuLaunchKernelEx", &bare->launch) ||
        cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed) != cudaSuccess)
        return false;
    const fp8r_status status = fp8r_plan_run(plan, pointers, NULL, 0, stream);
    if (cudaStreamEndCapture(stream, &bare->graph) != cudaSuccess || status != FP8R_OK ||
        nodes_of(bare->graph, &node, &count) != CUDA_SUCCESS || count != 1 ||
        params_of(node, &bare->node) != CUDA_SUCCESS)
        return false;
    CUlaunchAttribute *cluster = &bare->attributes[0], *dependent = &bare->attributes[1];
    cluster->id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
    if (attribute_of(node, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, &cluster->value) != CUDA_SUCCESS) return false;
    if (cluster->value.clusterDim.x == 0)
        cluster->value.clusterDim.x = cluster->value.clusterDim.y = cluster->value.clusterDim.z = 1;
    dependent->id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
    dependent->value.programmaticStreamSerializationAllowed = 1;
    bare->config = (CUlaunchConfig){.gridDimX = bare->node.gridDimX, .gridDimY = bare->node.gridDimY,
                                    .gridDimZ = bare->node.gridDimZ, .blockDimX = bare->node.blockDimX,
                                    .blockDimY = bare->node.blockDimY, .blockDimZ = bare->node.blockDimZ,
                                    .sharedMemBytes = bare->node.sharedMemBytes, .hStream = stream,
                                    .attrs = bare->attributes, .numAttrs = 2};
    return true;
}

/* ---- Rounds ---- */

enum what { CALL, PLAN, BARE, WHATS };

struct calls {
    fp8r_context *context;
    const fp8r_matmul *matmul;
    const fp8r_plan *plan;
    const fp8r_pointers *pointers;
    struct bare bare;
    void *stream;
};

static bool call_once(struct calls *it, enum what what)
{
    if (what == CALL) return fp8r_scaled_mm(it->context, it->matmul, it->stream) == FP8R_OK;
    if (what == PLAN) return fp8r_plan_run(it->plan, it->pointers, NULL, 0, it->stream) == FP8R_OK;
    return it->bare.launch(&it->bare.config, it->bare.node.func, it->bare.node.kernelParams, NULL) == CUDA_SUCCESS;
}

static bool time_batch(struct calls *it, enum what what, double *us)
{
    bool good = true;
    const double start_us = now_us();
    for (int i = 0; i < CALLS && good; i++)
        good = call_once(it, what);
    *us = (now_us() - start_us) / CALLS;
    return cudaStreamSynchronize(it->stream) == cudaSuccess && good;
}

/* us a call, one a round: of scaled_mm, of the plan's run, of the bare launch. 0 where all went well. The plan needs no
 * workspace and launches one kernel. */
int bench_host(fp8r_context *context, const fp8r_matmul *matmul, const fp8r_plan *plan, const fp8r_pointers *pointers,
               void *stream, int rounds, double *call_us, double *plan_us, double *bare_us)
{
    struct calls it = {.context = context, .matmul = matmul, .plan = plan, .pointers = pointers, .stream = stream};
    double *const results[WHATS] = {call_us, plan_us, bare_us};
    bool good = bare_init(&it.bare, plan, pointers, stream);
    for (int round = -2; round < rounds && good; round++)
        for (int i = 0; i < WHATS && good; i++) {
            const enum what what = (enum what)((i + round + 2) % WHATS);
            good = time_batch(&it, what, &results[what][round < 0 ? 0 : round]);
        }
    if (it.bare.graph) (void)cudaGraphDestroy(it.bare.graph);
    return !good;
}

/* ---- The decision alone ---- */

/* ns a whole routed call of a known problem on a GPU, validation and the device's guard included, launch excluded; one a
 * round. 0 where all went well. */
int bench_decision(const fp8r_matmul *matmul, int rounds, double *ns)
{
    enum { MANY = 20000 };
    static const fp8r_backend *const backends[] = {&null_backend};
    const fp8r_context_options options = {.struct_size = sizeof options,
                                          .flags = FP8R_NO_ENVIRONMENT | FP8R_NO_ROUTE_FILES,
                                          .backends = backends,
                                          .backend_count = 1};
    fp8r_context *context = NULL;
    bool good = fp8r_context_create((fp8r_device){FP8R_DEVICE_CUDA, 0}, &options, &context) == FP8R_OK;
    for (int round = -1; round < rounds && good; round++) {
        const double start_us = now_us();
        for (int i = 0; i < MANY && good; i++)
            good = fp8r_scaled_mm(context, matmul, NULL) == FP8R_OK;
        ns[round < 0 ? 0 : round] = (now_us() - start_us) * 1e3 / MANY;
    }
    fp8r_context_destroy(context);
    return !good;
}
