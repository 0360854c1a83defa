#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "schedules/plan/plan.h"

namespace troupe::schedules {

/// Whether a new plan may have fewer stages or replicas than requested.
enum class Shrink : std::uint8_t { never, if_needed };

struct Replanned {
  std::optional<Plan> plan;  // Unset: the run would have to wait.
  std::string reason;        // Why there is no plan, or what had to change.
};

/// Plans for a changed cluster. An asynchronous schedule keeps its stages, because they affect its
/// numbers.
Replanned replan(PlanRequest request, Shrink shrink);

/// A cache of plans for parts of a cluster. Nodes of one class are interchangeable, so the plan
/// after a loss is usually cached: it was made for another node of the class, or in advance.
class PlanBook {
 public:
  /// Creates an empty cache. The request must name the whole cluster.
  explicit PlanBook(PlanRequest request);

  struct Entry {
    Replanned made;
    std::vector<int> nodes;  // The cluster's nodes in the plan, in the order of the plan's nodes.
  };
  Entry look_up(const std::vector<int>& nodes);
  /// Caches the plans for the loss of any one and any two of these nodes.
  void foresee(const std::vector<int>& nodes);

  int plans_made() const { return made_; }

 private:
  using Counts = std::vector<int>;  // Number of nodes by class.
  Counts counts_of(const std::vector<int>& nodes) const;
  const Replanned& plan_for(const Counts& counts);

  PlanRequest request_;
  std::vector<int> class_of_;  // Indexed by node.
  std::vector<int> first_of_;  // The first node of each class.
  std::map<Counts, Replanned> plans_;
  int made_ = 0;
};

}  // namespace troupe::schedules
