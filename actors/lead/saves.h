#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "actors/messages.h"
#include "actors/rt.h"
#include "actors/run_spec.h"

namespace troupe::actors {

/// A supervisor's saves: when one is due, the parts of the state as they come in, and what is on
/// the disk or on its way there.
class Saves {
 public:
  void run_begins(rt::TimePoint now) { at_ = now; }
  void attempt_begins() { parts_.clear(); }
  /// Every state up to this step, from which an attempt begins, is behind.
  void count_from(std::int64_t step);
  /// There is a checkpoint of this step; none where it is 0.
  void found(std::int64_t step) { saved_ = step > 0 ? step : none; }

  bool is_due(const RunSpec& spec, std::int64_t step, rt::TimePoint now) const;
  bool is_under_way() const { return writing_ > 0; }
  bool is_saved(std::int64_t step) const { return step == 0 || saved_ == step; }
  /// Whether that step's state has been put together, and nothing was done since.
  bool is_collected(std::int64_t step) const { return collected_ == step; }
  /// It was to be saved, and is not.
  bool has_failed(std::int64_t step) const { return saved_ != step && tried_ == step; }
  std::string not_saved(std::int64_t step) const {
    return "step " + std::to_string(step) + " was not saved: " + problem_;
  }
  /// Steps at the newest checkpoint; 0 where there is none.
  std::int64_t newest() const { return saved_ == none ? 0 : saved_; }

  /// More is done from here on.
  void go_on();
  /// A part of the state; true once there are as many as there have to be.
  bool add(Snapshot part, std::size_t parts);
  std::size_t parts() const { return parts_.size(); }
  bool has_part_of(int optimizer) const {
    return std::ranges::count(parts_, optimizer, &Snapshot::optimizer) > 0;
  }
  /// Puts them together, and writes them down, where they are not already: then `to` gets Saved.
  void write(const RunSpec& spec, std::int64_t step, MemoryPool& memory, rt::Base& to);
  /// Whether there is a newer checkpoint now.
  bool heard(const Saved& saved);

  /// Of the step that was collected last.
  std::vector<NamedTensor> take_weights() { return std::exchange(weights_, {}); }

 private:
  static constexpr std::int64_t none = -1;

  std::vector<Snapshot> parts_;
  std::vector<NamedTensor> weights_;
  std::int64_t collected_ = none;
  std::int64_t tried_ = 0;  // The last one that needs no saving any more.
  std::int64_t saved_ = none;
  int writing_ = 0;
  std::string problem_;  // Of the last one that failed.
  rt::TimePoint at_;
};

}  // namespace troupe::actors
