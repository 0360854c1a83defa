# What every target of the project shares: language, warnings, floating point, sanitizers.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

# A broken invariant ends the process in every build, so assert stays on: no -DNDEBUG.
set(CMAKE_CXX_FLAGS_RELEASE "-O2")
set(CMAKE_CXX_FLAGS_DEBUG "-O0 -g")
set(CMAKE_CXX_FLAGS_RELWITHDEBINFO "-O2 -g")

set(TROUPE_SANITIZE "" CACHE STRING "address, thread or fuzzer: build with that sanitizer")

find_program(TROUPE_CCACHE ccache)
if(TROUPE_CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${TROUPE_CCACHE})
endif()

# Several sources are compiled as one: headers, above all those of CAF, of the command line and of the
# standard library, take longer to read than what includes them. So names within a file's unnamed
# namespace must be its library's only ones; a file for which that is asked too much is left out of it.
set(CMAKE_UNITY_BUILD ON CACHE BOOL "compile several sources at once")
set(CMAKE_UNITY_BUILD_BATCH_SIZE 8)

# A warning ends the build with the compilers of Debian 12 and 13, whose warnings are known. Other versions warn of other
# things, and a sanitizer makes the compiler see what is not there.
set(strict OFF)
set(known_compilers "GNU 12" "GNU 14" "Clang 14" "Clang 19")
string(REGEX MATCH "^[0-9]+" major "${CMAKE_CXX_COMPILER_VERSION}")
if("${CMAKE_CXX_COMPILER_ID} ${major}" IN_LIST known_compilers AND NOT TROUPE_SANITIZE)
  set(strict ON)
endif()

set(known_processors x86_64 amd64 AMD64 aarch64 arm64)
if(NOT CMAKE_SYSTEM_PROCESSOR IN_LIST known_processors)
  message(FATAL_ERROR "This machine's processor is ${CMAKE_SYSTEM_PROCESSOR}; Troupe is for x86-64 and arm64 "
                      "(kernels/cpu/parts/targets.h names the instruction sets)")
endif()

# -ffp-contract=off: the compiler must not fuse a multiplication and an addition where the code does
# not say so, or bits would depend on the compiler's mood.
add_library(troupe_settings INTERFACE)
target_include_directories(troupe_settings INTERFACE "${CMAKE_SOURCE_DIR}")
# The standard library checks indices and iterators in every build: a mistake ends the process, and writes nowhere else.
target_compile_definitions(troupe_settings INTERFACE $<$<COMPILE_LANGUAGE:CXX>:_GLIBCXX_ASSERTIONS>)
# -Wno-subobject-linkage: a class of a source's own is one of a header's, seen from where several
# sources are one.
target_compile_options(troupe_settings INTERFACE $<$<COMPILE_LANGUAGE:CXX>:
  -Wall -Wextra -ffp-contract=off
  $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>
  $<$<BOOL:${strict}>:-Werror>>)

if(TROUPE_SANITIZE STREQUAL "address")
  set(flags -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer)
elseif(TROUPE_SANITIZE STREQUAL "thread")
  set(flags -fsanitize=thread)
elseif(TROUPE_SANITIZE STREQUAL "fuzzer")
  set(flags -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=undefined)
endif()
if(flags)
  # As the sanitizers' own documentation has it: compiles in half the time of -O2 -g, and line
  # numbers are all that a report needs.
  add_compile_options(${flags} -O1 -g1)
  add_link_options(${flags})
endif()

# troupe_library(NAME SOURCES... [LINKS TARGETS...] [PRIVATE_LINKS TARGETS...]): one per folder.
function(troupe_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINKS;PRIVATE_LINKS" ${ARGN})
  add_library(troupe_${name} STATIC ${ARG_SOURCES})
  target_link_libraries(troupe_${name} PUBLIC troupe_settings ${ARG_LINKS}
                                       PRIVATE ${ARG_PRIVATE_LINKS})
endfunction()
