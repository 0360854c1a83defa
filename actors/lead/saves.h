#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "actors/caf_shim.h"
#include "actors/messages.h"
#include "actors/run_spec.h"

namespace troupe::actors {

/// The supervisor's saves: when one is due, the parts of the state that have arrived, and which
/// states are saved or being written.
class Saves {
 public:
  void run_begins(caf_shim::TimePoint now) { at_ = now; }
  void attempt_begins() { parts_.clear(); }
  /// Starts to count at the step from which an attempt starts.
  void count_from(std::int64_t step);
  /// Notes that there is a checkpoint of this step, or none if the step is 0.
  void found(std::int64_t step) { saved_ = step > 0 ? step : none; }

  /// Makes a save of this step due.
  void ask(std::int64_t step) { asked_ = step; }
  bool is_due(const RunSpec& spec, std::int64_t step, caf_shim::TimePoint now) const;
  bool is_under_way() const { return writing_ > 0; }
  bool is_saved(std::int64_t step) const { return step == 0 || saved_ == step; }
  /// Returns whether that step's state was assembled and no step was done since.
  bool is_collected(std::int64_t step) const { return collected_ == step; }
  /// Returns whether saving the step failed.
  bool has_failed(std::int64_t step) const { return saved_ != step && tried_ == step; }
  std::string not_saved(std::int64_t step) const {
    return "step " + std::to_string(step) + " was not saved: " + problem_;
  }
  const std::string& problem() const { return problem_; }
  /// Returns the step of the newest checkpoint, or 0 if there is none.
  std::int64_t newest() const { return saved_ == none ? 0 : saved_; }

  /// Called before more steps are given out.
  void go_on();
  /// Adds a part of the state. Returns true once there are `parts` parts.
  bool add(Snapshot part, std::size_t parts);
  std::size_t parts() const { return parts_.size(); }
  bool has_part_of(int optimizer) const {
    return std::ranges::count(parts_, optimizer, &Snapshot::optimizer) > 0;
  }
  /// A state to save, and its loss on the validation data if it was evaluated.
  struct Of {
    std::int64_t step = 0;
    std::optional<double> validation_loss;
  };
  /// Assembles the parts and saves the state unless it is saved already. Then `to` receives Saved.
  void write(const RunSpec& spec, const Of& of, MemoryPool& memory, caf_shim::Base& to);
  /// Returns whether there is a newer checkpoint now.
  bool heard(const Saved& saved);

  /// Returns the weights that were assembled last.
  std::vector<NamedTensor> take_weights() { return std::exchange(weights_, {}); }

 private:
  static constexpr std::int64_t none = -1;

  std::vector<Snapshot> parts_;
  std::vector<NamedTensor> weights_;
  std::int64_t collected_ = none;
  std::int64_t asked_ = none;
  std::int64_t tried_ = 0;  // The last step that needs no save any more.
  std::int64_t saved_ = none;
  int writing_ = 0;
  std::string problem_;  // The reason of the last failure.
  caf_shim::TimePoint at_;
};

}  // namespace troupe::actors
