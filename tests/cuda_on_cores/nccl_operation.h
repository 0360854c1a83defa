#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "tests/cuda_on_cores/nccl_wires.h"

namespace cuda_on_cores {

/// What every byte is where an aborted receive has left garbage, and where a sum is another's.
constexpr int nccl_garbage = 0xA5;

/// What one call within a group asks for.
struct Part {
  enum class Kind : std::uint8_t { send, receive, reduce };

  Kind kind = Kind::send;
  int peer = 0;  // Of a sum: who is to have it.
  std::byte* memory = nullptr;
  std::size_t bytes = 0;
};

/// What both outlive: a communicator, and what it has put into a queue.
struct Membership {
  Membership(const std::string& name, const Introduction& own)
      : wires(name, own),
        member(own.member),
        sent(static_cast<std::size_t>(own.of)),
        received(static_cast<std::size_t>(own.of)) {}

  Wires wires;
  const int member;
  std::atomic<bool> is_aborted = false;
  std::atomic<int> in_queue = 0;  // Operations.
  // Of the queue alone, and so of one operation after another: parts for each of the others, and of
  // them.
  std::vector<std::uint64_t> sent, received;
};

/// All parts of a group as a device does them: none before the other. It occupies its queue until
/// each has met what it belongs to.
class Operation {
 public:
  Operation(std::shared_ptr<Membership> of, std::vector<Part> parts);

  /// By the queue. True once it is over.
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
  std::vector<std::unique_ptr<std::byte[]>> addends_;  // Others', one after another.
};

}  // namespace cuda_on_cores
