#include "transport/links/edge_sender.h"

#include <string>
#include <utility>

#include "transport/channels/frame.h"

namespace troupe::transport {

SendingEnd::SendingEnd(EdgesOrder order, const EdgeTerms& terms, OnEnd on_end)
    : EdgeEnd(std::move(order), {terms.number, 0, {terms.words}}, std::move(on_end)),
      credit_(terms.bound),
      // Parcels that have arrived stay in the queue until this device polls the link.
      line_(terms.bound.parcels + order_.places) {}

namespace {

std::size_t word_bytes(std::size_t head_bytes, std::size_t tensors) {
  return sizeof(EdgeWord) + sizeof(FrameHeader) + head_bytes + tensors * sizeof(TensorRecord);
}

}  // namespace

bool fits_an_edge(std::size_t head_bytes, std::size_t tensors) {
  return word_bytes(head_bytes, tensors) <= most_head_bytes;
}

Tensor SendingEnd::lend(const Shape& shape, DType type) {
  return Tensor::make(*order_.memory, shape, type);
}

Status SendingEnd::send(std::span<const std::byte> head, std::span<const Tensor> tensors) {
  assert_sane(head, tensors);
  if (!fits_an_edge(head.size(), tensors.size()))
    return Error{"a parcel's head and shapes take " +
                 std::to_string(word_bytes(head.size(), tensors.size())) + " bytes; at most " +
                 std::to_string(most_head_bytes) + " go ahead of its tensors"};
  std::size_t bytes = 0;
  for (const auto& tensor : tensors) bytes += tensor.bytes();
  {
    const Lock lock(mutex_);
    if (end_) return Error{end_->text};
    if (closing_) return Error{"the channel was closed by its sender"};
    if (auto taken = credit_.take(bytes); !taken) return taken;
    auto& outgoing = line_.push();
    write_front(head, tensors, outgoing.front);
    outgoing.tensors.assign(tensors.begin(), tensors.end());
    outgoing.operation = {};
    credit_.sent(bytes);
    ++counters_.parcels;
    counters_.bytes += bytes;
  }
  if (order_.wake) order_.wake();
  return Done{};
}

Status SendingEnd::close(std::chrono::milliseconds patience) {
  Lock lock(mutex_);
  closing_ = true;
  const bool in_time =
      changed_.wait_for(lock, patience, [&] { return end_ || credit_.parcels() == 0; });
  if (end_ && !(credit_.parcels() == 0 && end_->why == ChannelEnd::Why::closed))
    return Error{end_->text};
  if (end_) return Done{};
  if (!in_time)
    return Error{std::to_string(credit_.parcels()) + " parcels have not arrived after " +
                 std::to_string(patience.count()) + " ms"};
  end_ = ChannelEnd{ChannelEnd::Why::closed, "the channel was closed by its sender"};
  told_ = true;
  lock.unlock();
  return say(EdgeWordKind::closed);
}

void SendingEnd::cut() {
  silence();
  Lock lock(mutex_);
  if (end_) return;
  end_ = ChannelEnd{ChannelEnd::Why::lost, "the sender was let go"};
  lock.unlock();
  // If the channel of words has ended, the receiver knows already.
  (void)say(EdgeWordKind::cut).ok();
}

void SendingEnd::hear(const ReadEdgeWord& read) {
  Lock lock(mutex_);
  if (read.word.kind == EdgeWordKind::grant) return take_grant(lock, read.word);
  if (read.word.kind != EdgeWordKind::let_go)
    return blame(lock, "the receiver says what only a sender has to say");
  if (!end_) end_ = ChannelEnd{ChannelEnd::Why::closed, "the channel was closed by its receiver"};
  changed_.notify_all();
}

void SendingEnd::take_grant(Lock& lock, const EdgeWord& word) {
  if (word.granted < granted_ || word.granted < word.arrived)
    return blame(lock, "the receiver takes back what it has granted");
  if (word.arrived > next_ || !credit_.arrived(word.arrived))
    return blame(lock, "the receiver speaks of parcels that were not sent");
  granted_ = word.granted;
  arrived_ = word.arrived;
  changed_.notify_all();
}

Status SendingEnd::exchange(EdgeTime now) {
  if (auto sane = take_mistake(); !sane) return sane;
  if (auto sound = look(); !sound) return sound;
  Lock lock(mutex_);
  pop_done();
  if (end_) drop_waiting();
  while (may_post()) {
    if (auto posted = post_next(lock, now); !posted) return posted;
    lock.unlock();
    if (auto sound = look(); !sound) return sound;
    lock.lock();
  }
  return check_deadlines(now);
}

void SendingEnd::pop_done() {
  for (std::size_t i = 0; i < posted_; ++i) line_[i].operation.follow(report_);
  while (posted_ > 0 && line_.front().operation.state() == OperationState::done) {
    line_.front().tensors.clear();
    line_.pop();
    --posted_;
  }
}

/// Frees the tensors of parcels that will never be sent.
void SendingEnd::drop_waiting() {
  for (std::size_t i = posted_; i < line_.size(); ++i) line_[i].tensors.clear();
}

bool SendingEnd::may_post() {
  return !end_ && posted_ < line_.size() && posted_ < order_.places && next_ < granted_ && free();
}

/// Posts a send and then announces it. A receiver that hears the word finds the send posted; so if
/// two devices wait for each other, one of them has posted already.
Status SendingEnd::post_next(Lock& lock, EdgeTime now) {
  auto& outgoing = line_[posted_];
  const auto number = next_++;
  outgoing.operation.grant(now + order_.patience.exchange);
  // Other threads only append to the queue, so this element needs no lock.
  lock.unlock();
  pieces_.clear();
  for (auto& tensor : outgoing.tensors)
    if (tensor.bytes() > 0)
      pieces_.push_back({static_cast<std::byte*>(tensor.raw()), tensor.bytes()});
  if (!pieces_.empty()) post(pieces_);
  number_front(outgoing.front, order_.epoch.number, number, Checksums::off);
  auto said = say(EdgeWordKind::parcel, outgoing.front);
  lock.lock();
  outgoing.operation.post(posts_, now + order_.patience.exchange);
  ++posted_;
  return said;
}

Status SendingEnd::check_deadlines(EdgeTime now) {
  if (!end_ && posted_ < line_.size() && next_ >= granted_)
    line_[posted_].operation.expect_grant(now + order_.patience.exchange);
  for (std::size_t i = 0; i < posted_; ++i)
    if (line_[i].operation.late(now))
      return late("a parcel's send was not done", order_.patience.exchange);
  if (!end_ && posted_ < line_.size() && line_[posted_].operation.late(now))
    return late("the receiver granted nothing", order_.patience.exchange);
  return check_arrivals(now);
}

/// Checks for acknowledgements, since a small send leaves the device before anybody receives it.
Status SendingEnd::check_arrivals(EdgeTime now) {
  if (end_ || arrived_ == next_) {
    arrival_deadline_ = EdgeTime::max();
  } else if (arrived_ != arrived_before_ || arrival_deadline_ == EdgeTime::max()) {
    arrived_before_ = arrived_;
    arrival_deadline_ = now + order_.patience.exchange;
  }
  if (now < arrival_deadline_) return Done{};
  return late("the receiver took nothing", order_.patience.exchange);
}

bool SendingEnd::busy() {
  const Lock lock(mutex_);
  return posted_ > 0 || may_post();
}

void SendingEnd::drop_line() {
  const Lock lock(mutex_);
  for (; !line_.empty(); line_.pop()) {
    line_.front().operation.fail();
    line_.front().tensors.clear();
  }
  posted_ = 0;
}

}  // namespace troupe::transport
