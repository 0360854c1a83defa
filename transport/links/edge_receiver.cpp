#include "transport/links/edge_receiver.h"

#include <cstring>
#include <new>
#include <string>

namespace troupe::transport {

ReceivingEnd::ReceivingEnd(EdgesOrder order, const EdgeTerms& terms, HandedOver handed_over,
                           Listener listener, const Poison& poison)
    : EdgeEnd(std::move(order), {terms.number, 1, {terms.words}}, listener.on_end),
      bound_(terms.bound),
      handed_over_(handed_over),
      listener_(std::move(listener)),
      poison_(poison),
      line_(order_.places) {}

/// Announced parcels are still received, and dropped, so that the sender's device does not block.
void ReceivingEnd::let_go() {
  silence();
  Lock lock(mutex_);
  if (end_) return;
  end_ = ChannelEnd{ChannelEnd::Why::closed, "the channel was closed by its receiver"};
  lock.unlock();
  // If the channel of words has ended, the sender knows already.
  (void)say(EdgeWordKind::let_go).ok();
}

void ReceivingEnd::hear(const ReadEdgeWord& read) {
  Lock lock(mutex_);
  if (last_word_) return blame(lock, "the sender says something after its last word");
  switch (read.word.kind) {
    case EdgeWordKind::name:
      return take_name(lock, read.rest);
    case EdgeWordKind::parcel:
      return take_parcel(lock, read.rest);
    case EdgeWordKind::closed:
      last_word_ = {ChannelEnd::Why::closed, "the channel was closed by its sender"};
      return;
    case EdgeWordKind::cut:
      last_word_ = {ChannelEnd::Why::lost, "the sender is lost: no goodbye came"};
      return;
    case EdgeWordKind::grant:
    case EdgeWordKind::let_go:
    case EdgeWordKind::sum:
      return blame(lock, "the sender says what only a receiver has to say");
  }
}

void ReceivingEnd::take_parcel(Lock& lock, std::span<const std::byte> front) {
  FrameHeader header;
  if (front.size() < sizeof header) return blame(lock, "a parcel has no front");
  std::memcpy(&header, front.data(), sizeof header);
  front = front.subspan(sizeof header);
  const auto size = check_header(header, {order_.epoch.number, announced_, bound_});
  if (!size) return blame(lock, size.error().text);
  if (header.kind != FrameKind::parcel || *size != front.size())
    return blame(lock, "a parcel's front is longer or shorter than it says");
  if (announced_ >= granted_) return blame(lock, "the sender posts more than it was granted");
  auto& incoming = line_.push();
  if (auto sane = check_records(header, front, incoming.plans); !sane)
    blame(lock, sane.error().text);
  incoming.head_bytes = header.head_bytes;
  incoming.payload_bytes = header.payload_bytes;
  incoming.front.assign(front.begin(), front.end());
  incoming.operation = {};
  ++announced_;
}

Status ReceivingEnd::open() {
  std::uint64_t granted = 0;
  {
    const Lock lock(mutex_);
    if (end_) return Done{};
    granted = granted_ = order_.places;
  }
  return say(EdgeWordKind::grant, {}, granted, 0);
}

Status ReceivingEnd::exchange(EdgeTime now) {
  if (auto sane = take_mistake(); !sane) return sane;
  if (auto sound = look(); !sound) return sound;
  Lock lock(mutex_);
  while (posted_ < line_.size() && free())
    if (auto posted = post_next(lock, now); !posted) return posted;
  for (std::size_t i = 0; i < posted_; ++i) line_[i].operation.follow(report_);
  while (may_deliver()) deliver_next(lock);
  if (auto said = pop_done(lock); !said) return said;
  for (std::size_t i = 0; i < posted_; ++i)
    if (line_[i].operation.late(now))
      return late("a parcel's receive was not done", order_.patience.exchange);
  take_last_word();
  if (end_ && end_->why == ChannelEnd::Why::lost) return Error{end_->text};
  return Done{};
}

Status ReceivingEnd::post_next(Lock& lock, EdgeTime now) {
  auto& incoming = line_[posted_];
  incoming.operation.grant(now + order_.patience.exchange);
  // Other threads only append to the queue, so this element needs no lock.
  lock.unlock();
  pieces_.clear();
  if (!incoming.plans.empty()) {
    try {
      incoming.payload = take(incoming.payload_bytes);
    } catch (const std::bad_alloc&) {
      return Error{"the device has no memory for " + std::to_string(incoming.payload_bytes) +
                   " bytes of tensors"};
    }
  }
  for (const auto& plan : incoming.plans) {
    incoming.tensors.push_back(Tensor::over(incoming.payload, plan.offset, plan.shape, plan.type));
    if (plan.bytes > 0)
      pieces_.push_back({incoming.payload.get()->memory + plan.offset, plan.bytes});
  }
  if (!pieces_.empty()) post(pieces_);
  lock.lock();
  incoming.operation.post(posts_, now + order_.patience.exchange);
  ++posted_;
  return Done{};
}

bool ReceivingEnd::may_deliver() {
  if (delivered_ == posted_) return false;
  const auto state = line_[delivered_].operation.state();
  return state == OperationState::done ||
         (state == OperationState::issued && handed_over_ == HandedOver::at_issue);
}

/// The listener may keep the tensors. The payload is held until the device has finished with it.
void ReceivingEnd::deliver_next(Lock& lock) {
  auto& incoming = line_[delivered_++];
  if (!end_ && !silent_ && !poison_.spoils(order_.epoch.number)) {
    ++counters_.parcels;
    for (const auto& plan : incoming.plans) counters_.bytes += plan.bytes;
    call(lock, [&] {
      if (handed_over_ == HandedOver::at_issue) link_->join();
      listener_.on_parcel({std::span(incoming.front).first(incoming.head_bytes), incoming.tensors});
    });
  }
  incoming.tensors.clear();
}

/// Removes completed parcels and grants their places again.
Status ReceivingEnd::pop_done(Lock& lock) {
  const auto before = arrived_;
  while (delivered_ > 0 && line_.front().operation.state() == OperationState::done) {
    line_.front().payload = {};
    line_.pop();
    --posted_;
    --delivered_;
    ++arrived_;
  }
  if (arrived_ == before || end_) return Done{};
  granted_ = arrived_ + order_.places;
  const auto granted = granted_, arrived = arrived_;
  lock.unlock();
  auto said = say(EdgeWordKind::grant, {}, granted, arrived);
  lock.lock();
  return said;
}

void ReceivingEnd::take_last_word() {
  if (!last_word_ || end_ || !line_.empty()) return;
  end_ = last_word_;
}

bool ReceivingEnd::busy() {
  const Lock lock(mutex_);
  return !line_.empty();
}

void ReceivingEnd::drop_line() {
  const Lock lock(mutex_);
  for (; !line_.empty(); line_.pop()) {
    line_.front().operation.fail();
    line_.front().tensors.clear();
    line_.front().payload = {};
  }
  posted_ = delivered_ = 0;
}

}  // namespace troupe::transport
