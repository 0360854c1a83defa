#include "transport/channels/library.h"

#include <openssl/crypto.h>
#include <zmq.h>

#include "transport/channels/record_seal.h"

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

OpenSslLibrary openssl_library() {
  const auto ciphers = ciphers_here();
  const auto has = [&](Cipher cipher) {
    return (ciphers & static_cast<std::uint32_t>(cipher)) != 0;
  };
  return {OpenSSL_version(OPENSSL_VERSION_STRING), has(Cipher::aes256_gcm) ? "AES-256-GCM"
                                                   : has(Cipher::chacha20_poly1305)
                                                       ? "ChaCha20-Poly1305"
                                                       : "no cipher"};
}

}  // namespace troupe::transport
