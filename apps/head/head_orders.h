#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "apps/client/one_answer.h"
#include "apps/head/head_run.h"
#include "apps/head/head_service.h"
#include "apps/head/node_gate.h"

namespace troupe::apps {

/// The parts of a head that orders use.
struct HeadOrdersContext {
  NodeGate& gate;
  std::function<std::shared_ptr<HeadRun>(const std::string& name)> find_run;
  /// Returns why no run of that name takes orders: it does not exist, or it has ended.
  std::function<Refusal(const std::string& name)> no_run;
  std::function<std::vector<std::shared_ptr<HeadRun>>()> all_runs;
  std::function<void(const Value& event)> publish;
  HeadOptions::Drills drills = HeadOptions::Drills::forbidden;
};

/// Carries out orders that change a run or its nodes: run.set, run.checkpoint, node.cordon,
/// node.uncordon, node.drain, node.end and chaos. An order for a run is answered once the run has
/// reached a moment at which nothing is in flight.
class HeadOrders {
 public:
  explicit HeadOrders(HeadOrdersContext people) : context_(std::move(people)) {}

  /// Takes the message if it is one of these orders. Returns whether it did.
  bool take(const transport::Message& message, const Answer& answer);

 private:
  HeadOrdersContext context_;
};

/// Returns the refusal for an unknown run. `path` is the field of the request that names the run.
Refusal unknown_run(const std::string& name, const std::string& path = "run");
/// Returns the refusal for an unknown node.
Refusal unknown_node(const std::string& name, const std::string& path);

}  // namespace troupe::apps
