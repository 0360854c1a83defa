#include "actors/decide/stragglers.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <tuple>

#include "core/units.h"

namespace troupe::actors {

using schedules::Kind;

namespace {

constexpr double most_of_growth =
    0.8;  // The part of a round trip's growth that shows its direction.

/// Returns the lower median of sorted numbers without one that is `number`, if others are left.
std::optional<double> median_without(const std::vector<double>& sorted, double number) {
  if (sorted.size() < 2) return {};
  const auto middle = (sorted.size() - 2) / 2;
  const auto place =
      static_cast<std::size_t>(std::ranges::lower_bound(sorted, number) - sorted.begin());
  return sorted[middle < place ? middle : middle + 1];
}

bool is_pass(Kind kind) { return schedules::has_micro_batch(kind); }

/// A pass that receives or sends a tensor: forward, or the one that makes the input's gradient.
bool is_message(Kind kind) {
  return kind == Kind::forward || schedules::gives_input_gradient(kind);
}

}  // namespace

/// One step of a round.
struct Stragglers::Step {
  using Place = std::tuple<std::size_t, int, bool, int>;  // Replica, stage, backward, micro-batch.

  double took = 0;
  std::vector<std::map<Class, std::vector<double>>> passes;  // Indexed by device.
  std::vector<std::pair<Place, Ran>> ran;                    // Sorted by place.

