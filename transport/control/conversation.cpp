#include "transport/control/conversation.h"

#include <string>
#include <utility>

#include "transport/wire/message_types.h"

namespace troupe::transport {
namespace {

/// Send an acknowledgement after this many messages if there is nothing else to send: well before
/// the other end's window is full.
constexpr std::uint64_t acknowledged_together = 64;

constexpr MessageName ack_type = "ack";
static_assert(handles_all(Handler::conversation, {ack_type.view()}));

bool needs_to_arrive(const Message& message) {
  const auto* type = find_message_type(message.type);
  return !type || type->order == MessageType::Order::kept;
}

}  // namespace

std::uint64_t new_incarnation(Env& env) { return env.random() >> 1 | 1; }

Status Conversation::resume(std::uint64_t incarnation, std::uint64_t ack, Send send) {
  const std::lock_guard lock(mutex_);
  if (there_ != 0 && there_ != incarnation)
    return Error{"found process " + std::to_string(incarnation) +
                 " at the other end, wanted the one of before, " + std::to_string(there_)};
  if (auto known = said_.acknowledge(ack); !known) return known;
  there_ = incarnation;
  if (!heard_) heard_.emplace(incarnation);
  send_ = std::move(send);
  sent_ = ack;
  acknowledged_ = heard_->ack();
  send_kept();
  return Done{};
}

/// Sends the kept messages that the connection has not taken yet. Its queue may be full; then the
/// rest waits until this end says or hears something again.
void Conversation::send_kept() {
  while (Message* next = said_.next_after(sent_)) {
    next->ack = heard_->ack();
    if (!send_(*next)) return;
    sent_ = next->seq;
    acknowledged_ = next->ack;
  }
}

void Conversation::pause() {
  const std::lock_guard lock(mutex_);
  send_ = nullptr;
}

Status Conversation::say(Message message) {
  const std::lock_guard lock(mutex_);
  message.incarnation = here_;
  if (needs_to_arrive(message))
    if (auto stamped = said_.stamp(message); !stamped) return stamped;
  if (!send_) return Done{};
  send_kept();
  if (message.seq != 0) return Done{};
  message.ack = heard_->ack();
  if (send_(message)) acknowledged_ = message.ack;
  return Done{};
}

Result<std::optional<Message>> Conversation::hear(Message message) {
  const std::lock_guard lock(mutex_);
  if (!heard_ || message.incarnation != there_) return std::optional<Message>();
  if (auto known = said_.acknowledge(message.ack); !known) return known.error();
  if (send_) send_kept();
  std::optional<Message> now;
  if (message.seq == 0) {
    if (message.type != ack_type.view()) now = std::move(message);
    return now;
  }
  const auto what = heard_->accept(message);
  if (what == ReceiveWindow::What::early)
    return Error{"envelope.seq: found " + std::to_string(message.seq) + ", wanted " +
                 std::to_string(heard_->ack() + 1) + ", which has not come"};
  if (heard_->ack() - acknowledged_ >= acknowledged_together ||
      what == ReceiveWindow::What::repeated)
    acknowledge();
  if (what == ReceiveWindow::What::next) now = std::move(message);
  return now;
}

void Conversation::acknowledge() {
  if (!send_) return;
  Message message;
  message.type = ack_type.text();
  message.incarnation = here_;
  message.ack = heard_->ack();
  if (send_(message)) acknowledged_ = message.ack;
}

std::uint64_t Conversation::ack() const {
  const std::lock_guard lock(mutex_);
  return heard_ ? heard_->ack() : 0;
}

}  // namespace troupe::transport
