#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>

#include "apps/exit_code.h"
#include "apps/recorder.h"
#include "apps/run_setup.h"
#include "core/stream.h"
#include "models/optimizer.h"
#include "models/stage.h"
#include "storage/checkpoint_writer.h"
#include "storage/micro_batches.h"

namespace troupe::apps {

/// How a run ended, and what a person should read last.
struct Ending {
  ExitCode code = ExitCode::done;
  std::string text;
};

/// Trains the whole model as one stage in this thread: the same stage, optimizer and loader
/// functions as anywhere, in the plainest order. What every other way of running must agree with,
/// bit for bit.
class LocalRun {
 public:
  LocalRun(const config::Loaded& loaded, RunSetup setup, Recorder& recorder);
  ~LocalRun();

  /// Weights as the configuration says: random, or from a file.
  Status start();
  /// From the newest checkpoint that verifies; from the beginning where there is none.
  Status resume();

  /// Until all steps are done, or `stop` becomes true: then the step is finished and saved.
  Ending train(const std::atomic<bool>& stop);

  std::int64_t step() const { return step_; }
  /// The mean loss of the last steps: one batch alone is easier or harder than the source.
  double recent_loss() const;
  const RunSetup& setup() const { return setup_; }

 private:
  struct StepResult {
    double loss = 0;
    double gradient_norm = 0;
  };

  Result<StepResult> take_step();
  Result<double> evaluate();
  Value step_event(const StepResult& result, double seconds) const;
  storage::CheckpointContent snapshot();
  bool save_is_due() const;
  void save_in_background();
  Status save_and_wait();
  Status export_weights() const;
  void warn(const std::string& text);

  const config::RunConfig& config_;
  Value recipe_;
  RunSetup setup_;
  Recorder& recorder_;

  MemoryPool memory_;  // Outlives all tensors below.
  Stream stream_;
  models::Stage stage_;
  models::Optimizer optimizer_;
  storage::MicroBatches batches_;
  models::WeightsPtr weights_;
  std::int64_t step_ = 0;  // Steps done.
  std::deque<double> recent_losses_;
  std::int64_t saved_step_ = -1;  // Handed to the writer.
  std::chrono::steady_clock::time_point saved_at_;
  std::atomic<bool> save_failed_ = false;
  std::unique_ptr<storage::CheckpointWriter> writer_;  // Last: it holds tensors.
};

}  // namespace troupe::apps
