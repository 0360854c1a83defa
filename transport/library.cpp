#include "transport/library.h"

#include <zmq.h>

namespace troupe::transport {
namespace {

std::string version_text(int major, int minor, int patch) {
  return std::to_string(major) + "." + std::to_string(minor) + "." + std::to_string(patch);
}

}  // namespace

ZeroMqLibrary zeromq_library() {
  int major = 0, minor = 0, patch = 0;
  zmq_version(&major, &minor, &patch);
  return {version_text(ZMQ_VERSION_MAJOR, ZMQ_VERSION_MINOR, ZMQ_VERSION_PATCH),
          version_text(major, minor, patch), zmq_has("curve") == 1};
}

}  // namespace troupe::transport
