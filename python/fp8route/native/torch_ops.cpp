// The operators' fast path: boxed kernels from torch's dispatcher to the C library, nothing between them. What a shape
// means is fp8r_matmul_from_arrays' to say, here as in the fake implementations; the schemas are Python's.
// SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>

#include <cstring>

#include "torch_tensor.h"

namespace {

struct Product {
    Tensor a, b, scale_a, scale_b, bias, out;
    int32_t form = FP8R_FORM_PLAIN;
    int32_t out_type = 0; // torch's
    bool is_precise = false, is_invariant = false, is_static = false;

    fp8r_arrays arrays() const
    {
        fp8r_arrays arrays{};
        arrays.struct_size = sizeof arrays;
        arrays.form = form;
        arrays.accumulation = is_precise ? FP8R_ACCUMULATE_PRECISE : FP8R_ACCUMULATE_FAST;
        arrays.numerics = is_invariant ? FP8R_NUMERICS_BATCH_INVARIANT : FP8R_NUMERICS_ANY;
        arrays.flags = is_static ? uint32_t{FP8R_WEIGHTS_STATIC} : 0u;
        arrays.a = array_of(a);
        arrays.b = array_of(b);
        if (scale_a)
            arrays.scale_a = array_of(scale_a);
        if (scale_b)
            arrays.scale_b = array_of(scale_b);
        if (bias)
            arrays.bias = array_of(bias);
        if (out)
            arrays.out = array_of(out);
        else
            arrays.out.dtype = type_from_torch(out_type);
        return arrays;
    }

    void check_places(const Place &place) const
    {
        const char *first = form == FP8R_FORM_LINEAR ? "x" : "a";
        check_place(form == FP8R_FORM_LINEAR ? "weight" : "b", b, first, place);
        check_place(form == FP8R_FORM_LINEAR ? "x_scale" : "scale_a", scale_a, first, place);
        check_place(form == FP8R_FORM_LINEAR ? "weight_scale" : "scale_b", scale_b, first, place);
        check_place("bias", bias, first, place);
        check_place("out", out, first, place);
    }

    // The product of these tensors; leading dimensions that are not at one stride are copied first.
    void read(fp8r_matmul *matmul)
    {
        fp8r_status status;
        {
            fp8r_arrays given = arrays();
            status = fp8r_matmul_from_arrays(&given, matmul);
        }
        if (status == FP8R_ERROR_UNSUPPORTED) {
            a = packed_copy(a);
            if (scale_a && array_of(scale_a).rank <= kRankMost) // the library has not seen it yet
                scale_a = packed_copy(scale_a);
            fp8r_arrays given = arrays();
            status = fp8r_matmul_from_arrays(&given, matmul);
        }
        check_status(status);
    }

    void make_out(fp8r_matmul *matmul, const Place &place)
    {
        int64_t extents[kRankMost];
        fp8r_array like = array_of(a);
        std::memcpy(extents, like.extents, static_cast<size_t>(like.rank) * sizeof *extents);
        if (form == FP8R_FORM_BATCHED)
            extents[0] = matmul->out.batch;
        extents[like.rank - 1] = matmul->b.cols;
        out = make_packed(extents, like.rank, out_type, place);
        check(torch.get_data_ptr(out.get(), &matmul->out.data), "tell an address");
    }

    void run()
    {
        fp8r_matmul matmul;
        Place place = place_of(a);
        check_places(place);
        read(&matmul);
        if (!out)
            make_out(&matmul, place);
        fp8r_status status = fp8r_scaled_mm(context_of(place), &matmul, stream_of(place));
        if (status == FP8R_ERROR_UNSUPPORTED && (matmul.a.dtype == FP8R_DTYPE_BF16 || matmul.a.dtype == FP8R_DTYPE_FP16))
            status = run_in_two(&matmul, place);
        check_status(status);
    }

