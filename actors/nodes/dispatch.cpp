#include "actors/nodes/dispatch.h"

#include <cassert>
#include <utility>

#include "actors/nodes/dispatch_parts.h"
#include "actors/rt.h"
#include "transport/wire/message_types.h"

namespace troupe::actors {
namespace {

template <class Message>
concept Plain = transport::HasFields<Message>;

template <Plain Message>
Dispatch put(const Message& message, MemoryPool&) {
  auto dispatch = dispatch_of(Message::type, message);
  if constexpr (requires { Message::tensors(); })
    std::apply([&](auto... member) { (dispatch.tensors.push_back(message.*member), ...); },
               Message::tensors());
  return dispatch;
}
template <Plain Message>
Result<Message> take(Dispatch& from, const RunSpec&, const Message*) {
  auto message = read<Message>(from);
  if (!message) return message;
  if constexpr (requires { Message::tensors(); }) {
    constexpr auto wanted = std::tuple_size_v<decltype(Message::tensors())>;
    if (from.tensors.size() != wanted)
      return Error{from.type + ": found " + std::to_string(from.tensors.size()) +
                   " tensors, wanted " + std::to_string(wanted)};
    std::size_t i = 0;
    std::apply([&](auto... member) { ((*message.*member = std::move(from.tensors[i++])), ...); },
               Message::tensors());
  }
  return message;
}

/// Whether it was a Message; then `outcome` says whether it was a good one that may be said.
template <class Message>
bool deliver_as(Dispatch& dispatch, const Sender& from, const RunSpec& spec, const caf::actor& to,
                Status& outcome) {
  if (dispatch.type != Message::type) return false;
  auto message = take(dispatch, spec, static_cast<const Message*>(nullptr));
  outcome = message ? may(from, *message) : Status(message.error());
  if (outcome) rt::post(to, std::move(*message));
  return true;
}

template <class... Message>
Status deliver_as_any(Dispatch& dispatch, const Sender& from, const RunSpec& spec,
                      const caf::actor& to, std::tuple<Message...>*) {
  Status outcome = Done{};
  const bool known = (deliver_as<Message>(dispatch, from, spec, to, outcome) || ...);
  if (!known)
    return Error{"found a message of type '" + dispatch.type + "', which no player knows"};
  return outcome;
}

/// Whether a type is the type of one of these messages.
template <class... Message>
constexpr bool is_any(std::string_view type, std::tuple<Message...>*) {
  return ((type == Message::type) || ...);
}
constexpr bool players_take_all() {
  for (const auto& type : transport::message_types())
    if (type.handlers.has(transport::Handler::player) &&
        !is_any(type.name, static_cast<Travelling*>(nullptr)))
      return false;
  return true;
}
static_assert(players_take_all());

}  // namespace

template <class Message>
Dispatch to_dispatch(const Message& message, MemoryPool& memory) {
  return put(message, memory);
}

template Dispatch to_dispatch(const Play&, MemoryPool&);
template Dispatch to_dispatch(const Activation&, MemoryPool&);
template Dispatch to_dispatch(const Targets&, MemoryPool&);
template Dispatch to_dispatch(const Gradient&, MemoryPool&);
template Dispatch to_dispatch(const LoanFor&, MemoryPool&);
template Dispatch to_dispatch(const Taken&, MemoryPool&);
template Dispatch to_dispatch(const StepGradients&, MemoryPool&);
template Dispatch to_dispatch(const Norms&, MemoryPool&);
template Dispatch to_dispatch(const Divergence&, MemoryPool&);
template Dispatch to_dispatch(const NewWeights&, MemoryPool&);
template Dispatch to_dispatch(const StepDone&, MemoryPool&);
template Dispatch to_dispatch(const LateGradients&, MemoryPool&);
template Dispatch to_dispatch(const MicroBatchLoss&, MemoryPool&);
template Dispatch to_dispatch(const RoundPlayed&, MemoryPool&);
template Dispatch to_dispatch(const Pulse&, MemoryPool&);
template Dispatch to_dispatch(const TakeSnapshot&, MemoryPool&);
template Dispatch to_dispatch(const Snapshot&, MemoryPool&);
template Dispatch to_dispatch(const KeepStep&, MemoryPool&);
template Dispatch to_dispatch(const StateCopy&, MemoryPool&);
template Dispatch to_dispatch(const Kept&, MemoryPool&);

Status deliver(Dispatch dispatch, const Sender& from, const RunSpec& spec, const caf::actor& to) {
  // A schedule is made to read this one.
  if (dispatch.type == Play::type && from.process != from.placement.head())
    return Error{dispatch.type + ": found it from process " + std::to_string(from.process) +
                 ", but only the head gives this order"};
  return deliver_as_any(dispatch, from, spec, to, static_cast<Travelling*>(nullptr));
}

transport::Message as_message(PlayerId to, Dispatch dispatch) {
  assert(dispatch.tensors.empty());
  transport::Message message;
  message.type = std::move(dispatch.type);
  message.body = std::move(dispatch.body);
  message.body.set("to", transport::to_value(to));
  if (!dispatch.bytes.empty()) message.payload.push_back(std::move(dispatch.bytes));
  return message;
}

Result<AddressedDispatch> as_dispatch(transport::Message message) {
  const Value* to = message.body.find("to");
  if (!to) return Error{message.type + ": names no player"};
  const auto player = transport::from_value<PlayerId>(*to, message.type + ".to");
  if (!player) return player.error();
  AddressedDispatch addressed{*player, {message.type, std::move(message.body), {}, {}}};
  if (!message.payload.empty()) addressed.dispatch.bytes = std::move(message.payload[0]);
  return addressed;
}

}  // namespace troupe::actors
