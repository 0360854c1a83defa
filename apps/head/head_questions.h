#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "actors/nodes/node_pool.h"
#include "apps/client/one_answer.h"
#include "apps/unit_times.h"
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

  /// Measures units for plans; null: nothing does. See HostFacts::unit_times.
  using Measure = std::vector<UnitTimes> (*)(const MeasuredModel&);

  /// The environment and the files outlive it.
  HeadQuestions(Env& env, storage::Files& files, Nodes nodes, MayUse may_use, Measure measure);

  /// Takes the message if it is one of these questions. Returns whether it did.
  bool take(const transport::Message& message, const Answer& answer);
  /// Waits for the current question. Refuses all waiting and later questions.
  void close() { loop_->end(); }

 private:
  Reply answer_to(const transport::Message& message) const;

  Env& env_;
  storage::Files& files_;
  Measure measure_;
  Nodes nodes_;
  MayUse may_use_;
  std::unique_ptr<Loop> loop_;
};

}  // namespace troupe::apps
