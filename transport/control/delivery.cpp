#include "transport/control/delivery.h"

#include <string>

#include "core/units.h"

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

Message* SendWindow::next_after(std::uint64_t seq) {
  const auto first = last_ - kept_.size();  // All up to it are acknowledged.
  const auto at = seq > first ? seq - first : 0;
  return at < kept_.size() ? &kept_[at].message : nullptr;
}

ReceiveWindow::What ReceiveWindow::accept(const Message& message) {
  if (message.incarnation != incarnation_ || message.seq == 0) return What::stranger;
  if (message.seq <= ack_) return What::repeated;
  if (message.seq != ack_ + 1) return What::early;
  ++ack_;
  return What::next;
}

}  // namespace troupe::transport
