# The toolchain for arm64: Debian's cross compiler, arm64 libraries in a folder of their own, and
# QEMU to run what comes out. `./dev test arm64` fills the folder.

set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)

get_filename_component(CMAKE_SYSROOT "${CMAKE_CURRENT_LIST_DIR}/../build/arm64-sysroot" ABSOLUTE)
if(NOT EXISTS "${CMAKE_SYSROOT}/complete")
  message(FATAL_ERROR "${CMAKE_SYSROOT} lacks the arm64 libraries; run ./dev test arm64, which fetches them")
endif()
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64 -L "${CMAKE_SYSROOT}")

# Compiles the plain kernels beside those for NEON, as on x86-64, so that the kernel tests can
# compare the two.
set(CMAKE_CXX_FLAGS_INIT -DHWY_COMPILE_ALL_ATTAINABLE)
