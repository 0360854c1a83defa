#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <span>
#include <vector>

#include "core/descriptor.h"
#include "transport/channels/channel.h"
#include "transport/channels/channel_thread.h"
#include "transport/channels/door.h"
#include "transport/channels/frame.h"
#include "transport/channels/listening_door.h"
#include "transport/channels/record_seal.h"
#include "transport/channels/running_checksum.h"

namespace troupe::transport {

/// The receiving end of a TCP connection; it exists before its sender connects.
class TcpReceiver final : public Receiver, private Guest, private ChannelSource {
 public:
  TcpReceiver(ChannelThread& thread, std::shared_ptr<GuestList> guests, Token token,
              const Epoch& epoch, Receiving receiving);
  ~TcpReceiver() override;

  ChannelCounters counters() const override;

 private:
  Verdict judge(const Caller& caller, std::vector<std::byte>& greeting) override;
  void arrive(Caller caller) override;
  void on_ready(std::uint32_t events) override;

  /// The part of a frame that is read next: header, rest of the front, payload, payload checksum.
  enum class Wanted : std::uint8_t { header, front, payload, checksum };

  /// The state of an encrypted channel.
  struct Sealed {
    explicit Sealed(const SessionTerms& terms) : seal(terms.forth), words(terms.back) {}

    RecordSeal seal, words;
    SealTag tag{};  // The tag of a header or front.
    std::size_t tag_got = 0;
    // The tags of payload records that have arrived but are not decrypted yet.
    std::array<SealTag, 8> tags{};
    std::size_t opened = 0;  // Decrypted records of the payload.
  };

  ssize_t receive();
  std::size_t payload_to_come() const;
  std::span<std::byte> payload_room(std::size_t at);
  Status open(std::span<std::byte> record);
  Status open_payload();
  Status use_staging();
  Status take_header();
  Status take_front();
  Status take_payload();
  Status take_checksum();
  void sum_up();
  void deliver();
  void say(FrameKind kind);
  bool flush_word();
  void end(ChannelEnd::Why why, const std::string& text);

  ChannelThread& thread_;
  std::shared_ptr<GuestList> guests_;
  const Epoch epoch_;
  Receiving receiving_;
  Checksums checksums_ = Checksums::on;
  std::unique_ptr<Sealed> sealed_;  // Null for a plain channel.
  Descriptor connection_;
  ChannelThread::Place place_{};

  // Buffers bytes that arrived early; several small frames may arrive together.
  std::array<std::byte, std::size_t{16} << 10> staging_;
  std::size_t staged_ = 0;
  std::size_t used_ = 0;
  bool all_had_come_ = false;

  Wanted wanted_ = Wanted::header;
  FrameHeader header_;
  std::size_t header_got_ = 0;
  std::vector<std::byte> front_;  // The front without its header.
  std::size_t front_got_ = 0;
  std::vector<TensorPlan> plans_;
  BlockHandle payload_;
  std::size_t payload_got_ = 0;  // Counts the tags between records too.
  RunningChecksum running_;
  std::uint64_t checksum_ = 0;
  std::size_t checksum_got_ = 0;
  std::size_t summed_ = 0;  // Tensors.
  std::vector<Tensor> tensors_;
  bool said_goodbye_ = false;

  std::uint64_t arrived_ = 0;  // Parcels.
  std::uint64_t told_ = 0;     // Parcels acknowledged to the sender.
  std::size_t untold_bytes_ = 0;
  bool must_tell_ = false;  // An acknowledgement waits for room in the socket.
  std::array<std::byte, sizeof(Arrived) + seal_tag_bytes> word_{};
  std::size_t word_size_ = 0;
  std::size_t word_sent_ = 0;  // Bytes of `word_`.
  std::atomic<std::uint64_t> parcels_{0};
  std::atomic<std::uint64_t> bytes_{0};
};

}  // namespace troupe::transport
