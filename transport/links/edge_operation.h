#pragma once

#include <cassert>
#include <chrono>
#include <cstdint>

#include "transport/links/link.h"

namespace troupe::transport {

using EdgeTime = std::chrono::steady_clock::time_point;

/// Where the tensors of a parcel are, at one end of an edge.
enum class OperationState : std::uint8_t {
  waiting,  // The receiver has no room for them yet.
  granted,  // It has, and the device is to get the operation.
  posted,   // The link was told.
  issued,   // The device has it in its queue.
  done,     // It has left the queue in order, with the numbers.
  failed,   // It left the queue somehow, or never will: there is garbage.
};

/// How one of them gets from state to state, and until when it must. Pure: knows no clock.
class Operation {
 public:
  OperationState state() const { return state_; }
  bool under_way() const {
    return state_ == OperationState::posted || state_ == OperationState::issued;
  }

  /// Only the first that waits has a deadline: the others wait for it.
  void expect_grant(EdgeTime deadline) {
    assert(state_ == OperationState::waiting);
    if (deadline_ == never) deadline_ = deadline;
  }
  void grant(EdgeTime deadline) {
    assert(state_ == OperationState::waiting);
    move_to(OperationState::granted, deadline);
  }
  /// With it the link has been given so many operations in all.
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
