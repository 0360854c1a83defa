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
  for (auto& message : said_.unacknowledged()) {
    message.ack = heard_->ack();
    (void)send_(message);
  }
  acknowledged_ = heard_->ack();
  return Done{};
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
  message.ack = acknowledged_ = heard_->ack();
  // A message that cannot be sent ends the connection, and the next one repeats it.
  (void)send_(message);
  return Done{};
}

Result<std::vector<Message>> Conversation::hear(Message message) {
  const std::lock_guard lock(mutex_);
  if (!heard_ || message.incarnation != there_) return std::vector<Message>();
  if (auto known = said_.acknowledge(message.ack); !known) return known.error();
  if (message.seq == 0) {
    std::vector<Message> now;
    if (message.type != ack_type.view()) now.push_back(std::move(message));
    return now;
  }
  auto verdict = heard_->accept(std::move(message));
  if (verdict.what == ReceiveWindow::What::beyond)
    return Error{"envelope.seq: found one beyond all that can be kept until those before it come"};
  if (heard_->ack() - acknowledged_ >= acknowledged_together ||
      verdict.what == ReceiveWindow::What::repeated)
    acknowledge();
  return std::move(verdict.now);
}

void Conversation::acknowledge() {
  if (!send_) return;
  Message message;
  message.type = ack_type.text();
  message.incarnation = here_;
  message.ack = acknowledged_ = heard_->ack();
  (void)send_(message);
}

std::uint64_t Conversation::ack() const {
  const std::lock_guard lock(mutex_);
  return heard_ ? heard_->ack() : 0;
}

}  // namespace troupe::transport
