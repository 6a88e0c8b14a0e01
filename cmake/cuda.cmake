# nvcc and the toolkit: CUDA files are C with templates, cudart is linked statically.
set(CMAKE_CUDA_ARCHITECTURES OFF)
enable_language(CUDA)
find_package(CUDAToolkit 13.0 REQUIRED)
set(CMAKE_CUDA_STANDARD 17)
set(CMAKE_CUDA_VISIBILITY_PRESET hidden)
set(CMAKE_CUDA_RUNTIME_LIBRARY Static)
set(CMAKE_CUDA_FLAGS_RELWITHDEBINFO "-O3")
# The host side of a .cu file must not need the C++ library. Kernels are launched by cudaLaunchKernelExC, so that the stubs
# behind <<<>>>, whose statics would need the guards left out here, are never run.
string(APPEND CMAKE_CUDA_FLAGS " -Xcompiler=-fno-exceptions,-fno-rtti,-fno-threadsafe-statics")
set(cuda_runtime CUDA::cudart_static)
add_compile_definitions(FP8R_HAS_CUDA=1)
