#include "transport/channels/shm_sender.h"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <cassert>
#include <cerrno>
#include <cstring>
#include <utility>

#include "transport/channels/door_rules.h"
#include "transport/channels/frame.h"
#include "transport/channels/shm_channel.h"
#include "transport/channels/socket.h"

namespace troupe::transport {

ShmSender::ShmSender(ChannelThread& thread, Descriptor connection,
                     std::shared_ptr<ShmSegment> segment, Sending sending)
    : thread_(thread),
      connection_(std::move(connection)),
      segment_(std::move(segment)),
      control_(segment_->control()),
      sending_(std::move(sending)),
      slots_(std::make_shared<ShmSlots>(segment_)),
      credit_(sending_.bound),
      line_(sending_.bound.parcels) {
  thread_.add(*this, connection_.number(), EPOLLIN | EPOLLRDHUP, place_);
}

ShmSender::~ShmSender() { thread_.remove(place_); }

Tensor ShmSender::lend(const Shape& shape, DType type) {
  Lock lock(mutex_);
  settle();
  Tensor lent = end_ ? Tensor() : slots_->lend(shape, type);
  lock.unlock();
  return lent.empty() ? Tensor::make(*sending_.memory, shape, type) : lent;
}

ChannelCounters ShmSender::counters() const {
  const Lock lock(mutex_);
  return counters_;
}

Status ShmSender::send(std::span<const std::byte> head, std::span<const Tensor> tensors) {
  assert_sane(head, tensors);
  std::size_t bytes = 0;
  for (const auto& tensor : tensors) bytes += tensor.bytes();

  Lock lock(mutex_);
  settle();
  if (end_) return Error{end_->text};
  if (closing_) return Error{"the channel was closed by its sender"};
  if (auto taken = credit_.take(bytes); !taken) return taken;
  if (spare_.empty()) spare_.push_back(std::make_unique<Outgoing>());
  auto outgoing = std::move(spare_.back());
  spare_.pop_back();
  write_front(head, tensors, outgoing->front);
  outgoing->tensors.assign(tensors.begin(), tensors.end());
  outgoing->bytes = bytes;
  ++counters_.parcels;
  counters_.bytes += bytes;
  if (line_.empty() && make_ready(lock, *outgoing) && publish(*outgoing)) {
    put_by(std::move(outgoing));
    return Done{};
  }
  line_.push() = std::move(outgoing);
  advance_line(lock);
  return Done{};
}

/// Copies what must be copied. It releases the lock meanwhile, so other threads can lend and send.
bool ShmSender::make_ready(Lock& lock, Outgoing& outgoing) {
  if (outgoing.ready) return true;
  if (!place(outgoing)) return false;
  if (outgoing.record.shared_slot != no_slot) {
    lock.unlock();
    copy(outgoing);
    lock.lock();
  }
  outgoing.ready = true;
  return true;
}

/// Gives each tensor a place: lent tensors keep theirs, all others share one new slot.
bool ShmSender::place(Outgoing& outgoing) {
  std::size_t to_copy = 0;
  bool any = false;
  outgoing.places.resize(outgoing.tensors.size());
  for (std::size_t i = 0; i < outgoing.tensors.size(); ++i) {
    const auto& tensor = outgoing.tensors[i];
    auto& place = outgoing.places[i];
    const auto slot = slots_->slot_of(tensor);
    const auto offset =
        static_cast<std::size_t>(static_cast<const std::byte*>(tensor.raw()) - segment_->memory());
    // A slice may begin anywhere, but a sent tensor must begin at a cache line.
    if (slot && offset % payload_alignment == 0 && slots_->go_out(*slot)) {
      place = {offset, *slot, 0};
      continue;
    }
    place = {to_copy, no_slot, 0};
    to_copy += aligned(tensor.bytes());
    any = true;
  }
  outgoing.record.shared_slot = no_slot;
  if (!any) return true;
  const auto shared = slots_->take(to_copy);
  if (!shared) {
    // No room: undo everything, so that a later call starts afresh.
    for (const auto& place : outgoing.places)
      if (place.slot != no_slot) slots_->stay(place.slot);
    return false;
  }
  outgoing.record.shared_slot = shared->slot;
  for (auto& place : outgoing.places)
    if (place.slot == no_slot) place = {shared->offset + place.offset, shared->slot, 0};
  return true;
}

void ShmSender::copy(Outgoing& outgoing) {
  for (std::size_t i = 0; i < outgoing.tensors.size(); ++i) {
    const auto& tensor = outgoing.tensors[i];
    const auto& place = outgoing.places[i];
    if (place.slot == outgoing.record.shared_slot && tensor.bytes() > 0)
      std::memcpy(segment_->memory() + place.offset, tensor.host_bytes().data(), tensor.bytes());
  }
}

/// Writes the record. Returns false if the ring has no room.
bool ShmSender::publish(Outgoing& outgoing) {
  const std::size_t places = outgoing.places.size() * sizeof(ShmPlace);
  const std::size_t bytes = sizeof(ShmRecord) + outgoing.front.size() + places;
  const std::size_t padded = (bytes + 7) / 8 * 8;
  const auto written = control_.written.load(std::memory_order_relaxed);
  if (written - control_.read.load(std::memory_order_seq_cst) + padded > ring_bytes) return false;
  number_front(outgoing.front, sending_.epoch.number, credit_.sent_so_far(), Checksums::off);
  credit_.sent(outgoing.bytes);
  if (outgoing.record.shared_slot != no_slot)
    for (std::size_t i = 0; i < outgoing.places.size(); ++i)
      if (outgoing.places[i].slot == outgoing.record.shared_slot)
        counters_.copied += outgoing.tensors[i].bytes();
  outgoing.record.bytes = padded;
  segment_->write_ring(written, &outgoing.record, sizeof(ShmRecord));
  segment_->write_ring(written + sizeof(ShmRecord), outgoing.front.data(), outgoing.front.size());
  segment_->write_ring(written + sizeof(ShmRecord) + outgoing.front.size(), outgoing.places.data(),
                       places);
  control_.written.store(written + padded, std::memory_order_seq_cst);
  if (control_.receiver_sleeps.load(std::memory_order_seq_cst) != 0 &&
      control_.receiver_sleeps.exchange(0) != 0)
    ring_bell(connection_.number());
  return true;
}

/// Sends as much of the queue as there is room for. The caller holds the lock.
void ShmSender::advance_line(Lock& lock) {
  if (advancing_) return;
  advancing_ = true;
  // From here on the receiver reports every change; settle() below sees the earlier ones.
  control_.sender_waits.store(1, std::memory_order_seq_cst);
  for (settle(); !line_.empty() && !end_; settle()) {
    Outgoing& outgoing = *line_.front();
    if (!make_ready(lock, outgoing) || !publish(outgoing)) break;
    put_by(std::move(line_.front()));
    line_.pop();
  }
  if (end_)
    for (; !line_.empty(); line_.pop()) put_by(std::move(line_.front()));
  if (line_.empty() && !closing_) control_.sender_waits.store(0, std::memory_order_relaxed);
  advancing_ = false;
}

void ShmSender::put_by(std::unique_ptr<Outgoing> outgoing) {
  outgoing->tensors.clear();
  outgoing->ready = false;
  spare_.push_back(std::move(outgoing));
}

/// Takes in what the receiver has acknowledged and returned.
void ShmSender::settle() {
  if (end_) return;
  if (!credit_.arrived(control_.taken.load(std::memory_order_seq_cst)))
    return end(ChannelEnd::Why::broken, "the receiver acknowledges parcels that were not sent");
  if (!slots_->take_returns())
    end(ChannelEnd::Why::broken, "the receiver gives back slots that it has not got");
}

bool ShmSender::all_delivered() const {
  return control_.delivered.load(std::memory_order_seq_cst) == counters_.parcels;
}

Status ShmSender::close(std::chrono::milliseconds patience) {
  Lock lock(mutex_);
  closing_ = true;
  control_.sender_waits.store(1, std::memory_order_seq_cst);
  changed_.wait_for(lock, patience, [&] { return end_ || all_delivered(); });
  if (end_ && !(all_delivered() && end_->why == ChannelEnd::Why::closed)) return Error{end_->text};
  if (!all_delivered())
    return Error{std::to_string(counters_.parcels - control_.delivered.load()) +
                 " parcels have not arrived after " + std::to_string(patience.count()) + " ms"};
  if (!end_) {
    end_ = ChannelEnd{ChannelEnd::Why::closed, "the channel was closed by its sender"};
    control_.sender_closed.store(1, std::memory_order_release);
    shutdown(connection_.number(), SHUT_RDWR);
  }
  lock.unlock();
  thread_.remove(place_);
  return Done{};
}

void ShmSender::on_ready(std::uint32_t) {
  Lock lock(mutex_);
  if (!drain_bells(connection_.number()) && !end_) {
    settle();
    if (control_.receiver_closed.load(std::memory_order_acquire) != 0)
      end(ChannelEnd::Why::closed, "the channel was closed by its receiver");
    else
      end(ChannelEnd::Why::lost, "the other process died (connection closed without notice)");
  }
  if (!end_ && (!line_.empty() || closing_)) advance_line(lock);
  changed_.notify_all();
  if (!end_) return;
  const ChannelEnd why = *end_;
  const bool tell = !closing_ && sending_.on_end;
  advance_line(lock);
  lock.unlock();
  thread_.remove(place_);
  if (tell) sending_.on_end(why);
}

/// Shuts the connection down, upon which the channel's thread reports the end.
void ShmSender::end(ChannelEnd::Why why, const std::string& text) {
  if (!end_) end_ = ChannelEnd{why, text};
  shutdown(connection_.number(), SHUT_RDWR);
}

Result<std::unique_ptr<Sender>> connect_shm(ChannelThread& thread, const std::string& address,
                                            Sending sending) {
  const auto deadline = std::chrono::steady_clock::now() + sending.patience;
  const auto where = unix_address(address);
  if (!where) return where.error();
  auto connection = connect_to(*where, deadline);
  if (!connection) return within(address, connection.error());
  auto segment = ShmSegment::make(sending.bound);
  if (!segment) return within(address, segment.error());
  const Hello hello = hello_of(sending, Carrier::shm, Checksums::off);
  if (auto in = be_let_in(*connection,
                          {.hello = std::as_bytes(std::span(&hello, 1)),
                           .file = &(*segment)->file(),
                           .greeting = {}},
                          deadline);
      !in)
    return within(address, in.error());
  return std::unique_ptr<Sender>(std::make_unique<ShmSender>(
      thread, std::move(*connection), std::move(*segment), std::move(sending)));
}

}  // namespace troupe::transport
