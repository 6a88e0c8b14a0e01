// torch's stable C ABI as this extension uses it: the functions' types, and one table that is filled by name from the
// torch that the process has loaded. So the extension is built without torch and fits every version that has them.
// SPDX-License-Identifier: Apache-2.0
#ifndef FP8ROUTE_NATIVE_TORCH_ABI_H
#define FP8ROUTE_NATIVE_TORCH_ABI_H

#include <cstdint>

using TorchTensor = void *;  // an owned reference to a tensor
using TorchValue = uint64_t; // one argument or result of a boxed kernel
using TorchLibrary = void *;
using TorchKernel = void (*)(TorchValue *stack, uint64_t arguments, uint64_t results);

// A function of type int answers 0 where it succeeded.
#define TORCH_ABI_FUNCTIONS(X)                                                                                          \
    X(int, delete_tensor_object, (TorchTensor))                                                                         \
    X(int, get_data_ptr, (TorchTensor, void **))                                                                        \
    X(int, get_dim, (TorchTensor, int64_t *))                                                                           \
    X(int, get_sizes, (TorchTensor, int64_t **))                                                                        \
    X(int, get_strides, (TorchTensor, int64_t **))                                                                      \
    X(int, get_dtype, (TorchTensor, int32_t *))                                                                         \
    X(int, get_device_type, (TorchTensor, int32_t *))                                                                   \
    X(int, get_device_index, (TorchTensor, int32_t *))                                                                  \
    X(int, empty_strided,                                                                                               \
      (int64_t rank, const int64_t *sizes, const int64_t *strides, int32_t dtype, int32_t device, int32_t index,        \
       TorchTensor *))                                                                                                  \
    X(int, copy_, (TorchTensor to, TorchTensor from, int32_t non_blocking))                                             \
    X(int, library_init_impl, (const char *space, const char *key, const char *file, uint32_t line, TorchLibrary *))    \
    X(int, library_impl, (TorchLibrary, const char *name, TorchKernel))                                                 \
    X(int32_t, device_type_cpu, (void))                                                                                 \
    X(int32_t, device_type_cuda, (void))                                                                                \
    X(int32_t, dtype_float8_e4m3fn, (void))                                                                             \
    X(int32_t, dtype_float8_e5m2, (void))                                                                               \
    X(int32_t, dtype_bfloat16, (void))                                                                                  \
    X(int32_t, dtype_float16, (void))                                                                                   \
    X(int32_t, dtype_float32, (void))

struct TorchAbi {
#define FIELD(result, name, parameters) result(*name) parameters;
    TORCH_ABI_FUNCTIONS(FIELD)
#undef FIELD
    int (*get_current_cuda_stream)(int32_t index, void **stream); // of torch's CUDA part: NULL where it has none
};

#endif
