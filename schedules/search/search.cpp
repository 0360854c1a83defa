#include "schedules/search/search.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <set>
#include <span>
#include <utility>

#include "core/digest.h"
#include "core/json.h"
#include "schedules/operators.h"
#include "schedules/search/search_evaluator.h"
#include "schedules/search/search_improve.h"
#include "schedules/search/search_portfolio.h"

namespace troupe::schedules {
namespace {

constexpr std::size_t most_passes = std::size_t{1} << 20;  // More would exhaust the memory.
constexpr std::size_t ranked = 10;
constexpr std::size_t starts = 4;     // The number of local searches.
constexpr double good_enough = 1e-3;  // The relative distance to the bound that ends the search.
// Making a candidate costs about as much as simulating its actions this many times.
constexpr std::int64_t making = 16;

double part(const Candidate& candidate, Objective objective) {
  return objective == Objective::makespan ? candidate.makespan : candidate.period;
}

/// Returns the average number of hops between devices per micro-batch; breaks ties.
double traffic(const Schedule& schedule) {
  double hops = 0;
  for (const auto place : schedule.route_of) {
    const auto& route = schedule.routes[place];
    for (std::size_t stage = 1; stage < route.size(); ++stage)
      if (route[stage] != route[stage - 1]) ++hops;
  }
  return hops / static_cast<double>(schedule.route_of.size());
}

Digest digest_of_lanes(const Schedule& schedule) {
  Digester digester;
  for (const auto& route : schedule.routes) digester.add(std::as_bytes(std::span(route)));
  for (const auto& lane : schedule.lanes) digester.add(std::as_bytes(std::span(lane)));
  return digester.finish();
}

/// A candidate that fits, with the other inputs of its rank.
struct Entry {
  Candidate candidate;
  double traffic = 0;
  Schedule schedule;
  const Costs* costs = nullptr;
};

class Search {
 public:
  explicit Search(const SearchRequest& request)
      : request_(request), bound_(portfolio_bound(request)) {}

  Result<SearchResult> run() {
    visit_portfolio(request_, [this](Schedule schedule, const Costs& costs, Origin origin) {
      look_at(std::move(schedule), costs, origin);
      return !enough();
    });
    if (ranking_.empty()) return nothing_fits();
    fuse_best();
    improve_best();
    return finish();
  }

 private:
  double bound() const {
    return request_.objective == Objective::makespan ? bound_.makespan : bound_.period;
  }

  bool enough() {
    if (!ranking_.empty() &&
        part(ranking_[0].candidate, request_.objective) <= bound() * (1 + good_enough))
      why_stopped_ = "the best is within 0.1 % of the lower bound";
    else if (request_.interrupted())
      why_stopped_ = "it was interrupted";
    else if (effort_ >= request_.effort)
      why_stopped_ = "its effort was spent";
    return !why_stopped_.empty();
  }

  void look_at(Schedule schedule, const Costs& costs, Origin origin) {
    std::int64_t actions = 0;
    for (const auto& lane : schedule.lanes) actions += static_cast<std::int64_t>(lane.size());
    if (origin == Origin::made) effort_ += making * actions;
    const auto digest = digest_of_lanes(schedule);
    if (!seen_.insert({digest.high, digest.low}).second) return;
    if (over_caps(schedule, costs)) return;
    auto evaluator = Evaluator::make(schedule, costs);
    if (!evaluator) return;
    const auto makespan = evaluator->time(schedule.lanes, Objective::makespan);
    const auto period = evaluator->time(schedule.lanes, Objective::period);
    effort_ += evaluator->effort(Objective::makespan) + evaluator->effort(Objective::period);
    ++evaluations_;
    if (!makespan || !period) return;
    Entry entry{{.name = schedule.name,
                 .chunks = chunks_of(request_, costs),
                 .makespan = *makespan,
                 .period = *period,
                 .largest_peak = largest_peak(schedule, costs)},
                traffic(schedule),
                std::move(schedule),
                &costs};
    if (origin == Origin::named && (!best_named_ || better(entry, *best_named_)))
      best_named_ = entry;
    const bool whole = !holds(entry.schedule, Kind::backward_input);
    if (whole && (!best_whole_ || better(entry, *best_whole_))) best_whole_ = entry;
    rank(std::move(entry));
  }

  /// Returns whether a cap is exceeded; remembers the smallest relative excess for the error.
  bool over_caps(const Schedule& schedule, const Costs& costs) {
    const auto device = over_cap(schedule.lanes, costs, request_.caps);
    if (!device) return false;
    double worst = 0;
    std::size_t where = *device;
    for (std::size_t id = *device; id < request_.caps.size(); ++id) {
      const double over = peak_of(schedule.lanes[id], costs).stash / request_.caps[id];
      if (over > worst) worst = over, where = id;
    }
    if (worst < least_over_) {
      least_over_ = worst;
      closest_ = schedule.name + ", holds " +
                 shortest(peak_of(schedule.lanes[where], costs).stash) + " on device " +
                 std::to_string(where) + ", whose cap is " + shortest(request_.caps[where]);
    }
    return true;
  }

  static double largest_peak(const Schedule& schedule, const Costs& costs) {
    double largest = 0;
    for (const auto& lane : schedule.lanes) largest = std::max(largest, peak_of(lane, costs).stash);
    return largest;
  }

  /// Compares by the objective, then the other time, then messages, then memory. Of equals, the
  /// earlier entry stays in front.
  bool better(const Entry& a, const Entry& b) const {
    const auto less = [](double x, double y) { return x < y * (1 - rounding); };
    const auto other =
        request_.objective == Objective::makespan ? Objective::period : Objective::makespan;
    for (const auto objective : {request_.objective, other}) {
      const double x = part(a.candidate, objective), y = part(b.candidate, objective);
      if (less(x, y) || less(y, x)) return x < y;
    }
    if (a.traffic != b.traffic) return a.traffic < b.traffic;
    return less(a.candidate.largest_peak, b.candidate.largest_peak);
  }

