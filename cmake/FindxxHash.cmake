# Debian's libxxhash-dev ships a .pc file and no CMake configuration.
find_path(xxHash_INCLUDE_DIR xxhash.h)
find_library(xxHash_LIBRARY xxhash)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(xxHash REQUIRED_VARS xxHash_LIBRARY xxHash_INCLUDE_DIR)
if(xxHash_FOUND AND NOT TARGET xxHash::xxHash)
  add_library(xxHash::xxHash UNKNOWN IMPORTED)
  set_target_properties(xxHash::xxHash PROPERTIES
    IMPORTED_LOCATION "${xxHash_LIBRARY}" INTERFACE_INCLUDE_DIRECTORIES "${xxHash_INCLUDE_DIR}")
  # The same sums with the widest instructions that the processor has: three times as fast with AVX-512.
  include(CheckLibraryExists)
  check_library_exists("${xxHash_LIBRARY}" XXH3_64bits_withSeed_dispatch "" xxHash_CHOOSES_INSTRUCTIONS)
  if(xxHash_CHOOSES_INSTRUCTIONS)
    target_compile_definitions(xxHash::xxHash INTERFACE XXHASH_CHOOSES_INSTRUCTIONS)
  endif()
endif()
