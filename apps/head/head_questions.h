#pragma once

#include <functional>
#include <vector>

#include "actors/nodes/node_pool.h"
#include "apps/client/one_answer.h"
#include "apps/head/errands.h"
#include "config/load.h"
#include "core/result.h"
#include "transport/wire/wire.h"

namespace troupe::apps {

/// Answers the messages whose handler is Handler::questions: questions about a configuration that
/// is no run yet. The answers take long, so one thread of this object makes them, one after
/// another.
class HeadQuestions {
 public:
  using Nodes = std::function<std::vector<actors::NodeHere>()>;

  /// Returns an error if the head may not use the files that a configuration names.
  using MayUse = std::function<Status(const config::Loaded&)>;

  HeadQuestions(Nodes nodes, MayUse may_use);

  /// Returns false, and does nothing, if another part handles the message.
  bool take(const transport::Message& message, const Answer& answer);
  /// Finishes the current answer, and refuses all other questions from now on.
  void close() { errands_.close(); }

 private:
  Reply answer_to(const transport::Message& message) const;

  Nodes nodes_;
  MayUse may_use_;
  Errands errands_;
};

}  // namespace troupe::apps
