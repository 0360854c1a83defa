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

/// The nodes, runs and events of a head, for its orders.
struct HeadPeople {
  NodeGate& gate;
  std::function<std::shared_ptr<HeadRun>(const std::string& name)> find_run;
  /// Returns why no run of that name takes orders: there is none, or it has ended.
  std::function<Refusal(const std::string& name)> no_run;
  std::function<std::vector<std::shared_ptr<HeadRun>>()> all_runs;
  std::function<void(const Value& event)> publish;
  HeadOptions::Drills drills = HeadOptions::Drills::forbidden;
};

/// Carries out the messages whose handler is Handler::orders: they change a run under way, or its
/// nodes. A message that waits for a run is answered when nothing of the run is in flight.
class HeadOrders {
 public:
  explicit HeadOrders(HeadPeople people) : people_(std::move(people)) {}

  /// Returns false, and does nothing, if another part handles the message.
  bool take(const transport::Message& message, const Answer& answer);

 private:
  HeadPeople people_;
};

/// Refuses a message about a run that does not exist. `path` is the field that names the run.
Refusal unknown_run(const std::string& name, const std::string& path = "run");

}  // namespace troupe::apps
