#include "actors/play/state_store.h"

#include <algorithm>
#include <new>
#include <utility>

namespace troupe::actors {
namespace {

std::vector<NamedTensor> copies_of(const std::vector<NamedTensor>& tensors, MemoryPool& memory) {
  std::vector<NamedTensor> copies;
  copies.reserve(tensors.size());
  for (const auto& [name, tensor] : tensors) {
    copies.push_back({name, Tensor::make(memory, tensor.shape(), tensor.dtype())});
    std::ranges::copy(tensor.host_bytes(), copies.back().tensor.host_bytes().begin());
  }
  return copies;
}

}  // namespace

StateStore::StateStore(std::shared_ptr<Executor> thread) : thread_(std::move(thread)) {}

StateStore::~StateStore() {
  ++settled_;
  const std::lock_guard lock(mutex_);
  // The states return memory to a pool that must still exist, so a copy under way adds none.
  is_closed_ = true;
  states_.clear();
}

void StateStore::put(StateCopy copy, Done done) {
  thread_->post(
      [this, settled = settled_.load(), copy = std::move(copy), done = std::move(done)](Stream&) {
        if (settled == settled_) this->copy(copy, done);
      });
}

void StateStore::copy(const StateCopy& copy, const Done& done) {
  const auto began = thread_->computed();
  const auto& [state, line] = copy;
  {
    // Drop old states first, so that their memory is reused.
    const std::lock_guard lock(mutex_);
    std::erase_if(states_[state.optimizer],
                  [line = line](const auto& entry) { return entry.first != line; });
  }
  try {
    Snapshot own{state.attempt,
                 state.optimizer,
                 state.step,
                 copies_of(state.weights, thread_->memory()),
                 copies_of(state.moments, thread_->memory()),
                 state.loss_scale};
    const std::lock_guard lock(mutex_);
    if (is_closed_) return;
    states_[state.optimizer].insert_or_assign(state.step, std::move(own));
  } catch (const std::bad_alloc& full) {
    return done(Error{full.what()});
  }
  done(thread_->computed() - began);
}

std::vector<KeptStep> StateStore::kept() const {
  std::map<std::int64_t, std::vector<int>> by_step;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [optimizer, states] : states_)
      for (const auto& [step, state] : states) by_step[step].push_back(optimizer);
  }
  std::vector<KeptStep> kept;
  kept.reserve(by_step.size());
  for (auto& [step, optimizers] : by_step) kept.push_back({step, std::move(optimizers)});
  return kept;
}

std::optional<Snapshot> StateStore::find(int optimizer, std::int64_t step) const {
  const std::lock_guard lock(mutex_);
  const auto states = states_.find(optimizer);
  if (states == states_.end()) return {};
  const auto state = states->second.find(step);
  return state == states->second.end() ? std::nullopt : std::optional(state->second);
}

void StateStore::begin(std::int64_t step) {
  const std::lock_guard lock(mutex_);
  for (auto& [optimizer, states] : states_)
    std::erase_if(states, [step](const auto& entry) { return entry.first != step; });
}

void StateStore::drop_after(std::int64_t step) {
  const std::lock_guard lock(mutex_);
  for (auto& [optimizer, states] : states_)
    std::erase_if(states, [step](const auto& entry) { return entry.first > step; });
}

void StateStore::settle(std::function<void()> then) {
  ++settled_;
  thread_->post([then = std::move(then)](Stream&) { then(); });
}

}  // namespace troupe::actors
