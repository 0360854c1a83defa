#include "apps/run/disk_checkpoints.h"

#include <algorithm>
#include <utility>

#include "actors/checkpoints.h"
#include "apps/events/event.h"
#include "core/units.h"

namespace troupe::apps {

DiskCheckpoints::DiskCheckpoints(const Context& around)
    : around_(around),
      writer_(around.env, around.files,
              {.root = around.config.checkpoint.directory,
               .keep = {around.config.checkpoint.keep, around.config.checkpoint.keep_best},
               .before = [&around = around_]() -> Status {
                 if (auto synced = around.evaluations.sync(); !synced) return synced;
                 return around.ledger.sync();
               },
               .claim = around.claim},
              [this](const storage::SaveOutcome& outcome) { tell(outcome); }) {}

void DiskCheckpoints::save(storage::CheckpointContent content, std::function<void(Status)> done) {
  {
    const std::lock_guard lock(mutex_);
    waiting_.push_back({done, around_.env.now()});
  }
  if (auto accepted = writer_.submit(std::move(content)); !accepted) {
    const std::lock_guard lock(mutex_);
    waiting_.pop_back();
    warn("a checkpoint was skipped: " + accepted.error().text);
    done(accepted.error());
  }
}

Result<actors::StartPoint> DiskCheckpoints::load(std::int64_t step, MemoryPool& memory) {
  return actors::checkpoint_of(around_.files, around_.config.checkpoint.directory, step, memory);
}

/// Returns none if they cannot be listed: then a damaged checkpoint has no older one before it.
std::vector<std::int64_t> DiskCheckpoints::steps() {
  std::vector<std::int64_t> steps;
  const auto listed = storage::list_checkpoints(around_.files, around_.config.checkpoint.directory);
  if (!listed) return steps;
  for (const auto& checkpoint : *listed)
    if (checkpoint.state == storage::ListedCheckpoint::State::complete &&
        (!around_.claim || checkpoint.manifest->run == around_.claim->run()))
      steps.push_back(checkpoint.step);
  std::ranges::reverse(steps);
  return steps;
}

void DiskCheckpoints::when_idle(std::function<void()> then) {
  writer_.when_idle([this, then = std::move(then)]() mutable {
    around_.samples ? around_.samples->when_idle(std::move(then)) : then();
  });
}

void DiskCheckpoints::tell(const storage::SaveOutcome& outcome) {
  Waiting waiting;
  {
    const std::lock_guard lock(mutex_);
    waiting = std::move(waiting_.front());
    waiting_.pop_front();
  }
  if (outcome.saved) {
    Value saved = event("checkpoint.saved", around_.config.name);
    saved.set("step", outcome.step);
    saved.set("directory", outcome.saved->directory);
    saved.set("weights", to_string(outcome.saved->manifest.weights_digest));
    saved.set("seconds", in_seconds(around_.env.now() - waiting.began));
    around_.record(saved);
    // Records the save in the ledger, so that a resumed run requires this checkpoint or a newer
    // one.
    const auto& root = around_.config.checkpoint.directory;
    if (auto noted = around_.ledger.saved(outcome.step, root); !noted)
      warn("the ledger does not say that step " + std::to_string(outcome.step) +
           " is saved: " + noted.error().text);
    if (around_.samples) around_.samples->saved(outcome.step, outcome.saved->directory);
    if (!outcome.pruned)
      warn("old checkpoints could not be removed: " + outcome.pruned.error().text);
  } else {
    warn("step " + std::to_string(outcome.step) + " was not saved: " + outcome.saved.error().text +
         "; training continues, and the last good checkpoint remains");
  }
  waiting.done(outcome.saved ? Status(Done{}) : Status(outcome.saved.error()));
}

void DiskCheckpoints::warn(const std::string& text) const {
  Value warning = event("warn", around_.config.name);
  warning.set("text", text);
  around_.record(warning);
}

}  // namespace troupe::apps