  void rank(Entry entry) {
    const auto place = std::find_if(ranking_.begin(), ranking_.end(),
                                    [&](const Entry& other) { return better(entry, other); });
    ranking_.insert(place, std::move(entry));
    if (ranking_.size() > ranked) ranking_.pop_back();
  }

  std::vector<Entry> front() const {
    const auto count = static_cast<std::ptrdiff_t>(std::min(starts, ranking_.size()));
    return {ranking_.begin(), ranking_.begin() + count};
  }

  /// A fused backward pass can be shorter than its halves, if only by one launch.
  void fuse_best() {
    for (const auto& entry : front()) {
      if (enough()) return;
      auto fused = fuse_backward(entry.schedule);
      fused.name = "fuse(" + fused.name + ")";
      look_at(std::move(fused), *entry.costs, Origin::made);
    }
  }

  /// Improves several starts, because the best one does not always have the most left to gain.
  void improve_best() {
    auto from = front();
    // From schedules of halves only, the best mixture with fused passes is far away.
    if (best_whole_) from.push_back(*best_whole_);
    for (std::size_t start = 0; start < from.size() && !enough(); ++start) {
      const auto left = request_.effort - effort_;
      improve_from(from[start], left / static_cast<std::int64_t>(from.size() - start));
    }
    if (why_stopped_.empty()) why_stopped_ = "local search came to its end";
  }

  void improve_from(const Entry& start, std::int64_t effort) {
    auto evaluator = Evaluator::make(start.schedule, *start.costs);
    auto improved = start.schedule;
    const auto outcome =
        improve(improved, *start.costs, request_, *evaluator, bound() * (1 + good_enough), effort);
    evaluations_ += outcome.evaluations;
    effort_ += outcome.effort;
    if (outcome.time >= part(start.candidate, request_.objective) * (1 - rounding)) return;
    improved.name = "improved(" + improved.name + ")";
    look_at(std::move(improved), *start.costs, Origin::made);
  }

  Result<SearchResult> finish() {
    auto& best = ranking_[0];
    auto simulation = simulate(best.schedule, *best.costs);
    if (!simulation) return simulation.error();
    SearchResult result;
    result.costs = *best.costs;
    result.simulation = std::move(*simulation);
    result.bound = bound_;
    for (const auto& entry : ranking_) result.ranking.push_back(entry.candidate);
    if (best_named_) result.best_named = best_named_->candidate;
    result.schedule = std::move(best.schedule);
    result.evaluations = evaluations_;
    result.why_stopped = std::move(why_stopped_);
    return result;
  }

  Error nothing_fits() const {
    const auto shape = std::to_string(request_.devices) + " devices and " +
                       std::to_string(request_.micro_batches) + " micro-batches";
    if (closest_.empty()) return {"no candidate schedule exists for " + shape};
    return {"no schedule for " + shape + " fits: the closest, " + closest_ +
            "; raise the cap, recompute, or cut the micro-batches smaller"};
  }

  const SearchRequest& request_;
  LowerBound bound_;
  std::vector<Entry> ranking_;  // The best first.
  std::optional<Entry> best_named_;
  std::optional<Entry> best_whole_;  // The best schedule without split backward passes.
  std::set<std::pair<std::uint64_t, std::uint64_t>> seen_;
  double least_over_ = std::numeric_limits<double>::infinity();
  std::string closest_;
  std::int64_t effort_ = 0;
  int evaluations_ = 0;
  std::string why_stopped_;
};

Status check_request(const SearchRequest& request) {
  if (request.devices < 1 || request.devices > 4096)
    return Error{"search: devices is " + std::to_string(request.devices) + "; wanted: 1 to 4096"};
  if (request.micro_batches < 1 || request.micro_batches > 1 << 22)
    return Error{"search: micro_batches is " + std::to_string(request.micro_batches) +
                 "; wanted: 1 to 4194304"};
  if (request.partitions.empty()) return Error{"search: there is no partition to schedule"};
  const auto devices = static_cast<std::size_t>(request.devices);
  for (const auto& partition : request.partitions) {
    const auto stages = partition.stages.size();
    if (stages == 0 || stages % devices != 0)
      return Error{"search: a partition has " + std::to_string(stages) +
                   " stages; wanted: as many, or a multiple of the devices, which are " +
                   std::to_string(devices)};
    if (stages * static_cast<std::size_t>(request.micro_batches) > most_passes)
      return Error{"search: " + std::to_string(stages) + " stages and " +
                   std::to_string(request.micro_batches) + " micro-batches are more than " +
                   std::to_string(most_passes) +
                   " forward passes; search with fewer micro-batches"};
    if (auto fine = check_costs(partition, static_cast<int>(stages), request.devices); !fine)
      return within("search: partition of " + std::to_string(stages) + " stages", fine.error());
  }
  if (!request.caps.empty() && request.caps.size() != devices)
    return Error{"search: there are " + std::to_string(request.caps.size()) + " caps for " +
                 std::to_string(devices) + " devices"};
  for (const double cap : request.caps)
    if (!(cap > 0))
      return Error{"search: a cap is " + (std::isnan(cap) ? "no number" : shortest(cap)) +
                   "; wanted: more than 0"};
  return Done{};
}

}  // namespace

Result<SearchResult> search(const SearchRequest& request) {
  if (auto fine = check_request(request); !fine) return fine.error();
  return Search(request).run();
}

}  // namespace troupe::schedules
