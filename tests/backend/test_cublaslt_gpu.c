/* The cublaslt row on a GPU, in every configuration, through plans: values against the oracle, element by
 * element, over types, biases, scales, pitches and batches; promoted and fast sums; captured graphs; equal
 * bits inside a class. Skipped, by name, where there is no GPU or no library.
 * SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <cuda_runtime_api.h>

#include "backend/cublaslt/cublaslt_configs.h"
#include "support/gpu_memory.h"
#include "support/sample.h"

extern const fp8r_backend fp8r_backend_cublaslt;

static fp8r_context *context;
static cudaStream_t stream;

#define CUDA(call) assert_int_equal(call, cudaSuccess)

static int setup(void **state)
{
    (void)state;
    const fp8r_context_options options = {.struct_size = sizeof options,
                                          .flags = FP8R_NO_ENVIRONMENT | FP8R_NO_ROUTE_FILES};
    if (fp8r_context_create((fp8r_device){FP8R_DEVICE_CUDA, 0}, &options, &context) != FP8R_OK) {
        print_message("no GPU: %s\n", fp8r_last_error());
        context = NULL;
        return 0;
    }
    CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    for (size_t i = 0; i < fp8r_context_backend_count(context); i++) {
        fp8r_backend_info info = {.struct_size = sizeof info};
        assert_int_equal(fp8r_context_backend(context, i, &info), FP8R_OK);
        if (strcmp(info.name, "cublaslt") != 0) continue;
        print_message("%s: %s\n", info.fits ? "library" : "refused",
                      info.fits ? info.library : info.sentence);
        if (!info.fits) {
            fp8r_context_destroy(context);
            context = NULL;
            return 0;
        }
    }
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    fp8r_context_destroy(context);
    return 0;
}

#define NEEDS_GPU()                                                                                          \
    if (!context) skip()

/* A sample's data on the GPU; matmul points there. */
struct device_sample {
    struct sample host;
    fp8r_matmul matmul;
    char *blocks[SAMPLE_OPERANDS];
};

static fp8r_matrix *matrix_of(fp8r_matmul *matmul, int operand)
{
    fp8r_matrix *const matrices[] = {&matmul->a,       &matmul->b,       &matmul->out,
                                     &matmul->scale_a, &matmul->scale_b, &matmul->bias};
    return matrices[operand];
}

static void device_sample_place(struct device_sample *it)
{
    it->matmul = it->host.matmul;
    for (int i = 0; i < SAMPLE_OPERANDS; i++) {
        const struct sample_block *block = &it->host.blocks[i];
        it->blocks[i] = NULL;
        if (!matrix_of(&it->matmul, i)->data) continue;
        CUDA(cudaMalloc((void **)&it->blocks[i], block->size_bytes + 256));
        CUDA(gpu_memory_put(it->blocks[i], block->memory, block->size_bytes));
        matrix_of(&it->matmul, i)->data = it->blocks[i] + block->offset_bytes;
    }
}

static void device_sample_init(struct device_sample *it, const char *text, enum sample_data data)
{
    if (!sample_init(&it->host, text, data, 5)) fail_msg("%s: no sample", text);
    device_sample_place(it);
}

static void device_sample_fini(struct device_sample *it)
{
    for (int i = 0; i < SAMPLE_OPERANDS; i++)
        CUDA(cudaFree(it->blocks[i]));
    sample_fini(&it->host);
}

/* out on the GPU is poisoned as it is on the host. */
static void device_sample_clear(struct device_sample *it)
{
    const struct sample_block *out = &it->host.blocks[SAMPLE_OUT];
    sample_clear(&it->host);
    CUDA(cudaMemcpyAsync(it->blocks[SAMPLE_OUT], out->memory, out->size_bytes, cudaMemcpyHostToDevice,
                         stream));
    CUDA(cudaStreamSynchronize(stream));
}

static void judge(struct device_sample *it, int64_t m, const char *text, const char *label)
{
    char line[160];
    const struct sample_block *out = &it->host.blocks[SAMPLE_OUT];
    CUDA(cudaStreamSynchronize(stream));
    CUDA(cudaMemcpy(out->memory, it->blocks[SAMPLE_OUT], out->size_bytes, cudaMemcpyDeviceToHost));
    if (!sample_judge(&it->host, m, line, sizeof line))
        fail_msg("%s on %s, m=%lld: %s", text, label, (long long)m, line);
}

