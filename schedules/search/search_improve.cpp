#include "schedules/search/search_improve.h"

#include <algorithm>
#include <array>
#include <tuple>
#include <utility>

#include "core/random.h"
#include "schedules/simulate/simulate_graph.h"

namespace troupe::schedules {
namespace {

// Any key works; a fixed one makes the search draw the same moves each time.
constexpr std::array<std::uint32_t, 2> key = {0, 0};

/// Returns whether two passes must keep their order: they belong to one stage, and have the same
/// micro-batch or the same kind of result.
bool ordered(Action a, Action b) {
  if (a.stage != b.stage) return false;
  return a.micro_batch == b.micro_batch || a.kind == b.kind ||
         (gives_input_gradient(a.kind) && gives_input_gradient(b.kind)) ||
         (gives_weight_gradient(a.kind) && gives_weight_gradient(b.kind));
}

/// Moves an action within its lane. If `from` equals `to`, splits the action or joins it with the
/// next one.
struct Move {
  std::size_t device = 0;
  std::size_t from = 0;
  std::size_t to = 0;
};

bool may_pass(const Lane& lane, const Move& move) {
  const auto [first, last] = std::minmax(move.from, move.to);
  for (auto position = first; position <= last; ++position)
    if (position != move.from && ordered(lane[move.from], lane[position])) return false;
  return true;
}

void shift(Lane& lane, std::size_t from, std::size_t to) {
  const auto at = [&](std::size_t position) {
    return lane.begin() + static_cast<std::ptrdiff_t>(position);
  };
  if (from < to)
    std::rotate(at(from), at(from) + 1, at(to) + 1);
  else
    std::rotate(at(to), at(from), at(from) + 1);
}

/// Splits a B or joins an I with its W. Returns false if there is nothing to split or join.
bool cut_or_join(Lane& lane, std::size_t position) {
  const auto here = lane.begin() + static_cast<std::ptrdiff_t>(position);
  if (here->kind == Kind::backward) {
    auto second = *here;
    here->kind = Kind::backward_input;
    second.kind = Kind::backward_weight;
    lane.insert(here + 1, second);
    return true;
  }
  if (here->kind != Kind::backward_input || here + 1 == lane.end()) return false;
  auto wanted = *here;
  wanted.kind = Kind::backward_weight;
  if (here[1] != wanted) return false;
  here->kind = Kind::backward;
  lane.erase(here + 1);
  return true;
}

/// Makes the move if the lane stays valid, and returns whether it did.
bool make_move(Lane& lane, const Move& move) {
  if (move.from == move.to) return cut_or_join(lane, move.from);
  if (!may_pass(lane, move)) return false;
  shift(lane, move.from, move.to);
  return true;
}

bool has_groups(const Schedule& schedule) {
  for (const auto& lane : schedule.lanes)
    for (const auto action : lane)
      if (action.flags & Action::with_next) return true;
  return false;
}

class LocalSearch {
 public:
  LocalSearch(Schedule& schedule, const Costs& costs, const SearchRequest& request,
              Evaluator& evaluator)
      : schedule_(schedule), costs_(costs), request_(request), evaluator_(evaluator) {}

  Improvement run(double goal, std::int64_t effort) {
    const auto price = evaluator_.effort(request_.objective);
    done_.time = evaluator_.time(schedule_.lanes, request_.objective).value();
    look();
    // After this many moves without a gain, each move near the critical path was tried often.
    const auto patience = static_cast<std::uint32_t>(64 * critical_.size());
    std::uint32_t since_gain = 0;
    for (std::uint32_t round = 0; done_.time > goal * (1 + rounding); ++round) {
      if (since_gain++ > patience || done_.effort + price > effort || request_.interrupted()) break;
      const double before = done_.time;
      if (!try_move(draw(round))) continue;
      const bool gained = done_.time < before * (1 - rounding);
      if (gained) since_gain = 0;
      if (gained || moves_since_look_ >= 16) look();
    }
    return done_;
  }

 private:
  /// Recomputes the critical path.
  void look() {
    done_.effort += 8 * evaluator_.effort(Objective::makespan);
    moves_since_look_ = 0;
    evaluator_.passes_alone().record(schedule_.lanes, moments_);
    const StepGraph graph(schedule_, moments_, evaluator_.passes_alone(), costs_.landing_slots);
    critical_.clear();
    for (const auto moment : graph.critical_path())
      critical_.push_back({moments_[moment].device, moments_[moment].position});
  }

  Move draw(std::uint32_t round) const {
    const auto words = philox({round, 0, 0, 0}, key);
    std::size_t device = words[0] % schedule_.lanes.size();
    std::size_t position = words[1] % schedule_.lanes[device].size();
    // The actions that bound the period may lie beside the critical path of one step.
    if (request_.objective == Objective::makespan || words[3] % 2 == 0)
      std::tie(device, position) = critical_[words[1] % critical_.size()];
    const auto& lane = schedule_.lanes[device];
    if (words[2] / 8 % 8 == 0) return {device, position, position};
    const std::size_t distance = std::size_t{1} << words[2] % 4;
    const bool later = words[2] / 4 % 2 == 0;
    const std::size_t to = later ? std::min(position + distance, lane.size() - 1)
                                 : position - std::min(position, distance);
    return {device, position, to};
  }

  /// Makes the move and keeps it if the lane fits and is not slower.
  bool try_move(const Move& move) {
    auto& lane = schedule_.lanes[move.device];
    if (move.from >= lane.size()) return false;  // A join since the last look() shortened the lane.
    before_ = lane;
    if (make_move(lane, move)) {
      const bool fit = request_.caps.empty() || fits(lane, costs_, request_.caps[move.device]);
      if (fit && no_slower()) return true;
      lane.swap(before_);
    }
    return false;
  }

  bool no_slower() {
    ++done_.evaluations;
    done_.effort += evaluator_.effort(request_.objective);
    const auto time = evaluator_.time(schedule_.lanes, request_.objective);
    if (!time || *time > done_.time * (1 + rounding * 1e-3)) return false;
    done_.time = *time;
    ++moves_since_look_;
    return true;
  }

  Schedule& schedule_;
  const Costs& costs_;
  const SearchRequest& request_;
  Evaluator& evaluator_;
  std::vector<Moment> moments_;
  std::vector<std::pair<std::size_t, std::size_t>> critical_;  // Device and position.
  int moves_since_look_ = 0;
  Lane before_;
  Improvement done_;
};

}  // namespace

Improvement improve(Schedule& schedule, const Costs& costs, const SearchRequest& request,
                    Evaluator& evaluator, double goal, std::int64_t effort) {
  if (has_groups(schedule)) {
    Improvement none;
    none.time = evaluator.time(schedule.lanes, request.objective).value();
    return none;
  }
  return LocalSearch(schedule, costs, request, evaluator).run(goal, effort);
}

}  // namespace troupe::schedules
