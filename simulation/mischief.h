#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "simulation/cluster.h"
#include "storage/files/memory_files.h"

namespace troupe::simulation {

/// The fault injector of a scenario: processes that die, pause or fail, stale messages, disk
/// faults, and changing user requests. The seed selects the times, and leaves out each kind in
/// about half of the scenarios.
class Mischief {
 public:
  /// `newest` must return the newest step that was done.
  Mischief(Cluster& cluster, std::int64_t hosts, std::function<std::int64_t()> newest);

  void plan(Time until);
  /// Stops all faults. The head may be gone afterwards.
  void stop();

  /// Returns whether a checkpoint was damaged after it was written.
  bool has_damaged() const { return has_damaged_; }
  /// Returns whether a fault was injected for which a run may halt and wait for the user.
  bool may_halt() const { return may_halt_; }

 private:
  void plan_deaths();
  void plan_delays();
  void plan_failures();
  void plan_disk();
  void plan_orders();
  template <class Happens>
  void often(double most, Happens happens);

  void kill(const std::string& which, Death death);
  void notice();
  void kill_within(Duration latest, const std::string& name);
  void kill_head();
  void cut();
  void crash_disk(std::int64_t calls, storage::Survival::Contents contents);
  void go_down(const storage::Survival& survival);
  void fill_disk();
  void spoil_journal();
  void mend_journal();
  void flip_bit();
  void say_something_stale();

  Clock& clock() { return cluster_.clock(); }
  storage::MemoryFiles& files() { return cluster_.world().files; }
  Duration a_while();
  Node* any();

  Cluster& cluster_;
  std::int64_t hosts_;
  std::function<std::int64_t()> newest_;
  Time until_{};
  bool is_stopped_ = false;
  storage::FileFaults disk_;
  bool tears_journal_ = false;            // When its next record is written.
  std::optional<std::uint64_t> spoiled_;  // The damaged byte of the journal.
  bool has_damaged_ = false;
  bool may_halt_ = false;
};

std::string host_name(std::int64_t host);

}  // namespace troupe::simulation
