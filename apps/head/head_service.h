#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "actors/nodes/mesh.h"
#include "apps/events/run_counters.h"
#include "apps/events/run_end.h"
#include "apps/machine/confinement.h"
#include "apps/program_context.h"
#include "core/result.h"
#include "core/value.h"
#include "transport/control/control_socket.h"
#include "transport/control/term_seal.h"
#include "transport/wire/fields.h"

namespace troupe::apps {

/// The head's report on a run.
struct RunStanding {
  std::string name;
  std::string state;  // "starting", "running", "paused", "done", "stopped", "failed"
  std::int64_t step = 0;
  std::int64_t steps = 0;
  std::int64_t log_every = 10;
  std::int64_t began =
      -1;  // The place in the run's event file where this life begins; -1: not yet.
  std::optional<double> loss;          // The loss of the last step.
  std::optional<double> goodput;       // The share of time spent on steps that count.
  std::string exactness;               // The guarantee that plan changes keep: "bits" or "samples".
  int recoveries = 0;                  // Recoveries in this life of the head.
  std::string recovered;               // A description of the last recovery.
  std::string where;                   // "stages 0 1 on alpha, 2 3 on beta"
  std::string plan_why;                // Why it has its plan, with the times of others.
  std::optional<double> step_seconds;  // The measured time of a step of this plan.
  std::string why;
  std::string warning;            // A problem at its beginning, such as a damaged checkpoint.
  std::vector<Value> stragglers;  // The latest event of each device and link that slows it down.
  bool lacks_nodes = false;       // The run failed with fewer nodes than it requires.

  static constexpr auto fields() {
    return std::tuple(transport::required("name", &RunStanding::name),
                      transport::required("state", &RunStanding::state),
                      transport::required("step", &RunStanding::step),
                      transport::required("steps", &RunStanding::steps),
                      transport::optional("log_every", &RunStanding::log_every),
                      transport::optional("began", &RunStanding::began),
                      transport::optional("loss", &RunStanding::loss),
                      transport::optional("goodput", &RunStanding::goodput),
                      transport::optional("exactness", &RunStanding::exactness),
                      transport::optional("recoveries", &RunStanding::recoveries),
                      transport::optional("recovered", &RunStanding::recovered),
                      transport::optional("where", &RunStanding::where),
                      transport::optional("plan_why", &RunStanding::plan_why),
                      transport::optional("step_seconds", &RunStanding::step_seconds),
                      transport::optional("why", &RunStanding::why),
                      transport::optional("warning", &RunStanding::warning),
                      transport::optional("stragglers", &RunStanding::stragglers),
                      transport::optional("lacks_nodes", &RunStanding::lacks_nodes));
  }
  bool has_ended() const { return has_run_ended(state); }
};

struct HeadOptions {
  std::string state;  // The folder of the head's journal.
  // "tcp://127.0.0.1:4700". Port 0 means the port of the previous life, or a free one.
  std::string listen;
  std::string events;  // The endpoint for events; port 0 as above.
  std::optional<transport::KeyPair> keys;
  transport::AllowList allowed;
  transport::TermSeal seal;
  Confinement confinement;              // Bounds the files that runs may name.
  std::string interface = "127.0.0.1";  // The address at which nodes reach the head's channels.
  /// Whether tensors may leave a machine unencrypted.
  actors::PlainTensors plain = actors::PlainTensors::within_machine;
  enum class Drills { forbidden, allowed };
  enum class EarlierRuns { go_on, wait };
  /// Whether runs of an earlier life resume automatically, or wait until somebody submits them.
  EarlierRuns earlier_runs = EarlierRuns::go_on;
  Drills drills = Drills::forbidden;  // Whether `troupe chaos` may inject faults.
  std::function<void(const std::string&)> say;
  /// Receives each event of a run, with its time; any thread. Must return at once. May be empty.
  std::function<void(const Value&)> notify = {};
  /// Called when a newer head exists. The process must end at once and write nothing more.
  std::function<void(std::uint64_t term)> deposed;
};

/// Keeps track of nodes and runs, leads the runs, and answers requests. A run of an earlier life
/// that had not ended resumes from its newest checkpoint.
class HeadService {
 public:
  static Result<std::unique_ptr<HeadService>> open(const ProgramContext& program,
                                                   HeadOptions options);
  /// Drops all runs that have not ended.
  ~HeadService();
  HeadService(const HeadService&) = delete;
  HeadService& operator=(const HeadService&) = delete;

  /// Drains and saves all runs, which resume in the head's next life. Calls `then`, on any thread,
  /// when all have ended.
  void end(std::function<void()> then);

  const std::string& endpoint() const;
  const std::string& events() const;
  /// Returns the nodes and runs as in the answer to `status`; any thread.
  Value status() const;
  /// Returns the numbers of the active runs by name; any thread.
  std::map<std::string, RunNumbers> numbers() const;
  /// Replaces the list of keys that may dial, if keys are used. Ends sessions of other keys.
  Status allow(const transport::AllowList& allowed);
  /// Returns the number of this life of the head.
  std::uint64_t term() const;

 private:
  class Service;
  explicit HeadService(std::unique_ptr<Service> service);

  std::unique_ptr<Service> service_;
};

}  // namespace troupe::apps