static fp8r_pointers pointers_of(const struct device_sample *it, int64_t m)
{
    return (fp8r_pointers){.struct_size = sizeof(fp8r_pointers),
                           .m = m,
                           .a = it->matmul.a.data,
                           .b = it->matmul.b.data,
                           .out = it->matmul.out.data,
                           .scale_a = it->matmul.scale_a.data,
                           .scale_b = it->matmul.scale_b.data,
                           .bias = it->matmul.bias.data};
}

/* A plan with its workspace, which is full of NaN and followed by a guard. */
struct planned {
    fp8r_plan *plan;
    unsigned char *workspace;
    size_t bytes;
};

enum { GUARD_BYTES = 256 };

static bool planned_init(struct planned *planned, const struct device_sample *it, const char *label)
{
    if (fp8r_plan_create(context, &it->matmul, label, &planned->plan) != FP8R_OK) return false;
    planned->bytes = fp8r_plan_workspace(planned->plan);
    CUDA(cudaMalloc((void **)&planned->workspace, planned->bytes + GUARD_BYTES));
    CUDA(gpu_memory_set(planned->workspace, 0x7F, planned->bytes + GUARD_BYTES));
    return true;
}

static void planned_run(const struct planned *planned, const struct device_sample *it, int64_t m)
{
    fp8r_pointers pointers = pointers_of(it, m);
    if (fp8r_plan_run(planned->plan, &pointers, planned->workspace, planned->bytes, stream) != FP8R_OK)
        fail_msg("a run failed: %s", fp8r_last_error());
}

static void planned_fini(struct planned *planned)
{
    unsigned char guard[GUARD_BYTES];
    CUDA(cudaMemcpy(guard, planned->workspace + planned->bytes, GUARD_BYTES, cudaMemcpyDeviceToHost));
    for (int i = 0; i < GUARD_BYTES; i++)
        assert_int_equal(guard[i], 0x7F);
    CUDA(cudaFree(planned->workspace));
    fp8r_plan_destroy(planned->plan);
}

/* One configuration at M and below; returns whether it takes the product. */
static bool run_config(struct device_sample *it, int config, const char *text)
{
    char label[80];
    struct planned planned;
    int64_t m = it->matmul.a.rows, counts[] = {m, (m + 1) / 2, 1};
    snprintf(label, sizeof label, "cublaslt:%s", fp8r_cublaslt_config_names[config]);
    if (!planned_init(&planned, it, label)) return false;
    for (int i = 0; i < 3; i++) {
        device_sample_clear(it);
        planned_run(&planned, it, counts[i]);
        judge(it, counts[i], text, label);
    }
    planned_fini(&planned);
    return true;
}

static int run_configs(struct device_sample *it, const char *text)
{
    int taken = 0;
    for (int config = 0; config < FP8R_CUBLASLT_CONFIGS; config++) {
        bool is_taken = run_config(it, config, text);
        if (config == FP8R_CUBLASLT_HEURISTIC && !is_taken)
            fail_msg("%s is refused: %s", text, fp8r_last_error());
        taken += is_taken;
    }
    return taken;
}

static const char *const cases[] = {
    "1x16x16",
    "2x8x16",
    "3x4x32:fp32",
    "1x64x128",
    "7x64x128:bias",
    "33x48x80:fp16:bias=fp16",
    "33x48x80:fp32",
    "33x48x80:fp32:bias=bf16",
    "17x40x64:a=e5m2:bias",
    "65x136x528:a=e5m2:fp16",
    "129x264x272",
    "300x520x144:precise:bias",
    "64x256x512:precise:fp32",
    "31x72x112:lda=128:ldb=144:ldo=80:bias",
    "17x72x112:fp32:ldo=76",
    "1x520x1040:fp16",
    "33x48x80:tensor",
    "33x48x80:tensor:fp16:bias=fp16",
    "33x48x80:tensor:fp32:bias=bf16",
    "1x520x1040:tensor:bias",
    "40x48x80:sa=none:sb=tensor",
    "40x48x80:sa=tensor:sb=none:fp32",
    "40x48x80:sa=none:sb=none:a=e5m2",
    "300x520x144:tensor:precise",
    "5*33x48x80:tensor",
    "3*1x64x128:tensor:fp32",
    "16*65x128x512:tensor:fp16",
    "7*20x64x48:sa=none:sb=none:lda=64:ldo=80",
    "1100x136x64",
    "1100x136x64:tensor",
    "1x256x4096",
    "20x256x8192:tensor",
};

