#pragma once

#include <string>

namespace troupe::transport {

/// The version of ZeroMQ that this program uses.
struct ZeroMqLibrary {
  std::string compiled;  // The version of its headers.
  std::string found;     // The version of the library loaded at program start.
  bool has_curve = false;
};
ZeroMqLibrary zeromq_library();

/// The version of OpenSSL loaded at program start, and the preferred cipher for tensors.
struct OpenSslLibrary {
  std::string found;
  std::string cipher;
};
OpenSslLibrary openssl_library();

}  // namespace troupe::transport
