#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "actors/node_pool.h"
#include "apps/one_answer.h"
#include "transport/wire.h"

namespace troupe::apps {

/// What may be asked of a configuration that is no run yet: config.validate, plan.request and
/// sim.request, the latter two for the nodes that are there. They take their time, so they are
/// answered on a thread of its own, one after another.
class HeadQuestions {
 public:
  using Nodes = std::function<std::vector<actors::NodeHere>()>;

  explicit HeadQuestions(Nodes nodes);
  ~HeadQuestions() { close(); }
  HeadQuestions(const HeadQuestions&) = delete;
  HeadQuestions& operator=(const HeadQuestions&) = delete;

  /// Whether it is one of these.
  bool take(const transport::Message& message, const Answer& answer);
  /// Finishes the one that it works on; all others are refused, now and from now on.
  void close();

 private:
  struct Question {
    transport::Message message;
    Answer answer;
  };

  void run();
  Reply answer_to(const transport::Message& message) const;

  Nodes nodes_;
  std::mutex mutex_;
  std::condition_variable came_;
  std::deque<Question> waiting_;
  bool closing_ = false;
  std::thread thread_;
};

}  // namespace troupe::apps
