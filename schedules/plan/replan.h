#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "schedules/plan/plan.h"

namespace troupe::schedules {

/// Whether a plan may have fewer stages or replicas than were asked for.
enum class Shrink : std::uint8_t { never, if_needed };

struct Replanned {
  std::optional<Plan> plan;  // Nothing: the run would have to wait.
  std::string reason;        // Why there is none, or what had to change.
};

/// A plan for a cluster that has changed. The stages of an asynchronous schedule are part of its
/// numbers and stay.
Replanned replan(PlanRequest request, Shrink shrink);

/// Plans for parts of a cluster. Nodes that are alike make no difference, so that after a loss the
/// plan is mostly there: it was made for another one, or beforehand.
class PlanBook {
 public:
  /// Of the whole cluster.
  explicit PlanBook(PlanRequest request);

  struct Entry {
    Replanned made;
    std::vector<int> nodes;  // Of the cluster: who has a part, in the order of the plan's nodes.
  };
  Entry look_up(const std::vector<int>& nodes);
  /// What look_up() would have to make for one less and for two less of these nodes.
  void foresee(const std::vector<int>& nodes);

  int plans_made() const { return made_; }

 private:
  using Counts = std::vector<int>;  // By class.
  Counts counts_of(const std::vector<int>& nodes) const;
  const Replanned& plan_for(const Counts& counts);

  PlanRequest request_;
  std::vector<int> class_of_;  // By node.
  std::vector<int> first_of_;  // By class: a node like all of them.
  std::map<Counts, Replanned> plans_;
  int made_ = 0;
};

}  // namespace troupe::schedules
