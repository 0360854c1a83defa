#include "schedules/search/search_improve.h"

#include <algorithm>
#include <array>
#include <tuple>
#include <utility>

#include "core/random.h"
#include "schedules/simulate/simulate_graph.h"

namespace troupe::schedules {
namespace {

// Any will do: the search must only draw the same moves each time.
constexpr std::array<std::uint32_t, 2> key = {0, 0};

/// Passes that must stay in this order: the same stage's with the same result, and those of a
/// micro-batch.
bool ordered(Action a, Action b) {
  if (a.stage != b.stage) return false;
  return a.micro_batch == b.micro_batch || a.kind == b.kind ||
         (gives_input_gradient(a.kind) && gives_input_gradient(b.kind)) ||
         (gives_weight_gradient(a.kind) && gives_weight_gradient(b.kind));
}

/// An action that moves to another position of its lane. Where it stays, it is cut in its halves or
/// joined with the one behind it.
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

/// Whether there was something to cut or to join.
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

/// Whether the move leaves a valid lane, and so was made.
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
    // As often as this without a gain, each move near the critical path was tried many times.
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
  /// Finds out what is critical now.
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
    // What bounds the period may lie beside the critical path of one step.
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

  /// Keeps the move if nothing gets worse by it.
  bool try_move(const Move& move) {
    auto& lane = schedule_.lanes[move.device];
    if (move.from >= lane.size()) return false;  // A join since the last look made it shorter.
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
