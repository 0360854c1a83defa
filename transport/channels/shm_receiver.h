#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "core/descriptor.h"
#include "core/memory/memory_pool.h"
#include "transport/channels/channel.h"
#include "transport/channels/channel_thread.h"
#include "transport/channels/door.h"
#include "transport/channels/frame.h"
#include "transport/channels/listening_door.h"
#include "transport/channels/shm_segment.h"

namespace troupe::transport {

/// The received slots that this process holds. A slot is returned when its last tensor is dropped,
/// on any thread. The object lives until the last slot is returned.
class ShmArrivals final : private MemoryOwner, public std::enable_shared_from_this<ShmArrivals> {
 public:
  ShmArrivals(std::shared_ptr<ShmSegment> segment, int bell);

  /// Returns a handle on the segment that holds `slot` until it is dropped. Returns an empty handle
  /// if more slots are out than a correct sender sends.
  BlockHandle hold(std::uint32_t slot);
  void give_back(std::uint32_t slot);
  /// Wakes the sender if it waits for a change.
  void tell();
  /// Stops tell() from using the socket, which is about to close.
  void hang_up();

 private:
  struct Arrival : MemoryBlock {
    std::uint32_t slot = 0;
  };

  void give_back(MemoryBlock* block) override;
  void put_back(std::uint32_t slot);

  std::shared_ptr<ShmSegment> segment_;
  std::mutex mutex_;
  int bell_;
  std::deque<Arrival> all_;
  std::vector<Arrival*> free_;
  std::size_t held_ = 0;
  std::uint64_t returned_ = 0;
  std::shared_ptr<ShmArrivals> keeper_;  // Set while a slot is held.
};

/// The receiving end of a shared segment; it exists before its sender connects.
class ShmReceiver final : public Receiver, private Guest, private ChannelSource {
 public:
  ShmReceiver(ChannelThread& thread, std::shared_ptr<GuestList> guests, Token token,
              const Epoch& epoch, Receiving receiving);
  ~ShmReceiver() override;

  ChannelCounters counters() const override;

 private:
  Verdict judge(const Caller& caller, std::vector<std::byte>& greeting) override;
  void arrive(Caller caller) override;
  void on_ready(std::uint32_t events) override;
  bool look() override;
  bool may_sleep() override;
  void awake() override;

  Status take_record();
  Status make_tensors(const ShmRecord& record, std::span<const ShmPlace> places);
  Status check_place(const ShmPlace& place, const TensorPlan& plan) const;
  void deliver(std::size_t head_bytes);
  void end(ChannelEnd::Why why, const std::string& text);

  ChannelThread& thread_;
  std::shared_ptr<GuestList> guests_;
  const Epoch epoch_;
  Receiving receiving_;
  Descriptor connection_;
  std::shared_ptr<ShmSegment> segment_;
  std::shared_ptr<ShmArrivals> arrivals_;
  ChannelThread::Place place_{};
  bool ended_ = false;

  std::uint64_t read_ = 0;     // Bytes of the ring.
  std::uint64_t arrived_ = 0;  // Parcels.
  std::vector<std::byte> front_;
  std::vector<ShmPlace> places_;
  std::vector<TensorPlan> plans_;
  std::vector<Tensor> tensors_;
  std::atomic<std::uint64_t> parcels_{0};
  std::atomic<std::uint64_t> bytes_{0};
  std::atomic<std::uint64_t> copied_{0};
};

}  // namespace troupe::transport
