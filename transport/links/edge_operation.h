#pragma once

#include <cassert>
#include <chrono>
#include <cstdint>

#include "transport/links/link.h"

namespace troupe::transport {

using EdgeTime = std::chrono::steady_clock::time_point;

/// The state of a parcel's tensors at one end of an edge.
enum class OperationState : std::uint8_t {
  waiting,  // The receiver has no room for them yet.
  granted,  // The receiver has room; the operation can be posted.
  posted,   // The link has the operation.
  issued,   // The device has the operation in its queue.
  done,     // The operation completed; the data is valid.
  failed,   // The operation was aborted, or never runs; the data is garbage.
};

/// The state machine of one operation, with its deadline. It reads no clock.
class Operation {
 public:
  OperationState state() const { return state_; }
  bool under_way() const {
    return state_ == OperationState::posted || state_ == OperationState::issued;
  }

  /// Sets a deadline for the first waiting operation only; later ones wait for it.
  void expect_grant(EdgeTime deadline) {
    assert(state_ == OperationState::waiting);
    if (deadline_ == never) deadline_ = deadline;
  }
  void grant(EdgeTime deadline) {
    assert(state_ == OperationState::waiting);
    move_to(OperationState::granted, deadline);
  }
  /// `number` counts the operations that the link was given, this one included.
  void post(std::uint64_t number, EdgeTime deadline) {
    assert(state_ == OperationState::granted);
    number_ = number;
    move_to(OperationState::posted, deadline);
  }
  void follow(const LinkReport& report) {
    if (state_ == OperationState::posted && report.issued >= number_)
      move_to(OperationState::issued, deadline_);
    if (state_ == OperationState::issued && report.ended >= number_)
      move_to(OperationState::done, never);
  }
  void fail() {
    if (state_ != OperationState::done) move_to(OperationState::failed, never);
  }

  bool late(EdgeTime now) const { return now >= deadline_; }

 private:
  static constexpr EdgeTime never = EdgeTime::max();

  void move_to(OperationState state, EdgeTime deadline) {
    state_ = state;
    deadline_ = deadline;
  }

  OperationState state_ = OperationState::waiting;
  EdgeTime deadline_ = never;
  std::uint64_t number_ = 0;
};

}  // namespace troupe::transport