    // Where nothing takes a bf16 or fp16 a as it is, as in a capture, in which the library has no room for its codes: torch
    // has, and the codes are the same.
    static fp8r_status run_in_two(fp8r_matmul *matmul, const Place &place)
    {
        const int64_t extents[3] = {matmul->a.batch, matmul->a.rows, matmul->a.cols};
        Tensor codes = make_packed(extents, 3, dtypes[FP8R_DTYPE_E4M3], place);
        Tensor scale = make_packed(extents, 2, dtypes[FP8R_DTYPE_FP32], place);
        fp8r_matrix q = matmul->a, s = matmul->a;
        check(torch.get_data_ptr(codes.get(), &q.data), "tell an address");
        check(torch.get_data_ptr(scale.get(), &s.data), "tell an address");
        q.dtype = FP8R_DTYPE_E4M3;
        q.batch_stride = extents[1] * extents[2];
        q.row_stride = extents[2];
        q.col_stride = 1;
        s.dtype = FP8R_DTYPE_FP32;
        s.cols = 1;
        s.batch_stride = extents[1];
        s.row_stride = 1;
        s.col_stride = 1;
        fp8r_context *context = context_of(place);
        fp8r_status status = fp8r_quantize(context, &matmul->a, &q, &s, FP8R_SCALING_COMPUTE, stream_of(place));
        matmul->a = q;
        matmul->scale_a = s;
        return status == FP8R_OK ? fp8r_scaled_mm(context, matmul, stream_of(place)) : status;
    }
};

void read_modes(Arguments *arguments, Product *product)
{
    product->is_precise = arguments->flag();
    product->is_invariant = arguments->flag();
    product->is_static = arguments->flag();
}

// (a, b, scale_a, scale_b, bias, out_dtype, precise, invariant, static_weights) -> out
template <int32_t form> void scaled_mm(TorchValue *stack, uint64_t, uint64_t)
{
    Arguments arguments{stack};
    Product product;
    product.form = form;
    product.a = arguments.tensor();
    product.b = arguments.tensor();
    product.scale_a = arguments.optional_tensor();
    product.scale_b = arguments.optional_tensor();
    product.bias = arguments.optional_tensor();
    product.out_type = arguments.optional_type(dtypes[FP8R_DTYPE_BF16]);
    read_modes(&arguments, &product);
    product.run();
    stack[0] = reinterpret_cast<TorchValue>(product.out.release());
}

// (a, b, scale_a, scale_b, bias, precise, invariant, static_weights, out) -> ()
template <int32_t form> void scaled_mm_out(TorchValue *stack, uint64_t, uint64_t)
{
    Arguments arguments{stack};
    Product product;
    product.form = form;
    product.a = arguments.tensor();
    product.b = arguments.tensor();
    product.scale_a = arguments.optional_tensor();
    product.scale_b = arguments.optional_tensor();
    product.bias = arguments.optional_tensor();
    read_modes(&arguments, &product);
    product.out = arguments.tensor();
    product.run();
}

// (x, weight, weight_scale, bias, x_scale, out_dtype, precise, invariant, static_weights) -> out
void linear(TorchValue *stack, uint64_t, uint64_t)
{
    Arguments arguments{stack};
    Product product;
    product.form = FP8R_FORM_LINEAR;
    product.a = arguments.tensor();
    product.b = arguments.tensor();
    product.scale_b = arguments.optional_tensor();
    product.bias = arguments.optional_tensor();
    product.scale_a = arguments.optional_tensor();
    int32_t like;
    check(torch.get_dtype(product.a.get(), &like), "tell a type");
    bool is_half = like == dtypes[FP8R_DTYPE_BF16] || like == dtypes[FP8R_DTYPE_FP16];
    product.out_type = arguments.optional_type(is_half ? like : dtypes[FP8R_DTYPE_BF16]);
    read_modes(&arguments, &product);
    product.run();
    stack[0] = reinterpret_cast<TorchValue>(product.out.release());
}

struct Conversion {
    Tensor x, out, scale;

