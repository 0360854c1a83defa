#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <utility>

#include "apps/client/reply.h"

namespace troupe::apps {

/// An answer callback that is called exactly once, on any thread. If its last copy is destroyed
/// before anybody answered, it answers with an error. Later answers are ignored.
class OneAnswer {
 public:
  using Say = std::function<void(const Reply&)>;

  explicit OneAnswer(Say say) : say_(std::move(say)) {}
  ~OneAnswer() {
    (*this)(
        transport::refusal(RefusalCode::conflict, "", "the run or this head ended before that"));
  }
  OneAnswer(const OneAnswer&) = delete;
  OneAnswer& operator=(const OneAnswer&) = delete;

  void operator()(const Reply& said) {
    Say say;
    {
      const std::lock_guard lock(mutex_);
      say.swap(say_);
    }
    if (say) say(said);
  }

 private:
  std::mutex mutex_;
  Say say_;
};
using Answer = std::shared_ptr<OneAnswer>;

}  // namespace troupe::apps
