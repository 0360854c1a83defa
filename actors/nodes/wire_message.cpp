#include "actors/nodes/wire_message.h"

#include <cassert>
#include <utility>

#include "actors/caf_shim.h"
#include "actors/nodes/wire_message_parts.h"
#include "transport/wire/message_types.h"

namespace troupe::actors {
namespace {

template <class Message>
concept Plain = transport::HasFields<Message>;

/// A tensor that nobody needs is empty and does not travel.
void put_tensors(const Tensor& tensor, WireMessage& wire_message) {
  if (!tensor.empty()) wire_message.tensors.push_back(tensor);
}
/// A bundle without a stream is empty, too.
void put_tensors(const models::Bundle& bundle, WireMessage& wire_message) {
  put_tensors(bundle.stream, wire_message);
  for (const auto& kept : bundle.kept) put_tensors(kept, wire_message);
}

/// Moves all tensors of a message to a member. Returns false if there are more than it takes.
bool take_tensors(std::vector<Tensor>& tensors, Tensor& member) {
  if (tensors.size() > 1) return false;
  if (!tensors.empty()) member = std::move(tensors[0]);
  return true;
}
/// The receiver checks how many tensors the bundle has (tensor_bounds.h).
bool take_tensors(std::vector<Tensor>& tensors, models::Bundle& member) {
  if (tensors.empty()) return true;
  member.stream = std::move(tensors[0]);
  tensors.erase(tensors.begin());
  member.kept = std::move(tensors);
  return true;
}

template <Plain Message>
WireMessage put(const Message& message, MemoryPool&) {
  auto wire_message = wire_message_of(Message::type, message);
  if constexpr (requires { Message::tensors(); })
    std::apply([&](auto... member) { (put_tensors(message.*member, wire_message), ...); },
               Message::tensors());
  return wire_message;
}
template <Plain Message>
Result<Message> take(WireMessage& from, const RunSpec&, const Message*) {
  auto message = read<Message>(from);
  if (!message) return message;
  if constexpr (requires { Message::tensors(); }) {
    const auto member = Message::tensors();
    static_assert(std::tuple_size_v<decltype(Message::tensors())> == 1,
                  "which of several tensors is empty would not be known");
    const auto found = from.tensors.size();
    if (!take_tensors(from.tensors, *message.*std::get<0>(member)))
      return Error{from.type + ": found " + std::to_string(found) + " tensors, wanted 1"};
  }
  return message;
}

/// Returns whether it was a Message; `outcome` then tells whether it was valid and allowed.
template <class Message>
bool deliver_as(WireMessage& wire_message, const Sender& from, const RunSpec& spec,
                const caf::actor& to, Status& outcome) {
  if (wire_message.type != Message::type) return false;
  auto message = take(wire_message, spec, static_cast<const Message*>(nullptr));
  outcome = message ? may(from, *message) : Status(message.error());
  if (outcome) caf_shim::post(to, std::move(*message));
  return true;
}

template <class... Message>
Status deliver_as_any(WireMessage& wire_message, const Sender& from, const RunSpec& spec,
                      const caf::actor& to, std::tuple<Message...>*) {
  Status outcome = Done{};
  const bool known = (deliver_as<Message>(wire_message, from, spec, to, outcome) || ...);
  if (!known)
    return Error{"found a message of type '" + wire_message.type + "', which no player knows"};
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
WireMessage to_wire_message(const Message& message, MemoryPool& memory) {
  return put(message, memory);
}

template WireMessage to_wire_message(const Play&, MemoryPool&);
template WireMessage to_wire_message(const Activation&, MemoryPool&);
template WireMessage to_wire_message(const Targets&, MemoryPool&);
template WireMessage to_wire_message(const Gradient&, MemoryPool&);
template WireMessage to_wire_message(const LoanFor&, MemoryPool&);
template WireMessage to_wire_message(const Taken&, MemoryPool&);
template WireMessage to_wire_message(const StepGradients&, MemoryPool&);
template WireMessage to_wire_message(const Norms&, MemoryPool&);
template WireMessage to_wire_message(const Divergence&, MemoryPool&);
template WireMessage to_wire_message(const NewWeights&, MemoryPool&);
template WireMessage to_wire_message(const StepDone&, MemoryPool&);
template WireMessage to_wire_message(const LateGradients&, MemoryPool&);
template WireMessage to_wire_message(const MicroBatchLoss&, MemoryPool&);
template WireMessage to_wire_message(const RoundPlayed&, MemoryPool&);
template WireMessage to_wire_message(const Pulse&, MemoryPool&);
template WireMessage to_wire_message(const TakeSnapshot&, MemoryPool&);
template WireMessage to_wire_message(const Snapshot&, MemoryPool&);
template WireMessage to_wire_message(const KeepStep&, MemoryPool&);
template WireMessage to_wire_message(const StateCopy&, MemoryPool&);
template WireMessage to_wire_message(const Kept&, MemoryPool&);

Status deliver(WireMessage wire_message, const Sender& from, const RunSpec& spec,
               const caf::actor& to) {
  // Check the sender first, because decoding a Play generates a schedule.
  if (wire_message.type == Play::type && from.process != from.placement.head())
    return Error{wire_message.type + ": found it from process " + std::to_string(from.process) +
                 ", but only the head gives this order"};
  return deliver_as_any(wire_message, from, spec, to, static_cast<Travelling*>(nullptr));
}

transport::Message as_message(PlayerId to, WireMessage wire_message) {
  assert(wire_message.tensors.empty());
  transport::Message message;
  message.type = std::move(wire_message.type);
  message.body = std::move(wire_message.body);
  message.body.set("to", transport::to_value(to));
  if (!wire_message.bytes.empty()) message.payload.push_back(std::move(wire_message.bytes));
  return message;
}

Result<AddressedDispatch> as_wire_message(transport::Message message) {
  const Value* to = message.body.find("to");
  if (!to) return Error{message.type + ": names no player"};
  const auto player = transport::from_value<PlayerId>(*to, message.type + ".to");
  if (!player) return player.error();
  AddressedDispatch addressed{*player, {message.type, std::move(message.body), {}, {}}};
  if (!message.payload.empty()) addressed.wire_message.bytes = std::move(message.payload[0]);
  return addressed;
}

}  // namespace troupe::actors
