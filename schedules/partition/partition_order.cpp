#include "schedules/partition/partition_order.h"

#include <algorithm>
#include <numeric>
#include <optional>

namespace troupe::schedules {

namespace {

class OrderSearch {
 public:
  explicit OrderSearch(const OrderProblem& problem) : problem_(problem) {}

  Result<OrderedPartition> run() {
    improve_from(given());
    improve_from(sorted([](const Capacity& device) { return static_cast<double>(device.memory); }));
    improve_from(sorted([](const Capacity& device) { return device.speed; }));
    if (best_) return *best_;
    return Error{*reason_};
  }

 private:
  using Order = std::vector<int>;  // Indices of groups.

  Order given() const {
    Order order(problem_.groups.size());
    std::iota(order.begin(), order.end(), 0);
    return order;
  }

  template <class Measure>
  Order sorted(Measure measure) const {
    Order order = given();
    const auto size = [&](int group) {
      double sum = 0;
      for (int device : problem_.groups[group]) sum += measure(problem_.problem.devices[device]);
      return sum / static_cast<double>(problem_.groups[group].size());
    };
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return size(a) > size(b); });
    return order;
  }

  /// Cuts the model for this order of groups. Returns whether it is the best so far.
  bool better(const Order& order) {
    ++trials_;
    OrderedPartition candidate;
    PartitionProblem problem = problem_.problem;
    std::size_t seat = 0;
    for (int group : order) {
      for (int device : problem_.groups[group]) {
        if (seat == problem.seats.size()) break;
        problem.seats[seat].device = device;
        problem.seats[seat].next =
            device == problem_.groups[group].back() ? problem_.outside : problem_.inside;
        candidate.devices.push_back(device);
        ++seat;
      }
    }
    auto found = partition(problem);
    if (!found) {
      if (!reason_) reason_ = found.error().text;
      return false;
    }
    if (best_ && !(found->bottleneck < best_->partition.bottleneck)) return false;
    candidate.partition = std::move(*found);
    best_ = std::move(candidate);
    return true;
  }

  /// Returns whether two groups have equal devices, so that exchanging them changes nothing.
  bool alike(int a, int b) const {
    const auto& devices = problem_.problem.devices;
    return std::equal(problem_.groups[a].begin(), problem_.groups[a].end(),
                      problem_.groups[b].begin(), problem_.groups[b].end(), [&](int x, int y) {
                        return devices[x].speed == devices[y].speed &&
                               devices[x].memory == devices[y].memory;
                      });
  }

  void improve_from(Order order) {
    better(order);
    for (bool again = true; again;) {
      again = false;
      for (std::size_t a = 0; a < order.size(); ++a) {
        for (std::size_t b = a + 1; b < order.size() && trials_ < problem_.most_orders; ++b) {
          if (alike(order[a], order[b])) continue;
          std::swap(order[a], order[b]);
          if (better(order))
            again = true;
          else
            std::swap(order[a], order[b]);
        }
      }
    }
  }

  const OrderProblem& problem_;
  int trials_ = 0;
  std::optional<OrderedPartition> best_;
  std::optional<std::string> reason_;
};

Status check(const OrderProblem& problem) {
  std::size_t count = 0;
  std::vector<bool> seen(problem.problem.devices.size());
  for (const auto& group : problem.groups) {
    if (group.empty()) return Error{"a group without devices"};
    for (int device : group) {
      if (device < 0 || device >= static_cast<int>(seen.size()) || seen[device])
        return Error{"device " + std::to_string(device) +
                     " is in two groups, or there is none of that number"};
      seen[device] = true;
      ++count;
    }
  }
  if (count < problem.problem.seats.size())
    return Error{std::to_string(problem.problem.seats.size()) +
                 " stages need as many devices, and there are " + std::to_string(count)};
  return Done{};
}

}  // namespace

Result<OrderedPartition> partition_any_order(const OrderProblem& problem) {
  if (Status sound = check(problem); !sound) return sound.error();
  return OrderSearch(problem).run();
}

}  // namespace troupe::schedules
