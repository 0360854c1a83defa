#include "transport/channels/shm_receiver.h"

#include <sys/epoll.h>

#include <cstring>
#include <new>
#include <utility>

#include "core/units.h"
#include "transport/channels/shm_channel.h"
#include "transport/channels/socket.h"

namespace troupe::transport {
namespace {

constexpr int records_in_turn = 64;

}  // namespace

ShmArrivals::ShmArrivals(std::shared_ptr<ShmSegment> segment, int bell)
    : segment_(std::move(segment)), bell_(bell) {}

BlockHandle ShmArrivals::hold(std::uint32_t slot) {
  const std::lock_guard lock(mutex_);
  if (held_ == most_out) return {};
  if (free_.empty()) {
    auto& arrival = all_.emplace_back();
    arrival.memory = segment_->memory();
    arrival.bytes = segment_->bytes();
    arrival.owner = this;
    free_.push_back(&arrival);
  }
  Arrival* arrival = free_.back();
  free_.pop_back();
  arrival->slot = slot;
  if (held_++ == 0) keeper_ = shared_from_this();
  return BlockHandle(arrival);
}

void ShmArrivals::give_back(MemoryBlock* block) {
  std::shared_ptr<ShmArrivals> last;  // Outlives the lock.
  {
    const std::lock_guard lock(mutex_);
    auto* arrival = static_cast<Arrival*>(block);
    put_back(arrival->slot);
    free_.push_back(arrival);
    if (--held_ == 0) last = std::move(keeper_);
  }
  tell();
}

void ShmArrivals::give_back(std::uint32_t slot) {
  {
    const std::lock_guard lock(mutex_);
    put_back(slot);
  }
  tell();
}

void ShmArrivals::put_back(std::uint32_t slot) {
  auto& control = segment_->control();
  control.returns[returned_ % most_out].store(slot, std::memory_order_relaxed);
  control.returned.store(++returned_, std::memory_order_seq_cst);
}

void ShmArrivals::tell() {
  if (segment_->control().sender_waits.load(std::memory_order_seq_cst) == 0) return;
  const std::lock_guard lock(mutex_);
  if (bell_ >= 0) ring_bell(bell_);
}

void ShmArrivals::hang_up() {
  const std::lock_guard lock(mutex_);
  bell_ = -1;
}

ShmReceiver::ShmReceiver(ChannelThread& thread, std::shared_ptr<GuestList> guests, Token token,
                         const Epoch& epoch, Receiving receiving)
    : thread_(thread), guests_(std::move(guests)), epoch_(epoch), receiving_(std::move(receiving)) {
  guests_->expect(token, *this);
}

ShmReceiver::~ShmReceiver() {
  guests_->forget(*this);
  thread_.remove(place_);
  if (!arrivals_) return;
  segment_->control().receiver_closed.store(1, std::memory_order_release);
  arrivals_->hang_up();
}

ChannelCounters ShmReceiver::counters() const { return {parcels_, bytes_, copied_}; }

Verdict ShmReceiver::judge(const Caller& caller, std::vector<std::byte>&) {
  const auto& hello = caller.hello;
  return hello.bytes == receiving_.bound.bytes && hello.parcels == receiving_.bound.parcels &&
                 hello.protection == Protection::plain &&
                 ShmSegment::is_sane(caller.file, receiving_.bound)
             ? Verdict::welcome
             : Verdict::other_terms;
}

void ShmReceiver::arrive(Caller caller) {
  connection_ = std::move(caller.connection);
  auto segment = ShmSegment::open(caller.file, receiving_.bound);
  if (!segment) return end(ChannelEnd::Why::broken, segment.error().text);
  segment_ = std::move(*segment);
  arrivals_ = std::make_shared<ShmArrivals>(segment_, connection_.number());
  thread_.add(*this, connection_.number(), EPOLLIN | EPOLLRDHUP, place_);
}

void ShmReceiver::on_ready(std::uint32_t) {
  if (drain_bells(connection_.number())) return;
  while (look()) continue;
  if (ended_) return;
  if (segment_->control().sender_closed.load(std::memory_order_acquire) != 0)
    end(ChannelEnd::Why::closed, "the channel was closed by its sender");
  else
    end(ChannelEnd::Why::lost, "the other process died (connection closed without notice)");
}

bool ShmReceiver::look() {
  for (int i = 0; i < records_in_turn; ++i) {
    if (ended_ || segment_->control().written.load(std::memory_order_acquire) == read_)
      return i > 0;
    if (auto sane = take_record(); !sane) end(ChannelEnd::Why::broken, sane.error().text);
  }
  return true;
}

bool ShmReceiver::may_sleep() {
  segment_->control().receiver_sleeps.store(1, std::memory_order_seq_cst);
  return segment_->control().written.load(std::memory_order_seq_cst) == read_;
}

void ShmReceiver::awake() {
  segment_->control().receiver_sleeps.store(0, std::memory_order_relaxed);
}

/// Copies a record out of the ring before it checks it, since the peer could still change it there.
Status ShmReceiver::take_record() {
  auto& control = segment_->control();
  const auto there = control.written.load(std::memory_order_acquire) - read_;
  ShmRecord record;
  FrameHeader header;
  constexpr auto before_front = sizeof record + sizeof header;
  if (there > ring_bytes || there < before_front)
    return Error{"the ring holds " + std::to_string(there) + " bytes"};
  segment_->read_ring(read_, &record, sizeof record);
  segment_->read_ring(read_ + sizeof record, &header, sizeof header);
  const auto front = check_header(header, {epoch_.number, arrived_, receiving_.bound});
  if (!front) return front.error();
  const auto places = header.tensors * sizeof(ShmPlace);
  if (header.kind != FrameKind::parcel || record.bytes > there ||
      record.bytes != (before_front + *front + places + 7) / 8 * 8)
    return Error{"a record of " + std::to_string(record.bytes) + " bytes has other contents"};
  front_.resize(*front);
  segment_->read_ring(read_ + before_front, front_.data(), *front);
  places_.resize(header.tensors);
  segment_->read_ring(read_ + before_front + *front, places_.data(), places);
  read_ += record.bytes;
  control.read.store(read_, std::memory_order_release);
  if (auto sane = check_records(header, front_, plans_); !sane) return sane;
  if (auto made = make_tensors(record, places_); !made) return made;
  deliver(header.head_bytes);
  return Done{};
}

Status ShmReceiver::check_place(const ShmPlace& place, const TensorPlan& plan) const {
  const bool held = place.slot < held_slots;
  const std::size_t begin = held ? segment_->held() : segment_->passing();
  const std::size_t end = held ? segment_->passing() : segment_->bytes();
  if (place.slot >= all_slots || place.offset % payload_alignment != 0 || place.offset < begin ||
      place.offset > end || plan.bytes > end - place.offset)
    return Error{"a tensor lies at " + std::to_string(place.offset) + " in slot " +
                 std::to_string(place.slot) + ", where none can be"};
  return Done{};
}

Status ShmReceiver::make_tensors(const ShmRecord& record, std::span<const ShmPlace> places) {
  BlockHandle shared;
  std::size_t to_copy = 0, copied = 0;
  for (std::size_t i = 0; i < places.size(); ++i) {
    if (auto sane = check_place(places[i], plans_[i]); !sane) return sane;
    if (places[i].slot >= held_slots && places[i].slot != record.shared_slot)
      return Error{"a tensor that was lent lies where none is"};
    if (places[i].slot == record.shared_slot) to_copy += aligned(plans_[i].bytes);
  }
  const bool passes = record.shared_slot != no_slot && record.shared_slot >= held_slots;
  for (std::size_t i = 0; i < places.size(); ++i) {
    const auto& plan = plans_[i];
    if (places[i].slot != record.shared_slot) {
      auto slot = arrivals_->hold(places[i].slot);
      if (!slot) return Error{"more slots came than there are"};
      tensors_.push_back(Tensor::over(std::move(slot), places[i].offset, plan.shape, plan.type));
      continue;
    }
    if (!shared) {
      try {
        shared = passes ? receiving_.memory->take(to_copy) : arrivals_->hold(record.shared_slot);
      } catch (const std::bad_alloc&) {
        return Error{"no memory for " + size_text(to_copy) + " of tensors"};
      }
      if (!shared) return Error{"more slots came than there are"};
    }
    if (!passes) {
      tensors_.push_back(Tensor::over(shared, places[i].offset, plan.shape, plan.type));
      continue;
    }
    std::memcpy(shared.get()->memory + copied, segment_->memory() + places[i].offset, plan.bytes);
    tensors_.push_back(Tensor::over(shared, copied, plan.shape, plan.type));
    copied += aligned(plan.bytes);
  }
  if (passes && shared) arrivals_->give_back(record.shared_slot);
  copied_.fetch_add(copied, std::memory_order_relaxed);
  return Done{};
}

void ShmReceiver::deliver(std::size_t head_bytes) {
  auto& control = segment_->control();
  std::size_t bytes = 0;
  for (const auto& plan : plans_) bytes += plan.bytes;
  parcels_.fetch_add(1, std::memory_order_relaxed);
  bytes_.fetch_add(bytes, std::memory_order_relaxed);
  // A sender that learns of the parcel from the listener may send again at once.
  control.taken.store(++arrived_, std::memory_order_release);
  receiving_.listener.on_parcel({std::span(front_).first(head_bytes), tensors_});
  tensors_.clear();
  control.delivered.store(arrived_, std::memory_order_seq_cst);
  arrivals_->tell();
}

void ShmReceiver::end(ChannelEnd::Why why, const std::string& text) {
  ended_ = true;
  tensors_.clear();
  if (arrivals_) arrivals_->hang_up();
  thread_.remove(place_);
  connection_ = Descriptor();
  if (receiving_.listener.on_end) receiving_.listener.on_end({why, text});
}

Result<std::unique_ptr<Door>> open_shm_door(ChannelThread& thread, const DoorOrder& order) {
  const auto name = make_up_unix_name();
  if (!name) return within("no name for a door", name.error());
  const auto where = unix_address(*name);
  if (!where) return where.error();
  auto socket = listen_at(*where);
  if (!socket) return within(*name, socket.error());
  return std::unique_ptr<Door>(std::make_unique<ListeningDoor>(
      thread, std::move(*socket), *name, Carrier::shm, order, make_receiver<ShmReceiver>));
}

}  // namespace troupe::transport
