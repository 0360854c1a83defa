#pragma once

#include <caf/all.hpp>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "actors/messages.h"
#include "actors/nodes/may.h"
#include "actors/player_id.h"
#include "core/memory/tensor.h"
#include "core/result.h"
#include "core/value.h"
#include "transport/wire/wire.h"

namespace troupe::actors {

/// The messages between players that may go to another process.
using Travelling =
    std::tuple<Play, Activation, Targets, Gradient, LoanFor, Taken, StepGradients, Norms,
               Divergence, NewWeights, StepDone, LateGradients, MicroBatchLoss, RoundPlayed, Pulse,
               TakeSnapshot, Snapshot, KeepStep, StateCopy, Kept>;

/// A message in transit: its fields, bulk data as bytes, and tensors.
struct WireMessage {
  std::string type;
  Value body = Value::Map{};
  std::string bytes;
  std::vector<Tensor> tensors;
};

/// Encodes a message. Tensors are shared; only moments, which the next step changes, are copied.
template <class Message>
WireMessage to_wire_message(const Message& message, MemoryPool& memory);

/// Converts a dispatch without tensors into a control message, for the connection of head and node.
transport::Message as_message(PlayerId to, WireMessage wire_message);
struct AddressedDispatch {
  PlayerId to;
  WireMessage wire_message;
};
Result<AddressedDispatch> as_wire_message(transport::Message message);

/// Decodes the start state that a head sends to an optimizer's process before the players exist.
Result<Snapshot> to_snapshot(WireMessage wire_message);

/// Sends the message to its player if the sender may send it (may.h). Returns an error otherwise.
Status deliver(WireMessage wire_message, const Sender& from, const RunSpec& spec,
               const caf::actor& to);

}  // namespace troupe::actors
