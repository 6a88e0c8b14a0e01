// Tensors, arguments and devices as the operators' kernels see them: owned handles on torch's C ABI, and what the C library is
// told of them. Shared by nothing but torch_ops.cpp: everything here is local to it.
// SPDX-License-Identifier: Apache-2.0
#ifndef FP8ROUTE_NATIVE_TORCH_TENSOR_H
#define FP8ROUTE_NATIVE_TORCH_TENSOR_H

#include <atomic>
#include <stdexcept>
#include <string>
#include <utility>

#include <fp8route/fp8route.h>

#include "torch_abi.h"

namespace {

constexpr int kDevicesMost = 64;
constexpr int kRankMost = 64;

TorchAbi torch;
int32_t type_cpu, type_cuda;
int32_t dtypes[6]; // torch's number of each FP8R_DTYPE_*
std::atomic<fp8r_context *> contexts[2][kDevicesMost];
fp8r_context *(*make_context)(int32_t kind, int32_t index); // NULL: last_error says why

[[noreturn]] void fail(const std::string &text)
{
    throw std::runtime_error(text);
}

void check(int error, const char *what)
{
    if (error != 0)
        fail(std::string("torch failed to ") + what);
}

void check_status(fp8r_status status)
{
    if (status != FP8R_OK)
        fail(fp8r_last_error());
}

// An owned tensor, or none.
class Tensor {
  public:
    Tensor() = default;
    explicit Tensor(TorchTensor handle) : handle_(handle) {}
    Tensor(Tensor &&other) noexcept : handle_(other.release()) {}
    Tensor &operator=(Tensor &&other) noexcept
    {
        std::swap(handle_, other.handle_);
        return *this;
    }
    Tensor(const Tensor &) = delete;
    Tensor &operator=(const Tensor &) = delete;
    ~Tensor()
    {
        if (handle_)
            torch.delete_tensor_object(handle_);
    }
    TorchTensor get() const { return handle_; }
    TorchTensor release()
    {
        TorchTensor handle = handle_;
        handle_ = nullptr;
        return handle;
    }
    explicit operator bool() const { return handle_ != nullptr; }

  private:
    TorchTensor handle_ = nullptr;
};

// Arguments as a boxed kernel gets them. An optional one is a pointer to its value, the reader's to free.
struct Arguments {
    TorchValue *next;

    Tensor tensor() { return Tensor(reinterpret_cast<TorchTensor>(*next++)); }
    Tensor optional_tensor()
    {
        auto *value = reinterpret_cast<TorchValue *>(*next++);
        Tensor tensor(value ? reinterpret_cast<TorchTensor>(*value) : nullptr);
        delete value;
        return tensor;
    }
    int32_t optional_type(int32_t otherwise)
    {
        auto *value = reinterpret_cast<TorchValue *>(*next++);
        int32_t type = value ? static_cast<int32_t>(*value) : otherwise;
        delete value;
        return type;
    }
    bool flag() { return (*next++ & 0xff) != 0; }
    int64_t integer() { return static_cast<int64_t>(*next++); }
};

struct Place {
    int32_t type, index;
    bool operator!=(const Place &other) const { return type != other.type || (type == type_cuda && index != other.index); }
    std::string text() const { return type == type_cpu ? "cpu" : "cuda:" + std::to_string(index); }
};

Place place_of(const Tensor &tensor)
{
    Place place;
    check(torch.get_device_type(tensor.get(), &place.type), "tell a device");
    check(torch.get_device_index(tensor.get(), &place.index), "tell a device");
    return place;
}

int32_t type_from_torch(int32_t type)
{
    for (int32_t i = FP8R_DTYPE_E4M3; i <= FP8R_DTYPE_FP32; i++)
        if (dtypes[i] == type)
            return i;
    return -1; // the library says which it takes
}

fp8r_array array_of(const Tensor &tensor)
{
    fp8r_array array{};
    int64_t rank, *sizes, *strides;
    int32_t type;
    check(torch.get_data_ptr(tensor.get(), &array.data), "tell an address");
    check(torch.get_dim(tensor.get(), &rank), "tell a rank");
    check(torch.get_sizes(tensor.get(), &sizes), "tell a shape");
    check(torch.get_strides(tensor.get(), &strides), "tell strides");
    check(torch.get_dtype(tensor.get(), &type), "tell a type");
    array.extents = sizes;
    array.strides = strides;
    array.rank = static_cast<int32_t>(rank);
    array.dtype = type_from_torch(type);
    return array;
}

// rank: kRankMost at most, which the caller has seen to.
Tensor make_packed(const int64_t *extents, int rank, int32_t torch_type, const Place &place)
{
    int64_t strides[kRankMost], step = 1;
    TorchTensor made;
    for (int i = rank - 1; i >= 0; i--) {
        strides[i] = step;
        step *= extents[i] > 0 ? extents[i] : 1;
    }
    check(torch.empty_strided(rank, extents, strides, torch_type, place.type, place.index, &made), "make the result");
    return Tensor(made);
}

void check_place(const char *name, const Tensor &tensor, const char *first, const Place &place)
{
    if (tensor && place_of(tensor) != place)
        fail(std::string(name) + " is on " + place_of(tensor).text() + ", " + first + " on " + place.text() +
             ": all must be on one device");
}

fp8r_context *context_of(const Place &place)
{
    int32_t kind = place.type == type_cuda ? FP8R_DEVICE_CUDA : FP8R_DEVICE_CPU;
    int32_t index = kind == FP8R_DEVICE_CUDA ? place.index : 0;
    if (index < 0 || index >= kDevicesMost)
        fail("device index is " + std::to_string(index) + ": at most " + std::to_string(kDevicesMost) + " devices");
    fp8r_context *context = contexts[kind][index].load(std::memory_order_acquire);
    if (!context)
        context = make_context(kind, index);
    if (!context)
        fail(fp8r_last_error());
    return context;
}

void *stream_of(const Place &place)
{
    void *stream = nullptr;
    if (place.type == type_cuda)
        check(torch.get_current_cuda_stream(place.index, &stream), "tell the current stream");
    return stream;
}

// A copy of a tensor whose rows have no common stride.
Tensor packed_copy(const Tensor &tensor)
{
    fp8r_array array = array_of(tensor);
    int32_t type;
    check(torch.get_dtype(tensor.get(), &type), "tell a type");
    Tensor copy = make_packed(array.extents, array.rank, type, place_of(tensor));
    check(torch.copy_(copy.get(), tensor.get(), 1), "copy a tensor");
    return copy;
}

void fill_with_one(const Tensor &scale)
{
    Tensor one = make_packed(nullptr, 0, dtypes[FP8R_DTYPE_FP32], Place{type_cpu, 0});
    void *data;
    check(torch.get_data_ptr(one.get(), &data), "tell an address");
    *static_cast<float *>(data) = 1.0f;
    check(torch.copy_(scale.get(), one.get(), 0), "fill a scale");
}

} // namespace

#endif
