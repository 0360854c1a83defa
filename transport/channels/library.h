#pragma once

#include <string>

namespace troupe::transport {

/// The ZeroMQ that this program uses.
struct ZeroMqLibrary {
  std::string compiled;  // The version of its headers.
  std::string found;     // And of the library that was linked when the program started.
  bool has_curve = false;
};
ZeroMqLibrary zeromq_library();

/// The OpenSSL that this program has found, and the cipher that it prefers for tensors.
struct OpenSslLibrary {
  std::string found;
  std::string cipher;
};
OpenSslLibrary openssl_library();

}  // namespace troupe::transport
