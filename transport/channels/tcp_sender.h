#pragma once

#include <sys/uio.h>

#include <array>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "core/descriptor.h"
#include "transport/channels/channel.h"
#include "transport/channels/channel_thread.h"
#include "transport/channels/credit.h"
#include "transport/channels/door.h"
#include "transport/channels/frame.h"
#include "transport/channels/record_seal.h"
#include "transport/channels/running_checksum.h"

namespace troupe::transport {

/// The sending end of a TCP connection that a door admitted.
///
/// The sending thread writes small parcels itself, since waking another thread takes longer. The
/// channel's thread writes whatever the socket does not take at once. Only one thread writes at a
/// time; it also writes what other threads send meanwhile.
class TcpSender final : public Sender, private ChannelSource {
 public:
  /// Encrypts if `terms` is set; then checksums are superfluous.
  TcpSender(ChannelThread& thread, Descriptor connection, Sending sending, Checksums checksums,
            const std::optional<SessionTerms>& terms = {});
  ~TcpSender() override;

  Tensor lend(const Shape& shape, DType type) override;
  Status send(std::span<const std::byte> head, std::span<const Tensor> tensors) override;
  Status close(std::chrono::milliseconds patience) override;
  ChannelCounters counters() const override;
  std::optional<PathFigures> path() const override;

 private:
  using Lock = std::unique_lock<std::mutex>;

  /// A queued parcel. It is sent in parts: its front, each tensor followed by padding, and the
  /// payload's checksum.
  struct Outgoing {
    std::vector<std::byte> front;
    std::vector<Tensor> tensors;
    RunningChecksum running;
    std::size_t summed_part = 0;  // The part that `running` has reached.
    std::uint64_t checksum = 0;
    std::size_t sealed_payload = 0;  // Bytes of the payload that are encrypted already.

    std::span<const std::byte> part(std::size_t i) const;
  };
  /// A position in the queue.
  struct Cursor {
    std::size_t parcel = 0;
    std::size_t part = 0;
    std::size_t offset = 0;
  };
  /// The arguments of one system call.
  struct Batch {
    std::array<iovec, 64> parts;
    std::size_t count = 0;
    std::size_t bytes = 0;
  };

  /// The most encrypted bytes for one system call.
  static constexpr std::size_t most_sealed = std::size_t{512} << 10;

  /// The state of an encrypted channel, and encrypted bytes that the socket has not taken yet. The
  /// writing thread owns the seal and the buffer; `words` needs the lock.
  struct Sealed {
    explicit Sealed(const SessionTerms& terms) : seal(terms.forth), words(terms.back) {}

    /// Returns the place of the next record; check has_room_for() first.
    std::byte* place() { return buffer.get() + size; }
    bool has_room_for(std::size_t bytes) const { return most_sealed - size >= bytes; }
    bool all_taken() const { return taken == size; }
    /// Encrypts `plain`, which may lie at place() already.
    void add(std::span<const std::byte> plain);

    RecordSeal seal, words;
    // Not initialized: a channel that carries only small messages touches few of its pages.
    std::unique_ptr<std::byte[]> buffer = std::make_unique_for_overwrite<std::byte[]>(most_sealed);
    std::size_t size = 0;   // Filled bytes.
    std::size_t taken = 0;  // Bytes that the socket has taken.
  };

  void on_ready(std::uint32_t events) override;

  std::size_t parts_of(const Outgoing& outgoing) const;
  bool has_more() const { return !line_.empty() || (sealed_ && !sealed_->all_taken()); }
  void write(Lock& lock, int batches);
  bool write_plain(Lock& lock);
  bool write_sealed(Lock& lock);
  std::size_t seal_more(std::size_t parcels);
  void seal_payload(const Outgoing& outgoing, std::size_t bytes, Cursor& at);
  void gather(Batch& batch, std::size_t parcels);
  void sum_up(Outgoing& outgoing, std::size_t part, std::size_t end);
  void wrote(std::size_t bytes);
  void drop_line();
  void ask_to_write();
  void read_words();
  void take_word(const Arrived& word);
  void end(ChannelEnd::Why why, const std::string& text);

  ChannelThread& thread_;
  Descriptor connection_;
  Sending sending_;
  const Checksums checksums_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  Credit credit_;
  Line<Outgoing> line_;
  Cursor written_;  // The writing thread's: what the socket has taken.
  bool writing_ = false;
  bool asked_to_write_ = false;
  bool closing_ = false;
  std::optional<ChannelEnd> end_;
  ChannelCounters counters_;
  std::unique_ptr<Sealed> sealed_;  // Null for a plain channel.
  std::array<std::byte, sizeof(Arrived) + seal_tag_bytes> word_{};
  std::size_t word_got_ = 0;
  ChannelThread::Place place_{};
};

}  // namespace troupe::transport
