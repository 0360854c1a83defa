# Debian's libmsgpack-cxx-dev: headers alone. Its own CMake file bears another name than its package
# and asks for Boost, which MSGPACK_NO_BOOST does without.
find_path(MsgpackCxx_INCLUDE_DIR msgpack.hpp)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(MsgpackCxx REQUIRED_VARS MsgpackCxx_INCLUDE_DIR)
if(MsgpackCxx_FOUND AND NOT TARGET MsgpackCxx::MsgpackCxx)
  add_library(MsgpackCxx::MsgpackCxx INTERFACE IMPORTED)
  set_target_properties(MsgpackCxx::MsgpackCxx PROPERTIES
    INTERFACE_INCLUDE_DIRECTORIES "${MsgpackCxx_INCLUDE_DIR}"
    INTERFACE_COMPILE_DEFINITIONS "MSGPACK_NO_BOOST;MSGPACK_DEFAULT_API_VERSION=3")
endif()
