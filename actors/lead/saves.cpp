#include "actors/lead/saves.h"

#include <algorithm>

#include "actors/checkpoints.h"

namespace troupe::actors {

void Saves::count_from(std::int64_t step) {
  tried_ = step;
  collected_ = asked_ = none;
}

bool Saves::is_due(const RunSpec& spec, std::int64_t step, caf_shim::TimePoint now) const {
  if (step <= tried_) return false;
  if (step == spec.steps || step == asked_) return true;
  const auto passes = [&](std::int64_t every) { return step / every > tried_ / every; };
  if (spec.sample_every > 0 && passes(spec.sample_every)) return true;
  const auto every = spec.save_every_steps;
  return every > 0 ? passes(every) : now - at_ >= spec.save_every_time;
}

void Saves::go_on() {
  weights_.clear();
  collected_ = none;
}

bool Saves::add(Snapshot part, std::size_t parts) {
  parts_.push_back(std::move(part));
  return parts_.size() == parts;
}

void Saves::write(const RunSpec& spec, const Of& of, MemoryPool& memory, caf_shim::Base& to) {
  const auto step = of.step;
  auto content = checkpoint_content(spec, step, std::exchange(parts_, {}), memory);
  storage::set_validation_loss(content.state, of.validation_loss);
  weights_ = content.weights;
  collected_ = tried_ = step;
  at_ = to.now();
  if (saved_ == step) return;
  ++writing_;
  spec.checkpoints->save(std::move(content), [to = caf_shim::weak(to), step](Status outcome) {
    caf_shim::post(to, Saved{step, std::move(outcome)});
  });
}

bool Saves::heard(const Saved& saved) {
  --writing_;
  if (!saved.outcome) {
    problem_ = saved.outcome.error().text;
    return false;
  }
  saved_ = std::max(saved_, saved.step);
  return true;
}

}  // namespace troupe::actors
