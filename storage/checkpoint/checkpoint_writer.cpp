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

CheckpointWriter::~CheckpointWriter() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return accepted_.empty(); });
}

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

Status CheckpointWriter::wait_until_idle(std::chrono::milliseconds patience) {
  std::unique_lock lock(mutex_);
  if (changed_.wait_for(lock, patience, [this] { return accepted_.empty(); })) return Done{};
  return Error{options_.root + ": the save of step " + std::to_string(accepted_.front().step) +
               " is still going on after " + std::to_string(patience.count()) + " ms"};
}

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
  changed_.notify_all();
}

}  // namespace troupe::storage