  const Ran* find(const Place& place) const {
    const auto found = std::ranges::lower_bound(ran, place, {}, &std::pair<Place, Ran>::first);
    return found != ran.end() && found->first == place ? &found->second : nullptr;
  }
};

/// How many times longer something takes than usual, and what that costs.
struct Stragglers::Judgement {
  double factor = 1;
  double share = 0;
  Straggler::Than than = Straggler::Than::before;
  std::size_t steps = 1;  // The newest steps in a row that were slow.
  double spread = 0;      // The usual distance of a step's time from the median.
};

void Stragglers::attempt_begins(std::vector<std::string> nodes, int replicas) {
  nodes_ = std::move(nodes);
  in_replica_ = nodes_.size() / static_cast<std::size_t>(replicas);
  ignored_ = 0;
  step_ = LastNumbers(RunningMedian::window);
  devices_.assign(nodes_.size(), {});
  times_.clear();
  slowdowns_.clear();
  links_.clear();
}

std::vector<Straggler> Stragglers::all() const {
  std::vector<Straggler> all;
  for (const auto& device : devices_)
    if (device.finding.named) all.push_back(*device.finding.named);
  for (const auto& [_, link] : links_)
    if (link.finding.named) all.push_back(*link.finding.named);
  return all;
}

std::vector<Straggler> Stragglers::add(const TimedRound& round) {
  std::vector<Straggler> changes;
  auto number = round.first_step;
  for (const auto& step : split(round)) {
    ++number;
    if (ignored_ < limits_.warm_up) {
      ++ignored_;
      continue;
    }
    measure(step);
    for (std::size_t i = 0; i < devices_.size(); ++i) {
      const auto judged = judge(i);
      settle(devices_[i].finding, judged, {.device = i}, limits_.slow, number, changes);
    }
    settle_links(number, changes);
  }
  return changes;
}

/// Sorts the actions of a round by step. In an asynchronous round the steps overlap.
std::vector<Stragglers::Step> Stragglers::split(const TimedRound& round) {
  std::vector<Step> steps(static_cast<std::size_t>(round.steps));
  for (auto& step : steps) {
    step.took = in_seconds(round.took) / round.steps;
    step.passes.resize(devices_.size());
  }
  for (std::size_t i = 0; i < devices_.size(); ++i) {
    auto& device = devices_[i];
    for (const auto& [action, start, end, is_held_up] : round.devices[i]) {
      const bool has_waited = device.free && start - *device.free > limits_.idle && !is_held_up;
      device.free = end;
      if (!is_pass(action.kind)) continue;
      const int m = static_cast<int>(action.micro_batch);
      const auto at = static_cast<std::size_t>(m / round.micro_batches_in_step);
      if (at >= steps.size()) continue;
      const Ran ran{i, in_seconds(start), in_seconds(end), has_waited};
      steps[at].passes[i][{action.kind, action.stage}].push_back(ran.end - ran.start);
      if (is_message(action.kind))
        steps[at].ran.emplace_back(
            Step::Place{i / in_replica_, action.stage, action.kind != Kind::forward, m}, ran);
    }
  }
  for (auto& step : steps) std::ranges::sort(step.ran, {}, &std::pair<Step::Place, Ran>::first);
  return steps;
}

void Stragglers::measure(const Step& step) {
  step_.add(step.took);
  newest_step_ = step.took;
  for (std::size_t i = 0; i < devices_.size(); ++i) {
    auto& device = devices_[i];
    double busy = 0;
    for (const auto& [which, times] : step.passes[i]) {
      auto& passes = device.passes[which];
      const double time = lower_median(times);
      passes.count = static_cast<int>(times.size());
      passes.time.add(time, device.finding.is_calm());
      busy += passes.count * time;
    }
    device.busy.add(busy, device.finding.is_calm());
  }
  compare_devices();
  measure_links(step);
}

/// Prepares the comparisons of each device with the others.
void Stragglers::compare_devices() {
  for (auto& [_, times] : times_) times.clear();
  slowdowns_.clear();
  for (auto& device : devices_) {
    double now = 0, before = 0;
    for (const auto& [which, passes] : device.passes) {
      if (!passes.time.now()) continue;
      times_[which].push_back(*passes.time.now());
      if (!passes.time.before()) continue;
      now += passes.count * *passes.time.now();
      before += passes.count * *passes.time.before();
    }
    device.slower = before > 0 ? now / before : 1;
    slowdowns_.push_back(device.slower);
  }
  for (auto& [_, times] : times_) std::ranges::sort(times);
  std::ranges::sort(slowdowns_);
}

void Stragglers::measure_links(const Step& step) {
  struct Times {
    std::vector<double> there, back;
  };
  std::map<Ends, Times> found;
  for (auto& [_, link] : links_) ++link.unmeasured;
  for (const auto& [place, receiver] : step.ran) {
    if (!receiver.has_waited) continue;
    const auto [replica, stage, is_backward, m] = place;
    const auto* sender = step.find({replica, stage + (is_backward ? 1 : -1), is_backward, m});
    if (!sender || nodes_[sender->device] == nodes_[receiver.device]) continue;
    auto& times = found[std::minmax(sender->device, receiver.device)];
    (sender->device < receiver.device ? times.there : times.back)
        .push_back(receiver.start - sender->end);
  }
  for (auto& [ends, times] : found) {
    if (times.there.empty() || times.back.empty()) continue;
    auto& link = links_[ends];
    link.unmeasured = 0;
    // A slow device changes how its neighbors wait, so such steps are not usual ones.
    const bool is_calm = link.finding.is_calm() && devices_[ends.first].finding.is_calm() &&
                         devices_[ends.second].finding.is_calm();
    const double there = lower_median(std::move(times.there));
    const double back = lower_median(std::move(times.back));
    link.there.add(there, is_calm);
    link.back.add(back, is_calm);
    link.both.add(there + back, is_calm);
  }
}

std::optional<Stragglers::Judgement> Stragglers::judge(std::size_t device) const {
  const auto& about = devices_[device];
  Judgement judged;
  double now = 0, usual = 0;
  bool has_past = !about.passes.empty();
  for (const auto& [_, passes] : about.passes) {
    if (!passes.time.now()) return {};
    now += passes.count * *passes.time.now();
    if (passes.time.before())
      usual += passes.count * *passes.time.before();
    else
      has_past = false;
  }
  // A slowdown that the other devices share is no fault of this one. A small one is noise.
  const double others = median_without(slowdowns_, about.slower).value_or(1);
  if (others >= limits_.fast) usual *= others;
  const bool is_known = has_past && usual > 0;
  if (is_known) {
    judged.factor = now / usual;
    judged.share = share_of(now - usual);
    judged.steps = std::max<std::size_t>(1, about.busy.latest_from(limits_.fast * usual));
    judged.spread = about.busy.spread();
  }
  const auto compared = compare_with_others(about);
  if (!compared) return is_known ? std::optional(judged) : std::nullopt;
  // The clearer one of the two comparisons counts.
  const bool is_clearer = judged.factor / least_factor(limits_.slow, judged.spread) >=
                          compared->factor / least_factor(limits_.slow, compared->spread);
  return is_known && is_clearer ? judged : *compared;
}

/// Returns the factor from which on something is slow and no noise.
double Stragglers::least_factor(double slow, double spread) const {
  return std::max(slow, 1 + limits_.spreads * spread);
}

/// Compares a device with other devices that hold the same stages, if there are any.
std::optional<Stragglers::Judgement> Stragglers::compare_with_others(const Device& about) const {
  double now = 0, usual = 0;
  for (const auto& [which, passes] : about.passes) {
    const auto others = median_without(times_.at(which), *passes.time.now());
    if (!others) return {};
    now += passes.count * *passes.time.now();
    usual += passes.count * *others;
  }
  if (usual <= 0) return {};
  return Judgement{
      .factor = now / usual,
      .share = share_of(now - usual),
      .than = Straggler::Than::others,
      .steps = std::max<std::size_t>(1, about.busy.latest_from(limits_.fast * usual)),
      .spread = std::numbers::sqrt2 * about.busy.spread()};  // The others vary as well.
}

/// Returns the share of a step's time that `longer` seconds are.
double Stragglers::share_of(double longer) const {
  const double step = step_.median();
  return step > 0 ? std::clamp(longer / step, 0.0, 1.0) : 0;
}

std::optional<Stragglers::Judgement> Stragglers::judge(const Link& link) const {
  const auto now = link.both.now(), before = link.both.before();
  if (!now || !before) return {};
  // A round trip is at least as long as the overhead that counts as no wait at all.
  const double usual = std::max(*before, in_seconds(limits_.idle));
  const double longer = *now - usual;
  return Judgement{.factor = *now / usual,
                   .share = longer < in_seconds(limits_.least_late) ? 0 : share_of(longer),
                   .than = Straggler::Than::before,
                   .steps = std::max<std::size_t>(1, link.both.latest_from(limits_.fast * usual)),
                   .spread = link.both.spread()};
}

Straggler Stragglers::link_straggler(const Ends& ends, const Link& link) const {
  Straggler told{
      .device = ends.second, .cause = Straggler::Cause::link_two_way, .peer = ends.first};
  if (!link.both.now() || !link.both.before()) return told;
  const double grown = *link.both.now() - *link.both.before();
  const double there = *link.there.now() - *link.there.before();
  const double back = *link.back.now() - *link.back.before();
  const double rest = (1 - most_of_growth) * grown;
  if (std::min(std::abs(there), std::abs(back)) > rest) return told;
  if (std::max(there, back) < most_of_growth * grown) return told;
  told.cause = Straggler::Cause::link;
  if (back > there) std::swap(told.device, told.peer);
  return told;
}

void Stragglers::settle_links(std::int64_t step, std::vector<Straggler>& changes) {
  for (auto& [ends, link] : links_) {
    if (link.unmeasured == 0) {
      settle(link.finding, judge(link), link_straggler(ends, link), limits_.slow_link, step,
             changes);
    } else if (link.unmeasured > limits_.unmeasured) {
      if (link.finding.named) {
        changes.push_back(*link.finding.named);
        changes.back().now = Straggler::Now::unknown;
      }
      link = {.there = {}, .back = {}, .both = {}, .unmeasured = link.unmeasured, .finding = {}};
    }
  }
}

/// Names what was slow for some steps in a row, and clears what was fast for some.
void Stragglers::settle(Finding& finding, const std::optional<Judgement>& judged,
                        const Straggler& told, double slow, std::int64_t step,
                        std::vector<Straggler>& changes) {
  if (!judged) return;
  // A late answer of a device that computes slowly is no fault of its link.
  const auto is_disturbed = [&](std::size_t device) {
    const auto& one = devices_[device];
    return one.slower >= limits_.fast || !one.finding.is_calm();
  };
  const bool is_link = told.cause != Straggler::Cause::computing;
  const bool is_excused = is_link && (is_disturbed(told.device) || is_disturbed(told.peer));
  const double least = least_factor(slow, judged->spread);
  const bool is_slow =
      judged->factor >= least && judged->share >= limits_.least_share && !is_excused;
  const bool is_fast = judged->factor < limits_.fast;
  const bool is_plain =
      is_slow && judged->factor >= limits_.plain && judged->share >= limits_.plain_share;
  finding.slow_steps = is_slow ? finding.slow_steps + 1 : 0;
  finding.slow_seconds = is_slow ? finding.slow_seconds + newest_step_ : 0;
  finding.fast_steps = is_fast ? finding.fast_steps + 1 : 0;
  const bool has_lasted =
      finding.slow_seconds >= in_seconds(is_plain ? limits_.burst : limits_.lasted);
  if (!finding.named && finding.slow_steps >= limits_.in_a_row && has_lasted) {
    finding.named = told;
    finding.named->than = judged->than;
    finding.named->factor = judged->factor;
    finding.named->share = judged->share;
    finding.named->since = step + 1 - static_cast<std::int64_t>(judged->steps);
    changes.push_back(*finding.named);
  } else if (finding.named && finding.fast_steps >= limits_.in_a_row) {
    Straggler over = *std::exchange(finding.named, {});
    over.now = Straggler::Now::usual;
    finding = {};
    changes.push_back(over);
  }
}

}  // namespace troupe::actors
