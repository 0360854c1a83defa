#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "transport/channels/door.h"
#include "transport/channels/frame.h"
#include "transport/channels/key_agreement.h"

/// The rules by which doors admit senders. They use no socket, so that a simulated network can
/// follow them as well.
namespace troupe::transport {

/// Returns the hello of a sender that does not encrypt.
Hello hello_of(const Sending& sending, Carrier carrier, Checksums checksums);

/// Judges a hello as far as the door alone can.
Verdict judge_at_door(const Hello& hello, const DoorOrder& order, Carrier carrier);

/// The decision of a receiver whose token a sender has.
struct Admission {
  Verdict verdict = Verdict::welcome;
  std::optional<Agreement> agreement;  // Set for a welcome sender that encrypts.
};
/// Judges a hello at a receiver over TCP. `stays_here`: the sender is on this machine.
Admission judge_at_receiver(const Hello& hello, const KeyOffer& offer, const Receiving& receiving,
                            bool stays_here);

/// Returns the counter for a verdict, or for `garbage` if it is none.
std::uint64_t DoorCounters::*counter_of(Verdict verdict);
/// Explains a verdict to the sender.
std::string to_text(Verdict verdict);

}  // namespace troupe::transport
