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

/// The sending end of a TCP connection that was let in.
///
/// A small parcel is written by the thread that sends it, since to wake another one takes longer;
/// whatever the connection does not take at once is written by the channel's thread. At any moment
/// at most one thread writes; what others send meanwhile goes along with it.
class TcpSender final : public Sender, private ChannelSource {
 public:
  /// With terms it encrypts; whoever authenticates needs no checksums.
  TcpSender(ChannelThread& thread, Descriptor connection, Sending sending, Checksums checksums,
            const std::optional<SessionTerms>& terms = {});
  ~TcpSender() override;

  Tensor lend(const Shape& shape, DType type) override;
  Status send(std::span<const std::byte> head, std::span<const Tensor> tensors) override;
  Status close(std::chrono::milliseconds patience) override;
  ChannelCounters counters() const override;

 private:
  using Lock = std::unique_lock<std::mutex>;

  /// A parcel as it travels: its front, then each tensor with what aligns the next one, then the
  /// payload's checksum.
  struct Outgoing {
    std::vector<std::byte> front;
    std::vector<Tensor> tensors;
    RunningChecksum running;
    std::size_t summed_part = 0;  // The one that `running` is at.
    std::uint64_t checksum = 0;
    std::size_t sealed_payload = 0;  // Bytes of it.

    std::span<const std::byte> part(std::size_t i) const;
  };
  /// A place in the line of parcels.
  struct Cursor {
    std::size_t parcel = 0;
    std::size_t part = 0;
    std::size_t offset = 0;
  };
  /// What goes with one system call.
  struct Batch {
    std::array<iovec, 64> parts;
    std::size_t count = 0;
    std::size_t bytes = 0;
  };

  /// Encrypted bytes that go with one system call.
  static constexpr std::size_t most_sealed = std::size_t{512} << 10;

  /// The encrypted part of a channel, and what the connection has not taken of it yet. The seal and
  /// the buffer are the writer's; words are opened with the lock.
  struct Sealed {
    explicit Sealed(const SessionTerms& terms) : seal(terms.forth), words(terms.back) {}

    /// Where the next record goes, once it has been found that there is room.
    std::byte* place() { return buffer.get() + size; }
    bool has_room_for(std::size_t bytes) const { return most_sealed - size >= bytes; }
    bool all_taken() const { return taken == size; }
    /// `plain` may lie at place() already.
    void add(std::span<const std::byte> plain);

    RecordSeal seal, words;
    // A channel that carries only words touches few of its pages.
    std::unique_ptr<std::byte[]> buffer = std::make_unique_for_overwrite<std::byte[]>(most_sealed);
    std::size_t size = 0;   // That is filled.
    std::size_t taken = 0;  // Of it, by the connection.
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
  Cursor written_;  // The writer's: what the connection has taken.
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
