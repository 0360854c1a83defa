#include "transport/channels/tcp_sender.h"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <cstring>
#include <utility>

#include "transport/channels/door_rules.h"
#include "transport/channels/socket.h"
#include "transport/channels/tcp_channel.h"

namespace troupe::transport {
namespace {

// The size above which the channel's thread, not the caller, copies a parcel into the socket.
constexpr std::size_t most_gathered = std::size_t{32} << 10;
// The amount that stays in the processor's cache between its checksum and the system's copy.
constexpr std::size_t most_in_batch = std::size_t{512} << 10;
constexpr int batches_in_turn = 8;

constexpr std::array<std::byte, payload_alignment> nothing{};

}  // namespace

TcpSender::TcpSender(ChannelThread& thread, Descriptor connection, Sending sending,
                     Checksums checksums, const std::optional<SessionTerms>& terms)
    : thread_(thread),
      connection_(std::move(connection)),
      sending_(std::move(sending)),
      checksums_(checksums),
      credit_(sending_.bound),
      // The receiver may acknowledge a parcel before its writer removes it from the queue.
      line_(2 * sending_.bound.parcels) {
  if (terms) sealed_ = std::make_unique<Sealed>(*terms);
  thread_.add(*this, connection_.number(), usual_events, place_);
}

TcpSender::~TcpSender() { thread_.remove(place_); }

Tensor TcpSender::lend(const Shape& shape, DType type) {
  return Tensor::make(*sending_.memory, shape, type);
}

ChannelCounters TcpSender::counters() const {
  const Lock lock(mutex_);
  return counters_;
}

std::optional<PathFigures> TcpSender::path() const {
  const Lock lock(mutex_);
  return end_ ? std::nullopt : path_of(connection_.number());
}

Status TcpSender::send(std::span<const std::byte> head, std::span<const Tensor> tensors) {
  assert_sane(head, tensors);
  std::size_t bytes = 0;
  for (const auto& tensor : tensors) bytes += tensor.bytes();

  Lock lock(mutex_);
  if (end_) return Error{end_->text};
  if (closing_) return Error{"the channel was closed by its sender"};
  if (!credit_.covers(bytes)) read_words();
  if (auto taken = credit_.take(bytes); !taken) return taken;
  Outgoing& outgoing = line_.push();
  write_front(head, tensors, outgoing.front);
  number_front(outgoing.front, sending_.epoch.number, credit_.sent_so_far(), checksums_);
  outgoing.tensors.assign(tensors.begin(), tensors.end());
  outgoing.running = {};
  outgoing.summed_part = 0;
  outgoing.sealed_payload = 0;
  credit_.sent(bytes);
  ++counters_.parcels;
  counters_.bytes += bytes;
  if (writing_ || asked_to_write_) return Done{};
  if (outgoing.front.size() + bytes > most_gathered)
    ask_to_write();
  else
    write(lock, 1);
  return Done{};
}

Status TcpSender::close(std::chrono::milliseconds patience) {
  Lock lock(mutex_);
  closing_ = true;
  const bool in_time =
      changed_.wait_for(lock, patience, [&] { return end_ || credit_.parcels() == 0; });
  const bool all_arrived = credit_.parcels() == 0;
  if (end_ && !(all_arrived && end_->why == ChannelEnd::Why::closed)) return Error{end_->text};
  if (end_) return Done{};
  if (!in_time)
    return Error{std::to_string(credit_.parcels()) + " parcels have not arrived after " +
                 std::to_string(patience.count()) + " ms"};
  FrameHeader goodbye;
  goodbye.kind = FrameKind::goodbye;
  auto bytes = std::as_writable_bytes(std::span(&goodbye, 1));
  number_front(bytes, sending_.epoch.number, credit_.sent_so_far(), checksums_);
  // Everything has arrived, so the socket has room and no thread writes.
  if (sealed_) {
    std::array<std::byte, sizeof goodbye + seal_tag_bytes> record;
    const auto tag = sealed_->seal.seal(bytes, record.data());
    std::ranges::copy(tag, record.begin() + sizeof goodbye);
    send_now(connection_.number(), record);
  } else {
    send_now(connection_.number(), bytes);
  }
  shutdown(connection_.number(), SHUT_WR);
  end_ = ChannelEnd{ChannelEnd::Why::closed, "the channel was closed by its sender"};
  lock.unlock();
  thread_.remove(place_);
  return Done{};
}

/// Writes up to `batches` batches. The caller holds the lock and no thread writes; releases the
/// lock during system calls.
void TcpSender::write(Lock& lock, int batches) {
  writing_ = true;
  while (batches-- > 0 && has_more() && !end_)
    if (!(sealed_ ? write_sealed(lock) : write_plain(lock))) break;
  writing_ = false;
  if (end_) return drop_line();
  ask_to_write();
}

/// Writes a batch. Returns false if the socket did not take all of it: it is full, or has ended, of
/// which epoll informs the channel's thread too.
bool TcpSender::write_plain(Lock& lock) {
  const auto parcels = line_.size();
  lock.unlock();
  Batch batch;
  gather(batch, parcels);
  msghdr message{};
  message.msg_iov = batch.parts.data();
  message.msg_iovlen = batch.count;
  const auto sent = sendmsg(connection_.number(), &message, MSG_DONTWAIT | MSG_NOSIGNAL);
  lock.lock();
  if (sent < 0) return false;
  wrote(static_cast<std::size_t>(sent));
  return static_cast<std::size_t>(sent) == batch.bytes;
}

/// Writes a batch of encrypted records. A record is never encrypted twice, however often the socket
/// is full.
bool TcpSender::write_sealed(Lock& lock) {
  if (sealed_->all_taken()) {
    const auto parcels = line_.size();
    lock.unlock();
    const auto bytes = seal_more(parcels);
    lock.lock();
    wrote(bytes);
  }
  lock.unlock();
  const std::span<const std::byte> left(sealed_->buffer.get() + sealed_->taken,
                                        sealed_->size - sealed_->taken);
  const auto sent = send_now(connection_.number(), left);
  lock.lock();
  if (sent < 0) return false;
  sealed_->taken += static_cast<std::size_t>(sent);
  return sealed_->all_taken();
}

void TcpSender::Sealed::add(std::span<const std::byte> plain) {
  const auto tag = seal.seal(plain, place());
  size += plain.size();
  std::ranges::copy(tag, place());
  size += tag.size();
}

/// Fills the buffer with the next encrypted records, without the lock (see gather()). Returns how
/// many bytes of the queue they contain.
std::size_t TcpSender::seal_more(std::size_t parcels) {
  // The longest front fits into an empty buffer.
  static_assert(most_sealed >= sizeof(FrameHeader) + most_head_bytes +
                                   most_tensors * sizeof(TensorRecord) + 2 * seal_tag_bytes);
  auto& sealed = *sealed_;
  sealed.size = sealed.taken = 0;
  std::size_t bytes = 0;
  for (Cursor at = written_; at.parcel < parcels; at = {at.parcel + 1, 0, 0}) {
    auto& outgoing = line_[at.parcel];
    if (at.part == 0) {
      const auto front = std::span(std::as_const(outgoing.front));
      if (!sealed.has_room_for(front.size() + 2 * seal_tag_bytes)) return bytes;
      sealed.add(front.first(sizeof(FrameHeader)));
      if (front.size() > sizeof(FrameHeader)) sealed.add(front.subspan(sizeof(FrameHeader)));
      bytes += front.size();
      at.part = 1;
    }
    const auto payload = payload_bytes_of(outgoing.tensors);
    while (outgoing.sealed_payload < payload) {
      const auto record = std::min(payload_record_bytes, payload - outgoing.sealed_payload);
      if (!sealed.has_room_for(record + seal_tag_bytes)) return bytes;
      seal_payload(outgoing, record, at);
      outgoing.sealed_payload += record;
      bytes += record;
    }
  }
  return bytes;
}

/// Encrypts the next record of a payload. It reads straight from the tensor if one tensor has the
/// whole record; otherwise it first copies the parts together.
void TcpSender::seal_payload(const Outgoing& outgoing, std::size_t bytes, Cursor& at) {
  const auto next_part = [&] {
    for (;; ++at.part, at.offset = 0) {
      const auto part = outgoing.part(at.part).subspan(at.offset);
      if (!part.empty()) return part;
    }
  };
  const auto first = next_part();
  if (first.size() >= bytes) {
    at.offset += bytes;
    return sealed_->add(first.first(bytes));
  }
  std::byte* const place = sealed_->place();
  for (std::size_t copied = 0; copied < bytes;) {
    const auto part = next_part();
    const auto some = std::min(part.size(), bytes - copied);
    std::memcpy(place + copied, part.data(), some);
    copied += some;
    at.offset += some;
  }
  sealed_->add({place, bytes});
}

/// Asks the channel's thread to write what is left.
void TcpSender::ask_to_write() {
  if (asked_to_write_ == has_more()) return;
  asked_to_write_ = has_more();
  thread_.set_events(place_, connection_.number(),
                     asked_to_write_ ? usual_events | EPOLLOUT : usual_events);
}

std::size_t TcpSender::parts_of(const Outgoing& outgoing) const {
  const bool has_checksum = checksums_ == Checksums::on && !outgoing.tensors.empty();
  return 1 + 2 * outgoing.tensors.size() + (has_checksum ? 1 : 0);
}

std::span<const std::byte> TcpSender::Outgoing::part(std::size_t i) const {
  if (i == 0) return front;
  if (i == 1 + 2 * tensors.size()) return std::as_bytes(std::span(&checksum, 1));
  const auto& tensor = tensors[(i - 1) / 2];
  if (i % 2 == 1) return tensor.host_bytes();
  return std::span(nothing).first(aligned(tensor.bytes()) - tensor.bytes());
}

/// Works without the lock: no other thread touches the first `parcels` of the queue.
void TcpSender::gather(Batch& batch, std::size_t parcels) {
  for (Cursor at = written_; at.parcel < parcels; ++at.parcel, at.part = 0) {
    auto& outgoing = line_[at.parcel];
    for (; at.part < parts_of(outgoing); ++at.part, at.offset = 0) {
      if (batch.count == batch.parts.size() || batch.bytes == most_in_batch) return;
      auto part = outgoing.part(at.part);
      const auto end = std::min(part.size(), at.offset + most_in_batch - batch.bytes);
      if (checksums_ == Checksums::on) sum_up(outgoing, at.part, end);
      part = part.first(end).subspan(at.offset);
      if (part.empty()) continue;
      batch.parts[batch.count++] = {const_cast<std::byte*>(part.data()), part.size()};
      batch.bytes += part.size();
      if (end < outgoing.part(at.part).size()) return;
    }
  }
}

/// A part may be visited again if the socket took only some of a batch.
void TcpSender::sum_up(Outgoing& outgoing, std::size_t part, std::size_t end) {
  if (part == 0 || part < outgoing.summed_part) return;
  if (part > outgoing.summed_part) outgoing.running.next_tensor();
  outgoing.summed_part = part;
  if (part == 1 + 2 * outgoing.tensors.size())
    outgoing.checksum = outgoing.running.sum();
  else if (part % 2 == 1)
    outgoing.running.reach(outgoing.part(part), end);
}

void TcpSender::wrote(std::size_t bytes) {
  while (!line_.empty()) {
    auto& outgoing = line_.front();
    for (; written_.part < parts_of(outgoing); ++written_.part, written_.offset = 0) {
      const auto left = outgoing.part(written_.part).size() - written_.offset;
      if (bytes < left) {
        written_.offset += bytes;
        return;
      }
      bytes -= left;
    }
    outgoing.tensors.clear();
    line_.pop();
    written_ = {};
    if (bytes == 0) return;
  }
}

void TcpSender::drop_line() {
  for (; !line_.empty(); line_.pop()) line_.front().tensors.clear();
}

void TcpSender::on_ready(std::uint32_t events) {
  Lock lock(mutex_);
  read_words();
  if (end_) {
    const ChannelEnd why = *end_;
    const bool tell = !closing_ && sending_.on_end;
    if (!writing_) drop_line();
    lock.unlock();
    thread_.remove(place_);
    changed_.notify_all();
    if (tell) sending_.on_end(why);
    return;
  }
  changed_.notify_all();
  if ((events & EPOLLOUT) && !writing_) write(lock, batches_in_turn);
}

void TcpSender::read_words() {
  while (!end_) {
    const auto size = sealed_ ? word_.size() : sizeof(Arrived);
    const auto came =
        recv(connection_.number(), word_.data() + word_got_, size - word_got_, MSG_DONTWAIT);
    if (came < 0 && errno == EINTR) continue;
    if (came < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
    if (came < 0) return end(ChannelEnd::Why::lost, system_error("the receiver died").text);
    if (came == 0)
      return end(ChannelEnd::Why::lost,
                 "the other process died (connection closed without notice)");
    word_got_ += static_cast<std::size_t>(came);
    if (word_got_ < size) continue;
    word_got_ = 0;
    Arrived word;
    if (sealed_) {
      SealTag tag;
      std::memcpy(tag.data(), word_.data() + sizeof word, sizeof tag);
      if (!sealed_->words.open(std::span(word_).first(sizeof word), tag))
        return end(ChannelEnd::Why::broken, not_as_sealed);
    }
    std::memcpy(&word, word_.data(), sizeof word);
    take_word(word);
  }
}

void TcpSender::take_word(const Arrived& word) {
  if (word.magic != frame_magic || word.epoch != sending_.epoch.number ||
      (word.kind != FrameKind::arrived && word.kind != FrameKind::goodbye))
    return end(ChannelEnd::Why::broken, "the receiver sent a malformed message");
  if (!credit_.arrived(word.parcels))
    return end(ChannelEnd::Why::broken, "the receiver acknowledges parcels that were not sent");
  if (word.kind == FrameKind::goodbye)
    end(ChannelEnd::Why::closed, "the channel was closed by its receiver");
}

/// Shuts the connection down, upon which the channel's thread reports the end.
void TcpSender::end(ChannelEnd::Why why, const std::string& text) {
  end_ = ChannelEnd{why, text};
  shutdown(connection_.number(), SHUT_RDWR);
}

namespace {

/// Sends the hello of an encrypting sender and agrees on keys.
Result<SessionTerms> agree_on_keys(const Descriptor& connection, const Sending& sending,
                                   SocketDeadline deadline) {
  Hello hello = hello_of(sending, Carrier::tcp, Checksums::off);
  hello.protection = Protection::sealed;
  const auto asker = KeyAsker::begin(*sending.keys, hello);
  if (!asker) return asker.error();
  std::array<std::byte, sizeof hello + sizeof(KeyOffer)> said;
  std::memcpy(said.data(), &hello, sizeof hello);
  std::memcpy(said.data() + sizeof hello, &asker->offer(), sizeof(KeyOffer));
  KeyAnswer answer;
  const Knocking knocking{.hello = said, .greeting = std::as_writable_bytes(std::span(&answer, 1))};
  if (auto in = be_let_in(connection, knocking, deadline); !in) return in.error();
  return asker->finish(answer);
}

}  // namespace

Result<std::unique_ptr<Sender>> connect_tcp(ChannelThread& thread, const std::string& address,
                                            Sending sending, Checksums checksums) {
  const auto deadline = std::chrono::steady_clock::now() + sending.patience;
  const auto where = tcp_address(address);
  if (!where) return where.error();
  auto connection =
      connect_to(*where, std::min(deadline, SocketDeadline::clock::now() + path_patience));
  if (!connection) return within(address, connection.error());
  send_without_delay(*connection);
  notice_lost_path(*connection);
  if (sending.keys) {
    auto terms = agree_on_keys(*connection, sending, deadline);
    if (!terms) return within(address, terms.error());
    return std::unique_ptr<Sender>(std::make_unique<TcpSender>(
        thread, std::move(*connection), std::move(sending), Checksums::off, *terms));
  }
  const Hello hello = hello_of(sending, Carrier::tcp, checksums);
  const Knocking knocking{.hello = std::as_bytes(std::span(&hello, 1)), .greeting = {}};
  if (auto in = be_let_in(*connection, knocking, deadline); !in) return within(address, in.error());
  return std::unique_ptr<Sender>(
      std::make_unique<TcpSender>(thread, std::move(*connection), std::move(sending), checksums));
}

}  // namespace troupe::transport
