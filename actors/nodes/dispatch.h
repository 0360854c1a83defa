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

/// The messages that players of one run may have for those in another process.
using Travelling =
    std::tuple<Play, Activation, Targets, Gradient, LoanFor, Taken, StepGradients, Norms,
               Divergence, NewWeights, StepDone, LateGradients, MicroBatchLoss, RoundPlayed, Pulse,
               TakeSnapshot, Snapshot, KeepStep, StateCopy, Kept>;

/// One of them on its way: what it says in words, what would be too long for words, and numbers.
struct Dispatch {
  std::string type;
  Value body = Value::Map{};
  std::string bytes;
  std::vector<Tensor> tensors;
};

/// Tensors are shared with the message; only moments, which change with the next step, are copied.
template <class Message>
Dispatch to_dispatch(const Message& message, MemoryPool& memory);

/// One without tensors goes between a head and a node as a message of the control plane.
transport::Message as_message(PlayerId to, Dispatch dispatch);
struct AddressedDispatch {
  PlayerId to;
  Dispatch dispatch;
};
Result<AddressedDispatch> as_dispatch(transport::Message message);

/// What a head sends ahead to an optimizer's process: the state to begin with.
Result<Snapshot> to_snapshot(Dispatch dispatch);

/// Gives the message to its player, if its sender may say it (may.h). After an error nobody has it.
Status deliver(Dispatch dispatch, const Sender& from, const RunSpec& spec, const caf::actor& to);

}  // namespace troupe::actors
