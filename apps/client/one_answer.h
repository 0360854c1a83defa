#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <utility>

#include "apps/client/reply.h"

namespace troupe::apps {

/// The answer to a question, given once, on any thread: where all who could have given it are gone,
/// it is an error. What is said after the first time is nothing to anybody.
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