    void run(int32_t scaling)
    {
        Place place = place_of(x);
        check_place("out", out, "x", place);
        check_place("scale", scale, "x", place);
        fp8r_matrix in_matrix, out_matrix, scale_matrix;
        fp8r_status status = read(scaling, &in_matrix, &out_matrix, &scale_matrix);
        if (status == FP8R_ERROR_UNSUPPORTED) {
            x = packed_copy(x);
            status = read(scaling, &in_matrix, &out_matrix, &scale_matrix);
        }
        check_status(status);
        check_status(fp8r_quantize(context_of(place), &in_matrix, &out_matrix, &scale_matrix, scaling, stream_of(place)));
        bool is_empty = in_matrix.batch == 0 || in_matrix.rows == 0 || in_matrix.cols == 0;
        if (scaling == FP8R_SCALING_COMPUTE && is_empty)
            fill_with_one(scale); // the library touches nothing where there is nothing
    }

    fp8r_status read(int32_t scaling, fp8r_matrix *in_matrix, fp8r_matrix *out_matrix, fp8r_matrix *scale_matrix) const
    {
        fp8r_array arrays[3] = {array_of(x), array_of(out), array_of(scale)};
        return fp8r_quantize_from_arrays(&arrays[0], &arrays[1], &arrays[2], scaling, in_matrix, out_matrix,
                                         scale_matrix);
    }

    // Before anything is made in its shape: a rank that the library refuses. No other is larger than make_packed takes.
    void check_rank() const
    {
        fp8r_array like = array_of(x);
        fp8r_matrix matrix;
        if (like.rank > kRankMost)
            check_status(fp8r_quantize_from_arrays(&like, &like, &like, 0, &matrix, &matrix, &matrix));
    }

    void make_out()
    {
        check_rank();
        fp8r_array like = array_of(x);
        out = make_packed(like.extents, like.rank, dtypes[FP8R_DTYPE_E4M3], place_of(x));
    }

