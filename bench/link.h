#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "core/descriptor.h"
#include "core/result.h"

namespace troupe::bench {

/// The measured performance of TCP channels between two machines, one way.
struct LinkFigures {
  double latency = 0;    // Seconds for 64 bytes.
  double bandwidth = 0;  // Bytes per second for unencrypted tensors of 16 MiB.
  double encrypted = 0;  // Bytes per second, encrypted. Medians of alternating rounds.
};

/// The answering machine: waits at one address for a peer that knows the secret, and sends back
/// what it receives until the peer hangs up.
class LinkAnswer {
 public:
  /// `interface` is an address of this machine.
  static Result<LinkAnswer> listen(const std::string& interface);

  /// Returns what the other machine needs to know: "10.0.0.1:40112/SECRET".
  std::string address() const;
  /// Serves one peer. Returns an error if none has come within `patience`.
  Status serve(std::chrono::milliseconds patience);

 private:
  Descriptor listening_;
  std::string interface_;
  std::uint64_t secret_ = 0;
};

/// Measures as the asking machine, given the address that the answering one printed.
Result<LinkFigures> ask_link(const std::string& address, std::chrono::milliseconds patience);

}  // namespace troupe::bench
