#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "core/descriptor.h"
#include "core/result.h"

namespace troupe::bench {

/// What TCP channels between two machines reach, one way.
struct LinkFigures {
  double latency = 0;    // Seconds, of 64 bytes.
  double bandwidth = 0;  // Bytes in a second, of tensors of 16 MiB in the clear,
  double encrypted = 0;  // and encrypted. The median of rounds in turn.
};

/// The machine that answers: waits at one address for one who knows the secret, and sends back what
/// comes until that one hangs up.
class LinkAnswer {
 public:
  /// `interface` is an address of this machine.
  static Result<LinkAnswer> listen(const std::string& interface);

  /// What the other machine needs to know: "10.0.0.1:40112/SECRET".
  std::string address() const;
  /// An error where nobody has come within the patience.
  Status serve(std::chrono::milliseconds patience);

 private:
  Descriptor listening_;
  std::string interface_;
  std::uint64_t secret_ = 0;
};

/// The machine that asks, by the address that the other one gave.
Result<LinkFigures> ask_link(const std::string& address, std::chrono::milliseconds patience);

}  // namespace troupe::bench
