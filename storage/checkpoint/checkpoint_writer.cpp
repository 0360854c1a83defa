#include "storage/checkpoint/checkpoint_writer.h"

namespace troupe::storage {
namespace {
/// One that is being written and one that waits.
constexpr std::size_t most_accepted = 2;
}  // namespace

CheckpointWriter::CheckpointWriter(Env& env, Files& files, SaveOptions options,
                                   std::function<void(const SaveOutcome&)> done)
    : files_(files),
      options_(std::move(options)),
      done_(std::move(done)),
      loop_(env.make_loop({"checkpoints"})) {}

Status CheckpointWriter::submit(CheckpointContent content) {
  {
    const std::lock_guard lock(mutex_);
    if (accepted_.size() == most_accepted)
      return Error{options_.root + ": step " + std::to_string(content.step) +
                   " is not saved: the disk is too slow; step " +
                   std::to_string(accepted_.front().step) + " is being written and step " +
                   std::to_string(accepted_.back().step) + " waits"};
    accepted_.push_back(std::move(content));
  }
  loop_->post([this] { write_next(); });
  return Done{};
}

void CheckpointWriter::when_idle(std::function<void()> then) { loop_->post(std::move(then)); }

void CheckpointWriter::write_next() {
  std::unique_lock lock(mutex_);
  // Safe without the lock: other threads only append, which moves no element of a deque.
  const auto& content = accepted_.front();
  lock.unlock();
  SaveOutcome outcome;
  outcome.step = content.step;
  const Status ready = options_.before ? options_.before() : Done{};
  outcome.saved =
      ready ? save_checkpoint(files_, options_.root, content, options_.claim) : ready.error();
  if (outcome.saved)
    outcome.pruned = prune_checkpoints(files_, options_.root, options_.keep, options_.claim);
  done_(outcome);
  lock.lock();
  accepted_.pop_front();
}

}  // namespace troupe::storage
