#pragma once

#include <functional>
#include <vector>

#include "actors/nodes/node_pool.h"
#include "apps/client/one_answer.h"
#include "config/load.h"
#include "core/result.h"
#include "core/threads/worker.h"
#include "transport/wire/wire.h"

namespace troupe::apps {

/// What may be asked of a configuration that is no run yet: config.validate, plan.request and
/// sim.request, the latter two for the nodes that are there. They take their time, so they are
/// answered on a thread of its own, one after another.
class HeadQuestions {
 public:
  using Nodes = std::function<std::vector<actors::NodeHere>()>;

  /// Why the files that a configuration names may not be used, if so.
  using MayUse = std::function<Status(const config::Loaded&)>;

  HeadQuestions(Nodes nodes, MayUse may_use);

  /// Whether it is one of these.
  bool take(const transport::Message& message, const Answer& answer);
  /// Finishes the one that it works on; all others are refused, now and from now on.
  void close() { worker_.end(); }

 private:
  Reply answer_to(const transport::Message& message) const;

  Nodes nodes_;
  MayUse may_use_;
  Worker worker_;
};

}  // namespace troupe::apps
