#pragma once

#include <cassert>
#include <deque>

#include "schedules/schedule.h"

namespace troupe::schedules {

/// The W's of listed I's that are not listed yet, oldest first.
using Waiting = std::deque<Action>;

inline void list_oldest(Waiting& waiting, Lane& lane) {
  assert(!waiting.empty());
  lane.push_back(waiting.front());
  waiting.pop_front();
}

/// One stage of a device; lists the stage's passes one by one, each kind by micro-batch.
class Leg {
 public:
  Leg(int stage, Lane& lane, Waiting& waiting) : stage_(stage), lane_(lane), waiting_(waiting) {}

  void forward() { lane_.push_back(schedules::forward(stage_, forwards_++)); }
  void backward() { lane_.push_back(schedules::backward(stage_, backwards_++)); }
  /// Lists an I and queues its W.
  void input() {
    lane_.push_back(backward_input(stage_, backwards_));
    waiting_.push_back(backward_weight(stage_, backwards_++));
  }

  int forwards() const { return forwards_; }

 private:
  int stage_;
  Lane& lane_;
  Waiting& waiting_;
  int forwards_ = 0;
  int backwards_ = 0;
};

}  // namespace troupe::schedules
