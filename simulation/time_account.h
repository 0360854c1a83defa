#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "actors/decide/run_machine.h"
#include "core/value.h"
#include "simulation/clock.h"
#include "simulation/forecast.h"

namespace troupe::simulation {

/// Divides the time of a run, and measures its recoveries, from the answers of its machine.
class TimeAccount {
 public:
  explicit TimeAccount(const Clock& clock) : clock_(clock), begun_(clock.now()) {}

  // `alive`: the hosts that were there before.
  void come(const std::string& host, std::size_t alive);
  void go(const std::string& host, std::size_t alive);
  void step(std::int64_t step, double seconds);
  /// `rate`: that of the plan in force.
  void answered(const actors::decide::Answer& answer, double rate);

  ForecastReport close(std::size_t alive, std::string end);

 private:
  Duration since_begin() const { return clock_.now() - begun_; }
  void count_nodes(std::size_t alive);
  void count_phase();
  Duration part();
  void lost(const actors::decide::Answer& answer);
  void close();
  Value& tell(const std::string& type);

  const Clock& clock_;
  const Time begun_;
  Time phase_since_ = begun_, nodes_since_ = begun_;
  actors::decide::Phase phase_ = actors::decide::Phase::boot;
  std::map<std::string, Time> gone_;  // The time at which each host last went.
  actors::StateSource::From source_ = actors::StateSource::From::seed;
  std::optional<Recovery> open_;
  Time mark_{};
  ForecastReport report_;
};

}  // namespace troupe::simulation
