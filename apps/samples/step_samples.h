#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "apps/samples/text_generator.h"
#include "config/run_config.h"
#include "core/env.h"
#include "core/result.h"
#include "core/value.h"
#include "models/model.h"
#include "storage/files/files.h"

namespace troupe::apps {

/// Writes the samples of a run. It reads the weights from checkpoints, on a loop of its own, so
/// that training neither waits nor changes. `troupe sample` writes the same text from the same
/// checkpoint.
class StepSamples {
 public:
  /// The objects that samples need. All of them outlive it.
  struct Context {
    Env& env;
    storage::Files& files;
    const config::RunConfig& config;
    const models::Model& model;  // Used by open() alone.
    // Receives an event for each sample, and for each that fails; any thread.
    const std::function<void(const Value&)>& record;
    /// A sign of life while somebody waits for samples; any thread.
    std::function<void()> alive;
  };
  /// `done`: the steps of the run that are done already. `tokenizer` is a path, or empty for bytes.
  static Result<std::unique_ptr<StepSamples>> open(const Context& context,
                                                   const std::string& tokenizer, std::int64_t done);
  ~StepSamples();

  /// Notes a new checkpoint, and begins a sample of its step if one is due. Returns at once.
  /// Samples wait for those before. If too many wait, or the checkpoint is removed meanwhile, a
  /// sample is skipped with a warning.
  void saved(std::int64_t step, const std::string& directory);
  /// Drops samples that are not done, within the time of a token. Any thread may call it.
  void stop() { is_stopped_ = true; }
  /// Calls `then`, on any thread, once no sample is pending. Each takes at most
  /// limits.save_patience and the time of a token.
  void when_idle(std::function<void()> then);

 private:
  StepSamples(const Context& context, Script script, Prompt prompt, Tokens ends, std::int64_t done);
  void write(std::int64_t step, const std::string& directory);
  Result<std::string> text_from(const std::string& directory);
  void warn(const std::string& text) const;

  const Context context_;
  const Script script_;
  const Prompt prompt_;
  const Tokens ends_;
  std::int64_t done_;  // The step of the newest checkpoint. Used by the thread that saves.
  std::atomic<int> pending_ = 0;
  std::atomic<bool> is_stopped_ = false;
  std::atomic<bool> is_awaited_ = false;
  std::unique_ptr<Loop> loop_;  // Last: its tasks use the other members.
};

/// Returns an error if the model cannot write the samples that the configuration asks for.
/// `tokenizer` is the path of the tokenizer of the data, or empty if they have none.
Status check_samples(storage::Files& files, const config::RunConfig& config,
                     const models::Model& model, const std::string& tokenizer);

}  // namespace troupe::apps
