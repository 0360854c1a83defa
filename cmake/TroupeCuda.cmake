# Whether GPUs are built for: where a CUDA toolkit is found, if not told otherwise.
set(TROUPE_CUDA AUTO CACHE STRING "AUTO, ON or OFF: kernels for GPUs")

set(TROUPE_HAS_CUDA OFF)
set(TROUPE_HAS_TENSOR_CORES OFF)
set(TROUPE_HAS_NCCL OFF)
if(NOT TROUPE_CUDA STREQUAL "OFF" AND NOT TROUPE_SANITIZE)
  include(CheckLanguage)
  check_language(CUDA)
  if(NOT CMAKE_CUDA_COMPILER AND EXISTS /usr/local/cuda/bin/nvcc)
    # The toolkit's own place, which is seldom in PATH.
    unset(CMAKE_CUDA_COMPILER CACHE)
    set(CMAKE_CUDA_COMPILER /usr/local/cuda/bin/nvcc)
  endif()
  if(CMAKE_CUDA_COMPILER)
    # One for the machine that builds cannot be chosen, since it may have no GPU: code for Hopper, and
    # what the driver of any other from Ampere on makes its own of.
    if(NOT CMAKE_CUDA_ARCHITECTURES)
      set(CMAKE_CUDA_ARCHITECTURES "80-virtual;90-real")
    endif()
    enable_language(CUDA)
    # CMake 3.25 does not know how this language level is called.
    if(NOT DEFINED CMAKE_CUDA20_STANDARD_COMPILE_OPTION)
      set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION "-std=c++20")
      set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION "-std=c++20")
    endif()
    set(CMAKE_CUDA_FLAGS_RELEASE "-O3")  # assert stays on.
    set(CMAKE_CUDA_STANDARD 20)
    set(CMAKE_CUDA_STANDARD_REQUIRED ON)
    find_package(CUDAToolkit REQUIRED)
    set(TROUPE_HAS_CUDA ON)
    # Of both the headers alone. Devices described by JSON are young in cuDNN, and no earlier version
    # has been tried.
    find_package(CUDNN 9.19 QUIET)
    find_path(CUBLASLT_INCLUDE_DIR cublasLt.h HINTS ${CUDAToolkit_INCLUDE_DIRS})
    if(CUDNN_FOUND AND CUBLASLT_INCLUDE_DIR)
      set(TROUPE_HAS_TENSOR_CORES ON)
    endif()
    # Several communicators can be aborted in one group since then.
    find_package(NCCL 2.22 QUIET)
    if(NCCL_FOUND)
      set(TROUPE_HAS_NCCL ON)
    endif()
  elseif(TROUPE_CUDA STREQUAL "ON")
    message(FATAL_ERROR "TROUPE_CUDA is ON, but there is no CUDA compiler; name it by CUDACXX")
  endif()
endif()
message(STATUS "GPUs: ${TROUPE_HAS_CUDA}")
message(STATUS "cuBLASLt and cuDNN, for the tensor cores of GPUs: ${TROUPE_HAS_TENSOR_CORES}")
message(STATUS "NCCL, for links between GPUs: ${TROUPE_HAS_NCCL}")
