#pragma once

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
#include "transport/channels/shm_segment.h"
#include "transport/channels/shm_slots.h"

namespace troupe::transport {

/// The sending end of a shared segment. The sending thread copies tensors that were not lent and
/// writes the record. If there is no room, the parcel waits in a queue; when the receiver reports
/// room, the channel's thread continues.
class ShmSender final : public Sender, private ChannelSource {
 public:
  ShmSender(ChannelThread& thread, Descriptor connection, std::shared_ptr<ShmSegment> segment,
            Sending sending);
  ~ShmSender() override;

  Tensor lend(const Shape& shape, DType type) override;
  Status send(std::span<const std::byte> head, std::span<const Tensor> tensors) override;
  Status close(std::chrono::milliseconds patience) override;
  ChannelCounters counters() const override;

 private:
  using Lock = std::unique_lock<std::mutex>;

  struct Outgoing {
    std::vector<std::byte> front;
    std::vector<Tensor> tensors;
    std::vector<ShmPlace> places;  // Empty until the tensors have slots.
    ShmRecord record;
    std::size_t bytes = 0;
    bool ready = false;  // All copies are done.
  };

  void on_ready(std::uint32_t events) override;

  bool make_ready(Lock& lock, Outgoing& outgoing);
  bool place(Outgoing& outgoing);
  void copy(Outgoing& outgoing);
  bool publish(Outgoing& outgoing);
  void advance_line(Lock& lock);
  void settle();
  void put_by(std::unique_ptr<Outgoing> outgoing);
  bool all_delivered() const;
  void end(ChannelEnd::Why why, const std::string& text);

  ChannelThread& thread_;
  Descriptor connection_;
  std::shared_ptr<ShmSegment> segment_;
  ShmControl& control_;
  Sending sending_;
  std::shared_ptr<ShmSlots> slots_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  Credit credit_;
  Line<std::unique_ptr<Outgoing>> line_;
  std::vector<std::unique_ptr<Outgoing>> spare_;
  bool advancing_ = false;  // Set while a thread works on the queue; only one may.
  bool closing_ = false;
  std::optional<ChannelEnd> end_;
  ChannelCounters counters_;
  ChannelThread::Place place_{};
};

}  // namespace troupe::transport
