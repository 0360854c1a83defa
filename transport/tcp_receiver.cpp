#include "transport/tcp_receiver.h"

#include <sys/epoll.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <utility>

#include "transport/socket.h"
#include "transport/tcp_channel.h"

namespace troupe::transport {
namespace {

// As much as stays in a processor's cache until its checksum is made.
constexpr std::size_t most_at_once = std::size_t{512} << 10;
constexpr int receives_in_turn = 16;

}  // namespace

TcpReceiver::TcpReceiver(ChannelThread& thread, std::shared_ptr<GuestList> guests, Token token,
                         const Epoch& epoch, Receiving receiving)
    : thread_(thread), guests_(std::move(guests)), epoch_(epoch), receiving_(std::move(receiving)) {
  guests_->expect(token, *this);
}

TcpReceiver::~TcpReceiver() {
  guests_->forget(*this);
  thread_.remove(place_);
  if (connection_) say(FrameKind::goodbye);
}

ChannelCounters TcpReceiver::counters() const { return {parcels_, bytes_, 0}; }

Verdict TcpReceiver::judge(const Hello& hello, const Descriptor&) const {
  return hello.bytes == receiving_.bound.bytes && hello.parcels == receiving_.bound.parcels
             ? Verdict::welcome
             : Verdict::other_terms;
}

void TcpReceiver::arrive(const Hello& hello, Descriptor connection, Descriptor) {
  connection_ = std::move(connection);
  checksums_ = hello.checksums == 1 ? Checksums::on : Checksums::off;
  thread_.add(*this, connection_.number(), usual_events, place_);
}

void TcpReceiver::on_ready(std::uint32_t) {
  for (int i = 0; i < receives_in_turn; ++i) {
    const auto came = receive();
    if (came < 0 && errno == EINTR) continue;
    if (came < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) break;
    if (came < 0) return end(ChannelEnd::Why::lost, system_error("the sender is lost").text);
    if (came == 0) return end(ChannelEnd::Why::lost, "the sender is lost: no goodbye came");
    auto sane = take_payload();
    if (sane) sane = use_staging();
    if (!sane) return end(ChannelEnd::Why::broken, sane.error().text);
    if (said_goodbye_) return end(ChannelEnd::Why::closed, "the channel was closed by its sender");
    if (all_had_come_) break;
  }
  if (told_ < arrived_) say(FrameKind::arrived);
  // Where the connection had no room for the word, it is said later.
  if (std::exchange(must_tell_, told_ < arrived_) != must_tell_)
    thread_.set_events(place_, connection_.number(),
                       must_tell_ ? usual_events | EPOLLOUT : usual_events);
}

/// Into the payload as far as one is wanted; what comes behind it waits in the staging.
ssize_t TcpReceiver::receive() {
  used_ = staged_ = 0;
  iovec parts[2];
  int count = 0;
  std::size_t room = 0, staging_room = 0;
  if (wanted_ == Wanted::payload) {
    room = std::min<std::size_t>(header_.payload_bytes - payload_got_, most_at_once);
    parts[count++] = {payload_.get()->memory + payload_got_, room};
  }
  if (room < most_at_once) {
    staging_room = staging_.size();
    parts[count++] = {staging_.data(), staging_room};
  }
  const auto came = readv(connection_.number(), parts, count);
  if (came > 0) {
    const auto bytes = static_cast<std::size_t>(came);
    payload_got_ += std::min(bytes, room);
    staged_ = bytes - std::min(bytes, room);
    all_had_come_ = bytes < room + staging_room;
  }
  return came;
}

/// All that was staged finds its place.
Status TcpReceiver::use_staging() {
  const auto move_to = [&](void* to, std::size_t& got, std::size_t wanted) {
    const auto bytes = std::min(staged_ - used_, wanted - got);
    if (bytes > 0) std::memcpy(static_cast<std::byte*>(to) + got, staging_.data() + used_, bytes);
    used_ += bytes;
    got += bytes;
    return got == wanted;
  };
  while (!said_goodbye_) {
    Status sane = Done{};
    switch (wanted_) {
      case Wanted::header:
        if (!move_to(&header_, header_got_, sizeof header_)) return sane;
        sane = take_header();
        break;
      case Wanted::front:
        if (!move_to(front_.data(), front_got_, front_.size())) return sane;
        sane = take_front();
        break;
      case Wanted::payload:
        if (!move_to(payload_.get()->memory, payload_got_, header_.payload_bytes))
          return take_payload();
        sane = take_payload();
        break;
      case Wanted::checksum:
        if (!move_to(&checksum_, checksum_got_, sizeof checksum_)) return sane;
        sane = take_checksum();
        break;
    }
    if (!sane) return sane;
  }
  return Done{};
}

Status TcpReceiver::take_header() {
  header_got_ = 0;
  const auto front_bytes = check_header(header_, {epoch_.number, arrived_, receiving_.bound});
  if (!front_bytes) return front_bytes.error();
  front_.resize(*front_bytes);
  front_got_ = 0;
  wanted_ = Wanted::front;
  return Done{};
}

Status TcpReceiver::take_front() {
  if (checksums_ == Checksums::on)
    if (auto right = check_front_checksum(header_, front_); !right) return right;
  if (auto sane = check_records(header_, front_, plans_); !sane) return sane;
  if (header_.kind == FrameKind::goodbye) {
    said_goodbye_ = true;
    return Done{};
  }
  if (plans_.empty()) {
    deliver();
    return Done{};
  }
  try {
    payload_ = receiving_.memory->take(header_.payload_bytes);
  } catch (const std::bad_alloc&) {
    return Error{"no memory for " + std::to_string(header_.payload_bytes) + " bytes of tensors"};
  }
  payload_got_ = 0;
  running_ = {};
  summed_ = 0;
  wanted_ = Wanted::payload;
  return Done{};
}

Status TcpReceiver::take_payload() {
  if (wanted_ != Wanted::payload) return Done{};
  if (checksums_ == Checksums::on) sum_up();
  if (payload_got_ < header_.payload_bytes) return Done{};
  if (checksums_ == Checksums::on) {
    checksum_got_ = 0;
    wanted_ = Wanted::checksum;
  } else {
    deliver();
  }
  return Done{};
}

void TcpReceiver::sum_up() {
  const std::byte* memory = payload_.get()->memory;
  for (; summed_ < plans_.size(); ++summed_) {
    const auto& plan = plans_[summed_];
    const auto got = payload_got_ - std::min(payload_got_, plan.offset);
    running_.follow({memory + plan.offset, plan.bytes}, got);
    if (got < plan.bytes) return;
    running_.next_tensor();
  }
}

Status TcpReceiver::take_checksum() {
  if (checksum_ != running_.sum())
    return Error{"a parcel's tensors are not as they were sent: their checksum differs"};
  deliver();
  return Done{};
}

void TcpReceiver::deliver() {
  std::size_t bytes = 0;
  for (const auto& plan : plans_) {
    tensors_.push_back(Tensor::over(payload_, plan.offset, plan.shape, plan.type));
    bytes += plan.bytes;
  }
  payload_ = {};
  wanted_ = Wanted::header;
  parcels_.fetch_add(1, std::memory_order_relaxed);
  bytes_.fetch_add(bytes, std::memory_order_relaxed);
  ++arrived_;
  receiving_.listener.on_parcel({std::span(front_).first(header_.head_bytes), tensors_});
  tensors_.clear();
  const auto& bound = receiving_.bound;
  untold_bytes_ += bytes;
  if (4 * (arrived_ - told_) >= bound.parcels || 4 * untold_bytes_ >= bound.bytes)
    say(FrameKind::arrived);
}

void TcpReceiver::say(FrameKind kind) {
  Arrived word;
  word.kind = kind;
  word.epoch = epoch_.number;
  word.parcels = arrived_;
  const auto bytes = std::as_bytes(std::span(&word, 1));
  if (send_now(connection_.number(), bytes) == static_cast<ssize_t>(bytes.size())) {
    told_ = arrived_;
    untold_bytes_ = 0;
  }
}

void TcpReceiver::end(ChannelEnd::Why why, const std::string& text) {
  thread_.remove(place_);
  connection_ = Descriptor();
  payload_ = {};
  if (receiving_.listener.on_end) receiving_.listener.on_end({why, text});
}

Result<std::unique_ptr<Door>> open_tcp_door(ChannelThread& thread, const std::string& address,
                                            const DoorOrder& order) {
  const auto where = tcp_address(address);
  if (!where) return where.error();
  auto socket = listen_at(*where);
  if (!socket) return within(address, socket.error());
  const auto own = to_text(address_of(*socket));
  return std::unique_ptr<Door>(std::make_unique<ListeningDoor>(
      thread, std::move(*socket), own, Carrier::tcp, order, make_receiver<TcpReceiver>));
}

}  // namespace troupe::transport
