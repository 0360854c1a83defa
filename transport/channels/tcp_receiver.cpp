#include "transport/channels/tcp_receiver.h"

#include <sys/epoll.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <utility>

#include "core/units.h"
#include "transport/channels/door_rules.h"
#include "transport/channels/socket.h"
#include "transport/channels/tcp_channel.h"

namespace troupe::transport {
namespace {

// The amount that stays in the processor's cache until it is checksummed or decrypted.
constexpr std::size_t most_at_once = std::size_t{512} << 10;
// Two of these records may be incomplete: the first and the last.
constexpr std::size_t most_records_at_once = most_at_once / payload_record_bytes + 2;
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

Verdict TcpReceiver::judge(const Caller& caller, std::vector<std::byte>& greeting) {
  const auto admission = judge_at_receiver(caller.hello, caller.offer, receiving_,
                                           is_loopback(peer_address_of(caller.connection)));
  if (!admission.agreement) return admission.verdict;
  sealed_ = std::make_unique<Sealed>(admission.agreement->terms);
  const auto answer = std::as_bytes(std::span(&admission.agreement->answer, 1));
  greeting.assign(answer.begin(), answer.end());
  return admission.verdict;
}

void TcpReceiver::arrive(Caller caller) {
  connection_ = std::move(caller.connection);
  notice_lost_path(connection_);
  const bool has_sums = caller.hello.checksums == 1 && !sealed_;
  checksums_ = has_sums ? Checksums::on : Checksums::off;
  thread_.add(*this, connection_.number(), usual_events, place_);
}

void TcpReceiver::on_ready(std::uint32_t) {
  for (int i = 0; i < receives_in_turn; ++i) {
    const auto came = receive();
    if (came < 0 && errno == EINTR) continue;
    if (came < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) break;
    if (came < 0) return end(ChannelEnd::Why::lost, system_error("the sender died").text);
    if (came == 0)
      return end(ChannelEnd::Why::lost,
                 "the other process died (connection closed without notice)");
    auto sane = take_payload();
    if (sane) sane = use_staging();
    if (!sane) return end(ChannelEnd::Why::broken, sane.error().text);
    if (said_goodbye_) return end(ChannelEnd::Why::closed, "the channel was closed by its sender");
    if (all_had_come_) break;
  }
  if (flush_word() && told_ < arrived_) say(FrameKind::arrived);
  // If the socket had no room for the acknowledgement, send it later.
  const bool must_tell = told_ < arrived_ || word_sent_ < word_size_;
  if (std::exchange(must_tell_, must_tell) != must_tell_)
    thread_.set_events(place_, connection_.number(),
                       must_tell_ ? usual_events | EPOLLOUT : usual_events);
}

/// Reads into the payload if one is expected; bytes beyond it go into the staging buffer.
ssize_t TcpReceiver::receive() {
  used_ = staged_ = 0;
  std::array<iovec, 2 * most_records_at_once + 1> parts;
  int count = 0;
  std::size_t room = 0, staging_room = 0;
  if (wanted_ == Wanted::payload) {
    const auto most = std::min(payload_to_come() - payload_got_, most_at_once);
    while (room < most) {
      const auto place = payload_room(payload_got_ + room);
      const auto some = std::min(place.size(), most - room);
      parts[static_cast<std::size_t>(count++)] = {place.data(), some};
      room += some;
    }
  }
  if (room < most_at_once) {
    staging_room = staging_.size();
    parts[static_cast<std::size_t>(count++)] = {staging_.data(), staging_room};
  }
  const auto came = readv(connection_.number(), parts.data(), count);
  if (came > 0) {
    const auto bytes = static_cast<std::size_t>(came);
    payload_got_ += std::min(bytes, room);
    staged_ = bytes - std::min(bytes, room);
    all_had_come_ = bytes < room + staging_room;
  }
  return came;
}

/// Returns the length of the payload on the wire.
std::size_t TcpReceiver::payload_to_come() const {
  const std::size_t bytes = header_.payload_bytes;
  if (!sealed_) return bytes;
  return bytes + (bytes + payload_record_bytes - 1) / payload_record_bytes * seal_tag_bytes;
}

/// Returns where the payload's wire bytes from `at` on belong, up to the next boundary between a
/// record and its tag.
std::span<std::byte> TcpReceiver::payload_room(std::size_t at) {
  auto* const memory = payload_.get()->memory;
  if (!sealed_) return {memory + at, header_.payload_bytes - at};
  constexpr std::size_t whole = payload_record_bytes + seal_tag_bytes;
  const std::size_t begin = at / whole * payload_record_bytes, in_record = at % whole;
  const auto size = std::min<std::size_t>(payload_record_bytes, header_.payload_bytes - begin);
  if (in_record < size) return {memory + begin + in_record, size - in_record};
  static_assert(most_records_at_once <= std::tuple_size_v<decltype(Sealed::tags)>);
  auto& tag = sealed_->tags[at / whole % sealed_->tags.size()];
  return std::span(tag).subspan(in_record - size);
}

/// Decrypts a record whose tag has arrived.
Status TcpReceiver::open(std::span<std::byte> record) {
  sealed_->tag_got = 0;
  if (!sealed_->seal.open(record, sealed_->tag)) return Error{not_as_sealed};
  return Done{};
}

/// Decrypts all payload records that have arrived.
Status TcpReceiver::open_payload() {
  constexpr std::size_t whole = payload_record_bytes + seal_tag_bytes;
  for (;; ++sealed_->opened) {
    const std::size_t begin = sealed_->opened * payload_record_bytes;
    if (begin >= header_.payload_bytes) return Done{};
    const auto size = std::min<std::size_t>(payload_record_bytes, header_.payload_bytes - begin);
    if (payload_got_ < sealed_->opened * whole + size + seal_tag_bytes) return Done{};
    const auto& tag = sealed_->tags[sealed_->opened % sealed_->tags.size()];
    if (!sealed_->seal.open({payload_.get()->memory + begin, size}, tag))
      return Error{not_as_sealed};
  }
}

/// Distributes all staged bytes.
Status TcpReceiver::use_staging() {
  const auto move_to = [&](void* to, std::size_t& got, std::size_t wanted) {
    const auto bytes = std::min(staged_ - used_, wanted - got);
    if (bytes > 0) std::memcpy(static_cast<std::byte*>(to) + got, staging_.data() + used_, bytes);
    used_ += bytes;
    got += bytes;
    return got == wanted;
  };
  const auto has_tag = [&] {
    return !sealed_ || move_to(sealed_->tag.data(), sealed_->tag_got, sizeof sealed_->tag);
  };
  while (!said_goodbye_) {
    Status sane = Done{};
    switch (wanted_) {
      case Wanted::header:
        if (!move_to(&header_, header_got_, sizeof header_) || !has_tag()) return sane;
        if (sealed_) sane = open(std::as_writable_bytes(std::span(&header_, 1)));
        if (sane) sane = take_header();
        break;
      case Wanted::front:
        if (!move_to(front_.data(), front_got_, front_.size())) return sane;
        if (sealed_ && !front_.empty()) {
          if (!has_tag()) return sane;
          sane = open(front_);
        }
        if (sane) sane = take_front();
        break;
      case Wanted::payload:
        while (used_ < staged_ && payload_got_ < payload_to_come()) {
          const auto place = payload_room(payload_got_);
          std::size_t got = 0;
          move_to(place.data(), got, place.size());
          payload_got_ += got;
        }
        if (payload_got_ < payload_to_come()) return take_payload();
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
    return Error{"no memory for " + size_text(header_.payload_bytes) + " of tensors"};
  }
  payload_got_ = 0;
  if (sealed_) sealed_->opened = 0;
  running_ = {};
  summed_ = 0;
  wanted_ = Wanted::payload;
  return Done{};
}

Status TcpReceiver::take_payload() {
  if (wanted_ != Wanted::payload) return Done{};
  if (checksums_ == Checksums::on) sum_up();
  if (sealed_)
    if (auto opened = open_payload(); !opened) return opened;
  if (payload_got_ < payload_to_come()) return Done{};
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

/// Sends an acknowledgement or a goodbye, unless an earlier one is still incomplete.
void TcpReceiver::say(FrameKind kind) {
  if (!flush_word()) return;
  Arrived word;
  word.kind = kind;
  word.epoch = epoch_.number;
  word.parcels = arrived_;
  std::memcpy(word_.data(), &word, sizeof word);
  word_size_ = sizeof word;
  if (sealed_) {
    const auto tag = sealed_->words.seal(std::span(word_).first(sizeof word), word_.data());
    std::ranges::copy(tag, word_.begin() + sizeof word);
    word_size_ += sizeof tag;
  }
  word_sent_ = 0;
  told_ = arrived_;
  untold_bytes_ = 0;
  flush_word();
}

/// Returns whether the socket has taken the whole latest word.
bool TcpReceiver::flush_word() {
  while (word_sent_ < word_size_) {
    const auto left = std::span(word_).first(word_size_).subspan(word_sent_);
    const auto sent = send_now(connection_.number(), left);
    if (sent < 0) return false;
    word_sent_ += static_cast<std::size_t>(sent);
  }
  return true;
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