    // groups: 0 a row, 1 the whole tensor, 2 a column of a matrix
    void make_scale(int64_t groups)
    {
        fp8r_array like = array_of(x);
        int64_t extents[kRankMost] = {1, 1};
        int rank = groups == 1 ? 1 : like.rank;
        if (groups == 2 && like.rank != 2)
            fail("groups is 2 (column): x must be a matrix");
        if (groups == 2)
            extents[1] = like.extents[1];
        else if (groups == 0 && rank > 0)
            std::memcpy(extents, like.extents, static_cast<size_t>(rank) * sizeof *extents);
        if (groups == 0 && rank > 0)
            extents[rank - 1] = 1;
        scale = make_packed(extents, rank, dtypes[FP8R_DTYPE_FP32], place_of(x));
    }
};

// (x, groups) -> (out, scale)
void quantize(TorchValue *stack, uint64_t, uint64_t)
{
    Arguments arguments{stack};
    Conversion conversion;
    conversion.x = arguments.tensor();
    int64_t groups = arguments.integer();
    if (groups < 0 || groups > 2)
        fail("groups is " + std::to_string(groups) + ": it must be 0 (row), 1 (tensor) or 2 (column)");
    conversion.make_out();
    conversion.make_scale(groups);
    conversion.run(FP8R_SCALING_COMPUTE);
    stack[0] = reinterpret_cast<TorchValue>(conversion.out.release());
    stack[1] = reinterpret_cast<TorchValue>(conversion.scale.release());
}

// (x, out, scale) -> ()
void quantize_out(TorchValue *stack, uint64_t, uint64_t)
{
    Arguments arguments{stack};
    Conversion conversion;
    conversion.x = arguments.tensor();
    conversion.out = arguments.tensor();
    conversion.scale = arguments.tensor();
    conversion.run(FP8R_SCALING_COMPUTE);
}

// (x, scale) -> out
void quantize_given(TorchValue *stack, uint64_t, uint64_t)
{
    Arguments arguments{stack};
    Conversion conversion;
    conversion.x = arguments.tensor();
    conversion.scale = arguments.tensor();
    conversion.make_out();
    conversion.run(FP8R_SCALING_GIVEN);
    stack[0] = reinterpret_cast<TorchValue>(conversion.out.release());
}

// (x, scale, out) -> ()
void quantize_given_out(TorchValue *stack, uint64_t, uint64_t)
{
    Arguments arguments{stack};
    Conversion conversion;
    conversion.x = arguments.tensor();
    conversion.scale = arguments.tensor();
    conversion.out = arguments.tensor();
    conversion.run(FP8R_SCALING_GIVEN);
}

const struct {
    const char *name;
    TorchKernel kernel;
} kernels[] = {
    {"scaled_mm", scaled_mm<FP8R_FORM_PLAIN>},
    {"scaled_mm_out", scaled_mm_out<FP8R_FORM_PLAIN>},
    {"bmm", scaled_mm<FP8R_FORM_BATCHED>},
    {"bmm_out", scaled_mm_out<FP8R_FORM_BATCHED>},
    {"linear", linear},
    {"quantize", quantize},
    {"quantize_out", quantize_out},
    {"quantize_given", quantize_given},
    {"quantize_given_out", quantize_given_out},
};

void *loaded(const char *name)
{
    return dlopen(name, RTLD_LAZY | RTLD_NOLOAD);
}

// Fills the table; the first name that this torch lacks, or NULL.
const char *find_torch()
{
    void *library = loaded("libtorch_cpu.so");
    if (!library)
        return "libtorch_cpu.so";
#define FIND(result, name, parameters)                                                                                  \
    *reinterpret_cast<void **>(&torch.name) = dlsym(library, "aoti_torch_" #name);                                      \
    if (!torch.name)                                                                                                    \
        return "aoti_torch_" #name;
    TORCH_ABI_FUNCTIONS(FIND)
#undef FIND
    if (void *cuda = loaded("libtorch_cuda.so"))
        *reinterpret_cast<void **>(&torch.get_current_cuda_stream) = dlsym(cuda, "aoti_torch_get_current_cuda_stream");
    return nullptr;
}

const char *register_kernels(const char *key)
{
    TorchLibrary library;
    if (torch.library_init_impl("fp8route", key, __FILE__, __LINE__, &library) != 0)
        return "a library of implementations";
    for (const auto &entry : kernels)
        if (torch.library_impl(library, entry.name, entry.kernel) != 0)
            return entry.name;
    return nullptr; // the library lives as long as the process
}

} // namespace

// Registers the kernels for CPU, and for CUDA where torch has it. make: called where a device has no context yet.
// NULL, or what is missing; then nothing may be registered. *has_cuda says whether CUDA's are.
extern "C" __attribute__((visibility("default"))) const char *fp8r_torch_start(
    fp8r_context *(*make)(int32_t kind, int32_t index), int32_t *has_cuda)
{
    if (const char *missing = find_torch())
        return missing;
    make_context = make;
    type_cpu = torch.device_type_cpu();
    type_cuda = torch.device_type_cuda();
    const int32_t types[6] = {-1,
                              torch.dtype_float8_e4m3fn(),
                              torch.dtype_float8_e5m2(),
                              torch.dtype_bfloat16(),
                              torch.dtype_float16(),
                              torch.dtype_float32()};
    std::memcpy(dtypes, types, sizeof dtypes);
    *has_cuda = torch.get_current_cuda_stream ? 1 : 0;
    if (const char *failed = register_kernels("CPU"))
        return failed;
    return *has_cuda ? register_kernels("CUDA") : nullptr;
}

// The context that products on a device use from now on.
extern "C" __attribute__((visibility("default"))) void fp8r_torch_set_context(int32_t kind, int32_t index,
                                                                              fp8r_context *context)
{
    if (kind >= 0 && kind < 2 && index >= 0 && index < kDevicesMost)
        contexts[kind][index].store(context, std::memory_order_release);
}
