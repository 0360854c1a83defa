# Debian's libzmq3-dev ships a .pc file and no CMake configuration. With cppzmq's header, which is
# in a package of its own.
find_path(ZeroMQ_INCLUDE_DIR zmq.h)
find_path(ZeroMQ_cppzmq_INCLUDE_DIR zmq.hpp)
find_library(ZeroMQ_LIBRARY zmq)
if(EXISTS "${ZeroMQ_INCLUDE_DIR}/zmq.h")
  file(STRINGS "${ZeroMQ_INCLUDE_DIR}/zmq.h" lines REGEX "^#define ZMQ_VERSION_(MAJOR|MINOR|PATCH) [0-9]+")
  string(REGEX REPLACE "[^0-9;]" "" numbers "${lines}")
  list(JOIN numbers "." ZeroMQ_VERSION)
endif()
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(ZeroMQ
  REQUIRED_VARS ZeroMQ_LIBRARY ZeroMQ_INCLUDE_DIR ZeroMQ_cppzmq_INCLUDE_DIR
  VERSION_VAR ZeroMQ_VERSION)
if(ZeroMQ_FOUND AND NOT TARGET ZeroMQ::ZeroMQ)
  add_library(ZeroMQ::ZeroMQ UNKNOWN IMPORTED)
  set_target_properties(ZeroMQ::ZeroMQ PROPERTIES
    IMPORTED_LOCATION "${ZeroMQ_LIBRARY}"
    INTERFACE_INCLUDE_DIRECTORIES "${ZeroMQ_INCLUDE_DIR};${ZeroMQ_cppzmq_INCLUDE_DIR}")
endif()