static void exact_values(void **state)
{
    (void)state;
    NEEDS_GPU();
    int taken = 0;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct device_sample it;
        device_sample_init(&it, cases[i], SAMPLE_EXACT);
        taken += run_configs(&it, cases[i]);
        device_sample_fini(&it);
    }
    print_message("%d configurations ran\n", taken);
}

/* Field report A3: no number of rows is refused, whatever the plan was made for. */
static void every_number_of_rows(void **state)
{
    (void)state;
    NEEDS_GPU();
    static const char *const texts[] = {"33x64x64", "33x64x64:tensor"};
    for (size_t i = 0; i < 2; i++) {
        struct device_sample it;
        struct planned planned;
        device_sample_init(&it, texts[i], SAMPLE_EXACT);
        assert_true(planned_init(&planned, &it, "cublaslt"));
        for (int64_t m = 1; m <= 33; m++) {
            device_sample_clear(&it);
            planned_run(&planned, &it, m);
            judge(&it, m, texts[i], "cublaslt");
        }
        planned_fini(&planned);
        device_sample_fini(&it);
    }
}

/* Operands aligned to 16 bytes and no more. */
static void smallest_alignment(void **state)
{
    (void)state;
    NEEDS_GPU();
    static const char *const texts[] = {"33x48x80:bias", "33x48x80:tensor:fp16:bias=fp16",
                                        "200x136x272:bias"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct device_sample it;
        assert_true(sample_init(&it.host, texts[i], SAMPLE_EXACT, 5));
        for (int operand = 0; operand < SAMPLE_OPERANDS; operand++)
            sample_unalign(&it.host, (enum sample_operand)operand, 16);
        device_sample_place(&it);
        (void)run_configs(&it, texts[i]);
        device_sample_fini(&it);
    }
}

/* The tensor core's sum keeps 13 bits or so: of everything with fast accumulation, of 128 products with the
 * other. */
static void random_values(void **state)
{
    (void)state;
    NEEDS_GPU();
    static const char *const texts[] = {"33x136x2064:fp32", "33x136x2064:fp32:precise",
                                        "129x264x1040:fp32:tensor", "129x264x1040:fp32:tensor:precise",
                                        "17x64x4096:fp32:a=e5m2:precise"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct device_sample it;
        device_sample_init(&it, texts[i], SAMPLE_RANDOM);
        const fp8r_matmul *matmul = &it.matmul;
        double k = (double)matmul->a.cols, own = (k + 2) * 0x1p-24;
        double wanted = matmul->accumulation == FP8R_ACCUMULATE_PRECISE ? 1.0 / 512 : (1.0 + k / 2048) / 512;
        for (int64_t j = 0; j < it.host.line_count * matmul->b.cols; j++)
            it.host.bounds[j] *= wanted / own;
        (void)run_configs(&it, texts[i]);
        device_sample_fini(&it);
    }
}

/* Planned before, captured without a call that a capture forbids, replayed twice. */
static void captures_and_replays(void **state)
{
    (void)state;
    NEEDS_GPU();
    static const char *const texts[] = {"33x4096x1024:bias", "500x1024x1024", "20x256x8192:tensor",
                                        "8*40x256x512:tensor"};
    static const int configs[] = {FP8R_CUBLASLT_HEURISTIC, FP8R_CUBLASLT_T128x32_C1x1_O5};
    for (size_t i = 0; i < 2 * sizeof texts / sizeof *texts; i++) {
        struct device_sample it;
        struct planned planned;
        cudaGraph_t graph;
        cudaGraphExec_t runnable;
        char label[80];
        snprintf(label, sizeof label, "cublaslt:%s", fp8r_cublaslt_config_names[configs[i % 2]]);
        device_sample_init(&it, texts[i / 2], SAMPLE_EXACT);
        if (!planned_init(&planned, &it, label)) fail_msg("%s: %s", texts[i / 2], fp8r_last_error());
        CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
        planned_run(&planned, &it, it.matmul.a.rows);
        CUDA(cudaStreamEndCapture(stream, &graph));
        CUDA(cudaGraphInstantiate(&runnable, graph, 0));
        for (int replay = 0; replay < 2; replay++) {
            device_sample_clear(&it);
            CUDA(cudaGraphLaunch(runnable, stream));
            judge(&it, it.matmul.a.rows, texts[i / 2], label);
        }
        CUDA(cudaGraphExecDestroy(runnable));
        CUDA(cudaGraphDestroy(graph));
        planned_fini(&planned);
        device_sample_fini(&it);
    }
}

