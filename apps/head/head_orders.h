#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "apps/client/one_answer.h"
#include "apps/head/head_run.h"
#include "apps/head/head_service.h"
#include "apps/head/node_gate.h"

namespace troupe::apps {

/// Who is known to a head, and how it speaks.
struct HeadOrdersContext {
  NodeGate& gate;
  std::function<std::shared_ptr<HeadRun>(const std::string& name)> find_run;
  /// Why no run of that name takes orders: there is none, or it has ended.
  std::function<Refusal(const std::string& name)> no_run;
  std::function<std::vector<std::shared_ptr<HeadRun>>()> all_runs;
  std::function<void(const Value& event)> publish;
  HeadOptions::Drills drills = HeadOptions::Drills::forbidden;
};

/// What changes a run under way, or the nodes under it: run.set, run.checkpoint, node.cordon,
/// node.uncordon, node.drain, node.end and chaos. Whatever waits for a run is answered once it has
/// come to a moment at which nothing is in flight.
class HeadOrders {
 public:
  explicit HeadOrders(HeadOrdersContext people) : context_(std::move(people)) {}

  /// Whether it is one of these.
  bool take(const transport::Message& message, const Answer& answer);

 private:
  void hold(const transport::Message& message, const Answer& answer);
  void drain(const std::string& node, const Answer& answer);
  Reply end(const std::string& node);
  Reply cordon(const std::string& node, bool cordoned);
  Reply chaos(const transport::Message& message);

  HeadOrdersContext context_;
};

/// `path` is what of the request names it.
Refusal unknown_run(const std::string& name, const std::string& path = "run");

}  // namespace troupe::apps
