#include "transport/channels/door_rules.h"

namespace troupe::transport {

Hello hello_of(const Sending& sending, Carrier carrier, Checksums checksums) {
  Hello hello;
  hello.carrier = carrier;
  hello.run = sending.epoch.run;
  hello.epoch = sending.epoch.number;
  hello.token = static_cast<std::uint64_t>(sending.token);
  hello.bytes = sending.bound.bytes;
  hello.parcels = sending.bound.parcels;
  hello.checksums = checksums == Checksums::on ? 1 : 0;
  return hello;
}

Verdict judge_at_door(const Hello& hello, const DoorOrder& order, Carrier carrier) {
  if (hello.version != channel_version) return Verdict::other_version;
  if (hello.run != order.epoch.run) return Verdict::other_run;
  if (hello.epoch != order.epoch.number) return Verdict::other_epoch;
  if (hello.carrier != carrier || hello.protection > Protection::sealed || hello.checksums > 1)
    return Verdict::other_terms;
  return Verdict::welcome;
}

Admission judge_at_receiver(const Hello& hello, const KeyOffer& offer, const Receiving& receiving,
                            bool stays_here) {
  if (hello.bytes != receiving.bound.bytes || hello.parcels != receiving.bound.parcels)
    return {Verdict::other_terms, {}};
  if (hello.protection == Protection::plain)
    return {receiving.keys && !stays_here ? Verdict::not_sealed : Verdict::welcome, {}};
  if (!receiving.keys) return {Verdict::other_terms, {}};
  const auto agreement = agree(*receiving.keys, hello, offer);
  if (!agreement) return {Verdict::not_proved, {}};
  return {Verdict::welcome, *agreement};
}

std::uint64_t DoorCounters::*counter_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::welcome:
      return &DoorCounters::welcome;
    case Verdict::other_run:
      return &DoorCounters::other_run;
    case Verdict::other_epoch:
      return &DoorCounters::other_epoch;
    case Verdict::unknown_token:
      return &DoorCounters::unknown_token;
    case Verdict::other_version:
    case Verdict::other_terms:
      return &DoorCounters::other_terms;
    case Verdict::not_sealed:
      return &DoorCounters::not_sealed;
    case Verdict::not_proved:
      return &DoorCounters::not_proved;
  }
  return &DoorCounters::garbage;
}

std::string to_text(Verdict verdict) {
  switch (verdict) {
    case Verdict::welcome:
      return "welcome";
    case Verdict::other_version:
      return "its protocol version differs from " + std::to_string(channel_version);
    case Verdict::other_run:
      return "it belongs to another run";
    case Verdict::other_epoch:
      return "it is in another attempt";
    case Verdict::unknown_token:
      return "it does not expect this token, or no longer";
    case Verdict::other_terms:
      return "it was created with another limit";
    case Verdict::not_sealed:
      return "it accepts encrypted tensors only; both processes need the keys that the head "
             "announced, or the head needs --plain-tensors";
    case Verdict::not_proved:
      return "it rejects the key of this process: the head announced another key";
  }
  return "its answer is malformed";
}

}  // namespace troupe::transport