/* What a named configuration's class says: a row's bits do not depend on how many others there are. */
static void bits_of_a_class(void **state)
{
    (void)state;
    NEEDS_GPU();
    static const int64_t counts[] = {1, 2, 17, 64, 65, 300};
    struct device_sample it;
    device_sample_init(&it, "300x256x4096", SAMPLE_RANDOM);
    size_t row_bytes = 256 * sizeof(uint16_t), compared = 0;
    for (int config = 1; config < FP8R_CUBLASLT_CONFIGS; config++) {
        char label[80];
        unsigned char first[512], again[512];
        struct planned planned;
        snprintf(label, sizeof label, "cublaslt:%s", fp8r_cublaslt_config_names[config]);
        if (!planned_init(&planned, &it, label)) continue;
        for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
            device_sample_clear(&it);
            planned_run(&planned, &it, counts[i]);
            CUDA(cudaStreamSynchronize(stream));
            CUDA(cudaMemcpy(i == 0 ? first : again, it.matmul.out.data, row_bytes, cudaMemcpyDeviceToHost));
            if (i > 0 && memcmp(first, again, row_bytes) != 0)
                fail_msg("%s: row 0 has other bits at m=%lld", label, (long long)counts[i]);
            compared++;
        }
        planned_fini(&planned);
    }
    print_message("%d rows compared\n", (int)compared);
    device_sample_fini(&it);
}

/* supports never says yes to what then fails: shapes, pitches and alignments at random. */
static void a_yes_is_kept(void **state)
{
    (void)state;
    NEEDS_GPU();
    uint64_t random = 99;
    int yes = 0, no = 0;
    for (int i = 0; i < 300; i++) {
        char text[160];
        static const char *const outs[] = {"bf16", "fp16", "fp32"},
                                 *const scales[] = {"", ":tensor", ":sa=none:sb=none"},
                                 *const biases[] = {"", ":bias=bf16", ":bias=fp16"},
                                 *const more[] = {"", ":precise", ":a=e5m2"};
        int64_t steps[] = {1, 4, 8, 16};
        uint64_t bits = sample_random(&random);
        int64_t m = 1 + (int64_t)(bits & 127), n = (1 + (int64_t)(bits >> 8 & 31)) * steps[bits >> 16 & 3];
        int64_t k = (1 + (int64_t)(bits >> 20 & 31)) * steps[bits >> 28 & 3];
        int64_t batch = (bits >> 32 & 3) == 0 ? 3 : 1, pitch = bits >> 34 & 1 ? steps[bits >> 36 & 3] : 0;
        snprintf(text, sizeof text, "%lld*%lldx%lldx%lld:%s%s%s%s:lda=%lld:align=%d", (long long)batch,
                 (long long)m, (long long)n, (long long)k, outs[(bits >> 40) % 3], scales[(bits >> 44) % 3],
                 biases[(bits >> 48) % 3], more[(bits >> 52) % 3], (long long)(k + pitch),
                 (bits >> 56 & 7) ? 256 : 8);
        struct device_sample it;
        if (!sample_init(&it.host, text, SAMPLE_EXACT, 3)) fail_msg("%s: no sample", text);
        device_sample_place(&it);
        int taken = run_config(&it, FP8R_CUBLASLT_HEURISTIC, text) +
                    run_config(&it, 1 + i % (FP8R_CUBLASLT_CONFIGS - 1), text);
        yes += taken > 0;
        no += taken == 0;
        device_sample_fini(&it);
    }
    print_message("%d taken, %d refused\n", yes, no);
    assert_true(yes > 20 && no > 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exact_values),         cmocka_unit_test(every_number_of_rows),
        cmocka_unit_test(smallest_alignment),   cmocka_unit_test(random_values),
        cmocka_unit_test(captures_and_replays), cmocka_unit_test(bits_of_a_class),
        cmocka_unit_test(a_yes_is_kept),
    };
    return cmocka_run_group_tests_name("cublaslt on a GPU", tests, setup, teardown);
}
