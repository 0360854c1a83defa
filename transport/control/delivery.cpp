#include "transport/control/delivery.h"

#include <string>

#include "core/units.h"
#include "transport/wire/message_types.h"

namespace troupe::transport {
namespace {

/// Returns roughly how much memory a value takes.
std::size_t bytes_of(const Value& value) {
  std::size_t bytes = sizeof(Value);
  if (const auto* text = value.text()) bytes += text->size();
  if (const auto* list = value.list())
    for (const auto& item : *list) bytes += bytes_of(item);
  if (const auto* map = value.map())
    for (const auto& entry : *map)
      bytes += sizeof(entry.key) + entry.key.size() + bytes_of(entry.value);
  return bytes;
}

bool may_overtake(const Message& message) {
  const auto* type = find_message_type(message.type);
  return type && type->order == MessageType::Order::any;
}

}  // namespace

std::size_t bytes_of(const Message& message) {
  std::size_t bytes = sizeof(Message) + bytes_of(message.body);
  for (const auto& part : message.payload) bytes += part.size();
  return bytes;
}

Status SendWindow::stamp(Message& message) {
  const std::size_t bytes = bytes_of(message);
  if (kept_.size() >= limits_.messages || bytes > limits_.bytes - bytes_)
    return Error{message.type + ": the other end has not acknowledged " +
                 std::to_string(kept_.size()) + " messages of " + size_text(bytes_) + "; at most " +
                 std::to_string(limits_.messages) + " of " + size_text(limits_.bytes) +
                 " are kept"};
  message.seq = ++last_;
  kept_.push_back({message, bytes});
  bytes_ += bytes;
  return Done{};
}

Status SendWindow::acknowledge(std::uint64_t ack) {
  if (ack > last_)
    return Error{"envelope.ack: found " + std::to_string(ack) + ", wanted at most " +
                 std::to_string(last_) + ", which is the last that was sent"};
  while (!kept_.empty() && kept_.front().message.seq <= ack) {
    bytes_ -= kept_.front().bytes;
    kept_.pop_front();
  }
  return Done{};
}

std::vector<Message> SendWindow::unacknowledged() const {
  std::vector<Message> messages;
  messages.reserve(kept_.size());
  for (const auto& kept : kept_) messages.push_back(kept.message);
  return messages;
}

ReceiveWindow::Verdict ReceiveWindow::accept(Message message) {
  const std::uint64_t seq = message.seq;
  if (message.incarnation != incarnation_ || seq == 0) return {What::stranger, {}};
  if (seq <= ack_ || held_.contains(seq)) return {What::repeated, {}};
  if (seq - ack_ > limits_.messages) return {What::beyond, {}};

  Verdict verdict{What::passed, {}};
  if (seq != ack_ + 1) {
    if (may_overtake(message)) {
      held_[seq] = {{}, 0, true};
      verdict.now.push_back(std::move(message));
      return verdict;
    }
    const std::size_t bytes = bytes_of(message);
    if (bytes > limits_.bytes - bytes_) return {What::beyond, {}};
    bytes_ += bytes;
    held_[seq] = {std::move(message), bytes, false};
    return {What::held, {}};
  }

  verdict.now.push_back(std::move(message));
  ++ack_;
  while (!held_.empty() && held_.begin()->first == ack_ + 1) {
    auto next = held_.extract(held_.begin());
    ++ack_;
    bytes_ -= next.mapped().bytes;
    if (!next.mapped().passed) verdict.now.push_back(std::move(next.mapped().message));
  }
  return verdict;
}

}  // namespace troupe::transport
