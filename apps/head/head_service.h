#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <tuple>

#include "actors/nodes/mesh.h"
#include "apps/machine/confinement.h"
#include "core/result.h"
#include "core/value.h"
#include "transport/control/control_socket.h"
#include "transport/control/term_seal.h"
#include "transport/wire/fields.h"

namespace troupe::apps {

/// What the head knows of a run.
struct RunStanding {
  std::string name;
  std::string state;  // "starting", "running", "paused", "done", "stopped", "failed"
  std::int64_t step = 0;
  std::int64_t steps = 0;
  std::int64_t log_every = 10;
  std::int64_t began = -1;  // Where this life of it begins in its file of events; -1: not yet.
  double loss = 0;          // Of the last step.
  double goodput = 1;       // The share of its time that went into steps that count.
  std::string exactness;    // What changes of plan do not change: "bits" or "samples".
  int recoveries = 0;       // In this life of the head,
  std::string recovered;    // and in words the last of them.
  std::string where;        // "stages 0 1 on alpha, 2 3 on beta"
  std::string why;
  std::string warning;       // What is wrong with what it began with: a damaged checkpoint.
  bool lacks_nodes = false;  // It failed with fewer than it wants.

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
                      transport::optional("why", &RunStanding::why),
                      transport::optional("warning", &RunStanding::warning),
                      transport::optional("lacks_nodes", &RunStanding::lacks_nodes));
  }
  bool has_ended() const { return state == "done" || state == "stopped" || state == "failed"; }
};

struct HeadOptions {
  std::string state;   // A folder for what it remembers from one life to the next.
  std::string listen;  // "tcp://127.0.0.1:4700"; with port 0 the one it had before, or a free one.
  std::string events;  // Where events are published; likewise.
  std::optional<transport::KeyPair> keys;
  transport::AllowList allowed;
  transport::TermSeal seal;
  Confinement confinement;              // Of the files that runs name.
  std::string interface = "127.0.0.1";  // Where nodes reach the head's channels.
  /// Whether tensors may leave a machine in the clear.
  actors::PlainTensors plain = actors::PlainTensors::within_machine;
  enum class Drills { forbidden, allowed };
  enum class EarlierRuns { go_on, wait };
  /// Whether runs of an earlier life go on by themselves, or wait until somebody submits them.
  EarlierRuns earlier_runs = EarlierRuns::go_on;
  Drills drills = Drills::forbidden;  // Whether `troupe chaos` may do harm here.
  std::function<void(const std::string&)> say;
  /// There is a head that came after this one, which must end at once and write nothing more.
  std::function<void(std::uint64_t term)> deposed;
};

/// Knows nodes and runs; leads the runs, and answers whoever asks. A run that it led in an earlier
/// life, and that had not ended, goes on from its newest checkpoint.
class HeadService {
 public:
  static Result<std::unique_ptr<HeadService>> open(HeadOptions options);
  /// Drains all runs, and saves them. They go on in its next life.
  ~HeadService();
  HeadService(const HeadService&) = delete;
  HeadService& operator=(const HeadService&) = delete;

  const std::string& endpoint() const;
  const std::string& events() const;
  /// The nodes and runs, as it answers whoever asks; any thread.
  Value status() const;
  /// Who may dial from now on, where there are keys. Sessions of others end.
  Status allow(const transport::AllowList& allowed);
  /// Of its lives, which this one is.
  std::uint64_t term() const;

 private:
  class Service;
  explicit HeadService(std::unique_ptr<Service> service);

  std::unique_ptr<Service> service_;
};

}  // namespace troupe::apps
