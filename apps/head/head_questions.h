#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "actors/nodes/node_pool.h"
#include "apps/client/one_answer.h"
#include "config/load.h"
#include "core/env.h"
#include "core/result.h"
#include "storage/files/files.h"
#include "transport/wire/wire.h"

namespace troupe::apps {

/// Answers questions about a configuration that is not a run: config.validate, plan.request and
/// sim.request. The latter two use the present nodes. Answers take time, so a loop of its own
/// gives them one after another.
class HeadQuestions {
 public:
  using Nodes = std::function<std::vector<actors::NodeHere>()>;

  /// Returns an error if the configuration's files may not be used.
  using MayUse = std::function<Status(const config::Loaded&)>;

  /// The environment and the files outlive it.
  HeadQuestions(Env& env, storage::Files& files, Nodes nodes, MayUse may_use);

  /// Takes the message if it is one of these questions. Returns whether it did.
  bool take(const transport::Message& message, const Answer& answer);
  /// Waits for the current question. Refuses all waiting and later questions.
  void close() { loop_->end(); }

 private:
  Reply answer_to(const transport::Message& message) const;

  Env& env_;
  storage::Files& files_;
  Nodes nodes_;
  MayUse may_use_;
  std::unique_ptr<Loop> loop_;
};

}  // namespace troupe::apps
