#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "tests/cuda_on_cores/nccl_wires.h"

namespace cuda_on_cores {

/// The byte that fills the memory of an aborted receive, and of a sum that another member gets.
constexpr int nccl_garbage = 0xA5;

/// The request of one call within a group.
struct Part {
  enum class Kind : std::uint8_t { send, receive, reduce };

  Kind kind = Kind::send;
  int peer = 0;  // For a sum: the member that gets it.
  std::byte* memory = nullptr;
  std::size_t bytes = 0;
};

/// State that outlives both a communicator and its operations in queues.
struct Membership {
  Membership(const std::string& name, const Introduction& own)
      : wires(name, own),
        member(own.member),
        sent(static_cast<std::size_t>(own.of)),
        received(static_cast<std::size_t>(own.of)) {}

  Wires wires;
  const int member;
  std::atomic<bool> is_aborted = false;
  std::atomic<int> in_queue = 0;  // Operations in the queue.
  // Used only by the queue, so by one operation at a time: parts sent to and received from each
  // other member.
  std::vector<std::uint64_t> sent, received;
};

/// All parts of a group, which progress together as on a device. The operation occupies its queue
/// until each part has met its counterpart.
class Operation {
 public:
  Operation(std::shared_ptr<Membership> of, std::vector<Part> parts);

  /// Called by the queue. Returns true once the operation is over.
  bool go_on();

 private:
  struct Transfer {
    int peer = 0;
    std::byte* memory = nullptr;
    Packet next;
    bool is_over = false;
  };

  void begin();
  void add_incoming(const Part& part, int from, std::byte* memory);
  void add_outgoing(const Part& part, int to);
  bool go_on(std::vector<Transfer>& transfers, bool (Operation::*move)(Transfer&));
  bool send(Transfer& transfer);
  bool receive(Transfer& transfer);
  void copy_own();
  void add_up(const Part& part);
  void spoil(const Part& part) const;

  const std::shared_ptr<Membership> membership_;
  const std::vector<Part> parts_;
  bool is_begun_ = false;
  std::vector<Transfer> outgoing_, incoming_;
  std::vector<std::unique_ptr<std::byte[]>> addends_;  // From the other members, concatenated.
};

}  // namespace cuda_on_cores
