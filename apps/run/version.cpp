#include "apps/run/version.h"

#include <hwy/highway.h>
#include <xxhash.h>

#include <CLI/Version.hpp>
#include <caf/config.hpp>
#include <msgpack/version.hpp>
#include <nlohmann/detail/abi_macros.hpp>
#if __has_include(<toml++/impl/version.hpp>)  // toml++ has this header since 3.4 (Debian 13).
#include <toml++/impl/version.hpp>
#else
#include <toml++/impl/version.h>
#endif

#include "apps/gpu/gpus.h"
#include "transport/channels/library.h"

namespace troupe::apps {
namespace {

#ifdef __clang__
constexpr const char* compiler = "clang++ " __clang_version__;
#else
constexpr const char* compiler = "g++ " __VERSION__;
#endif

std::string dotted(int major, int minor, int patch) {
  return std::to_string(major) + "." + std::to_string(minor) + "." + std::to_string(patch);
}

/// Formats a version of CAF or xxHash, which use two digits for each part.
std::string dotted(unsigned number) {
  return dotted(static_cast<int>(number / 10000), static_cast<int>(number / 100 % 100),
                static_cast<int>(number % 100));
}

std::string row(std::string name, const std::string& version) {
  name.resize(14, ' ');
  return "\n" + name + version;
}

}  // namespace

std::string version_text() {
  const auto zeromq = transport::zeromq_library();
  const auto openssl = transport::openssl_library();
  const auto gpus = gpu_libraries();
  return "troupe " TROUPE_VERSION " (" + std::string(commit) + ")" + row("compiler", compiler) +
         row("CAF", dotted(CAF_VERSION)) +
         row("ZeroMQ",
             zeromq.found + (zeromq.has_curve ? ", with CURVE" : ", without CURVE") +
                 (zeromq.found == zeromq.compiled ? "" : "; compiled for " + zeromq.compiled)) +
         row("OpenSSL", openssl.found + ", " + openssl.cipher + " for tensors") +
         row("msgpack",
             dotted(MSGPACK_VERSION_MAJOR, MSGPACK_VERSION_MINOR, MSGPACK_VERSION_REVISION)) +
         row("Highway", dotted(HWY_MAJOR, HWY_MINOR, HWY_PATCH)) +
         row("xxHash", dotted(XXH_versionNumber())) +
         row("tomlplusplus", dotted(TOML_LIB_MAJOR, TOML_LIB_MINOR, TOML_LIB_PATCH)) +
         row("nlohmann-json", dotted(NLOHMANN_JSON_VERSION_MAJOR, NLOHMANN_JSON_VERSION_MINOR,
                                     NLOHMANN_JSON_VERSION_PATCH)) +
         row("CLI11", CLI11_VERSION) + row("GPUs", gpus ? *gpus : gpus.error().text);
}

}  // namespace troupe::apps
