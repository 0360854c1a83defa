#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "apps/client/one_answer.h"
#include "apps/events/run_counters.h"
#include "apps/head/head_journal.h"
#include "apps/head/head_run.h"
#include "apps/head/head_service.h"
#include "apps/head/node_gate.h"
#include "apps/head/submitted_paths.h"
#include "apps/program_context.h"
#include "apps/run/run_choice.h"
#include "apps/run/run_folder.h"
#include "config/load.h"
#include "core/env.h"
#include "transport/control/publisher.h"
#include "transport/wire/wire.h"

namespace troupe::apps {

/// The parts of a head that its runs use.
struct HeadRunsContext {
  const ProgramContext& program;
  const HeadOptions& options;
  HeadJournal& journal;
  NodeGate& gate;
  transport::Publisher& publisher;
};

/// The active runs of a head, and the reports of runs that have ended. Begins submitted runs, and
/// records changes in the journal. Any thread may call its functions.
class HeadRuns {
 public:
  explicit HeadRuns(const HeadRunsContext& context);

  /// Resumes the runs of an earlier life of the head. Called once, before the gate starts.
  void resume_earlier();
  /// From now on no run begins or is cleared away. Drops the submitted runs that wait.
  void end_loops();

  /// Begins a submitted run and answers with its name. Opens the data on a loop of its own, since
  /// that may take long and the socket's thread hears the nodes meanwhile.
  void submit(const transport::Message& message, const Answer& answer);
  /// Records that a user has changed the state of a run.
  void changed(const std::string& run, const std::string& state, const std::string& why);

  /// Returns an active run, or null.
  std::shared_ptr<HeadRun> find(const std::string& name) const;
  std::vector<std::shared_ptr<HeadRun>> all() const;
  /// Returns the report of a run that has ended in this life of the head or earlier.
  std::optional<RunStanding> ended(const std::string& name) const;
  /// Returns why no active run has this name: it does not exist, or it has ended.
  Refusal no_run(const std::string& name) const;
  /// Returns the reports of all runs.
  Value::List reports() const;
  /// Returns the numbers of the active runs by name.
  std::map<std::string, RunNumbers> numbers() const;

 private:
  /// How a submitted run begins.
  struct Beginning {
    RunStart start = RunStart::anew;
    std::int64_t more_steps = 0;  // Than its last configuration says.
  };

  Reply submitted(const transport::Message& message);
  Reply submit(Value body, const Beginning& begins, std::uint64_t submission,
               const Submitter& from);
  Result<config::Loaded> extended(const config::Loaded& loaded, std::int64_t more, Value& body);
  Result<std::shared_ptr<HeadRun>> make(config::Loaded loaded, RunStart begins,
                                        std::optional<RunChoice> kept = {});
  void start(const std::string& name, std::shared_ptr<HeadRun> run);
  void resume(const std::string& name, const RememberedRun& known);
  void keep(RunStanding standing);
  void note_end(const RunStanding& run);
  void clear_away(const std::string& name);
  void not_noted(const std::string& run, const std::string& state, const Error& why);

  const HeadRunsContext context_;
  std::atomic<bool> is_closing_ = false;
  mutable std::mutex mutex_;
  std::map<std::string, std::shared_ptr<HeadRun>> runs_;
  std::map<std::string, RunStanding> ended_;
  std::map<std::uint64_t, std::string> submitted_;  // Used only on the loop of submits.
  const std::unique_ptr<Loop> submits_, clearing_;
};

}  // namespace troupe::apps
