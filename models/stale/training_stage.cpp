#include "models/stale/training_stage.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <memory>

#include "models/arithmetic.h"

namespace troupe::models {
namespace {

using S = StalenessOptions;

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::ranges::find(names, name) != names.end();
}

/// Returns the names of a stage's own parameters that later units use as well.
std::vector<std::string> names_lent(const Model& model, UnitRange units, const Stage& stage,
                                    const std::vector<std::string>& borrowed) {
  std::vector<std::string> lent;
  for (auto unit = static_cast<std::size_t>(units.last); unit < model.units.size(); ++unit)
    for (const auto& later : model.units[unit].layer->parameters()) {
      const auto& own = stage.parameters();
      const bool is_here = std::ranges::find(own, later.name, &Parameter::name) != own.end();
      if (is_here && !contains(borrowed, later.name) && !contains(lent, later.name))
        lent.push_back(later.name);
    }
  return lent;
}

std::vector<std::size_t> slots_named(const std::vector<Parameter>& parameters,
                                     const std::vector<std::string>& names) {
  std::vector<std::size_t> slots;
  for (std::size_t slot = 0; slot < parameters.size(); ++slot)
    if (contains(names, parameters[slot].name)) slots.push_back(slot);
  return slots;
}

/// The tags of a version: its own, then one for each number of steps predicted ahead of it.
constexpr std::int64_t points_of_a_version = 1 << 16;

}  // namespace

TrainingStage::TrainingStage(const Model& model, UnitRange units, const StageOptions& options,
                             const StalenessOptions& staleness, const OptimizerConfig& optimizer,
                             std::vector<std::string> borrowed)
    : stage_(model, units, options),
      config_(optimizer),
      lateness_{.staleness = staleness, .delay = 0, .borrowed = std::move(borrowed)},
      precision_(options.precision),
      owned_(trained_slots(stage_.parameters(), lateness_.borrowed)),
      configs_(configs_of(optimizer, stage_.parameters(), owned_)),
      points_(optimizer, staleness, stage_, options, lateness_.borrowed,
              names_lent(model, units, stage_, lateness_.borrowed)) {
  lent_ = slots_named(stage_.parameters(), names_lent(model, units, stage_, lateness_.borrowed));
  assert((staleness.delay_compensation == 0 || (lateness_.borrowed.empty() && lent_.empty())) &&
         "how far a parameter moved is known to one of two stages alone");
}

// Windows: the micro-batches between two steps.

int TrainingStage::size_of(int window) const {
  const int all = static_cast<int>(round_.delays.size());
  return std::min(round_.step_every, all - window * round_.step_every);
}

/// Returns this replica's share of a window. In a remainder every replica has equally many groups.
Share TrainingStage::share_of(int window) const {
  const Share& whole = round_.share;
  if (!is_remainder(window)) return whole;
  assert(whole.micro_batches % round_.step_every == 0 && whole.count() == round_.step_every);
  const int holders = whole.micro_batches / round_.step_every;
  const int holder = whole.first_micro_batch() / round_.step_every;
  const int size = size_of(window);
  const int groups = std::min(size, whole.last_group - whole.first_group);
  return {.micro_batches = size * holders,
          .groups = groups * holders,
          .first_group = groups * holder,
          .last_group = groups * (holder + 1)};
}

std::int64_t TrainingStage::targets_of(int window) const {
  const bool is_mean = lateness_.staleness.remainder == S::Remainder::renorm;
  if (!is_remainder(window) || !is_mean) return round_.targets_in_step;
  return round_.targets_in_step * size_of(window) / round_.step_every;
}

void TrainingStage::begin_round(Round round) {
  assert(stage_.in_flight() == 0);
  round_ = std::move(round);
  const int count = static_cast<int>(round_.delays.size());
  assert(count > 0);
  assert((lateness_.staleness.predict != S::Predict::aggmsnag ||
          round_.share.count() == round_.share.micro_batches) &&
         "no holder has the whole gradient that the others would count on");
  assert((lateness_.staleness.remainder != S::Remainder::drop || count % round_.step_every == 0) &&
         "a remainder that is dropped belongs to no round");
  window_ = 0;
  first_version_ = version();
  lateness_.delay = std::max(lateness_.delay, std::ranges::max(round_.delays));
  begin_window();
}

void TrainingStage::begin_window() { stage_.begin_step(share_of(window_), targets_of(window_)); }

GradientShare TrainingStage::take_gradients(Stream& /*stream*/) {
  auto share = stage_.take_gradients();
  share.rate_share = static_cast<double>(size_of(window_)) / round_.step_every;
  ++window_;
  if (window_ * round_.step_every < static_cast<int>(round_.delays.size())) begin_window();
  return share;
}

// Weights of a pass.

/// Returns the steps between the weights that the passes see and the step that takes the gradient.
int TrainingStage::delay_of(int m) const {
  const int lag = lateness_.staleness.lag;
  return lag > 0 ? std::min(window_of(m), lag) : round_.delays[static_cast<std::size_t>(m)];
}

bool TrainingStage::is_late() const {
  return lateness_.staleness.lag > 0 ||
         std::ranges::any_of(round_.delays, [](int delay) { return delay > 0; });
}

Horizon TrainingStage::horizon(int delay) const {
  Horizon horizon;
  if (lateness_.staleness.predict == S::Predict::none) return horizon;
  const int steps = std::max(delay, lateness_.staleness.nag ? 1 : 0);
  for (int i = 0; i < steps; ++i) {
    const std::int64_t step = version() + i;
    const int window = static_cast<int>(step - first_version_);
    double rate = late_rate(config_.rate, lateness_, step);
    if (size_of(window) > 0) rate *= static_cast<double>(size_of(window)) / round_.step_every;
    horizon.rates.push_back(rate);
  }
  return horizon;
}

WeightsPtr TrainingStage::forward_weights(Stream& stream, InFlight& flight, int delay) {
  const auto& staleness = lateness_.staleness;
  if (staleness.lag > 0) {
    const std::int64_t seen = first_version_ + window_of(flight.m) - delay;
    flight.tag = seen * points_of_a_version;
    return points_.at(seen);
  }
  const Horizon ahead = horizon(delay);
  flight.tag += static_cast<std::int64_t>(ahead.rates.size());
  return points_.ahead(stream, stage_, ahead);
}

bool TrainingStage::holds_forward(const InFlight& flight, int delay) const {
  const auto& staleness = lateness_.staleness;
  const bool asks_gap = mends_gradients(staleness) && staleness.gap_source == S::GapSource::stash;
  return flight.returns || (delay > 0 && (asks_gap || is_measured_));
}

/// Returns the weights that a gap is measured from; null if the last update gives them.
const Weights* TrainingStage::gap_begins(const InFlight& flight) const {
  return lateness_.staleness.gap_source == S::GapSource::stash ? flight.forward.get() : nullptr;
}

WeightsPtr TrainingStage::with(const WeightsPtr& weights, const Fixed& fixed) {
  const auto sees = [&](const auto& entry) {
    return weights->slots[entry.first].value.raw() == entry.second.value.raw();
  };
  if (std::ranges::all_of(fixed, sees)) return weights;
  auto changed = std::make_shared<Weights>(*weights);
  for (const auto& [slot, weight] : fixed) changed->slots[slot] = weight;
  return changed;
}

Bundle TrainingStage::forward(Stream& stream, const MicroBatch& m, Bundle input, Tensor targets,
                              std::span<const Loan> loans) {
  const auto& staleness = lateness_.staleness;
  const int delay = delay_of(m.index);
  InFlight flight;
  flight.m = m.index;
  flight.version = version();
  flight.tag = version() * points_of_a_version;
  const WeightsPtr seen = forward_weights(stream, flight, delay);
  const bool looks_ahead = delay == 0 && seen != points_.newest().weights;
  // The last stage runs its passes back to back, so both see one point, as in Nesterov's method.
  flight.returns = staleness.lag > 0 || staleness.linearize_at == S::LinearizeAt::forward ||
                   (looks_ahead && (staleness.nag_return || stage_.is_last()));
  flight.points.push_back(flight.tag);
  for (const auto& loan : loans) flight.points.push_back(loan.tag);
  flight.loans = take_loans(stream, loans);
  if (holds_forward(flight, delay)) flight.forward = seen;
  if (is_measured_ && delay > 0) flight.origin = points_.newest().weights;
  const WeightsPtr used = with(seen, flight.loans);
  // All passes of the micro-batch see the lent weights, here and on the stages that borrow them.
  for (const auto slot : lent_) flight.loans.emplace_back(slot, seen->slots[slot]);
  if (stage_.is_last()) stage_.expect_targets(targets_of(window_of(m.index)));
  flights_.push_back(std::move(flight));
  return stage_.forward(stream, m, *used, std::move(input), std::move(targets));
}

/// Returns whether as many steps lie between the passes as the schedule declares.
bool TrainingStage::keeps_promise(const InFlight& flight) const {
  return lateness_.staleness.lag > 0 || flight.version + delay_of(flight.m) == version();
}

const Weights& TrainingStage::backward_weights(Stream& stream, InFlight& flight) {
  if (!flight.backward) {
    WeightsPtr sees = points_.newest().weights;
    if (flight.returns)
      sees = flight.forward;
    else if (lateness_.staleness.linearize_at == S::LinearizeAt::extrapolated)
      sees = points_.behind(stream, delay_of(flight.m));
    flight.backward = with(sees, flight.loans);
  }
  return *flight.backward;
}

TrainingStage::InFlight& TrainingStage::find(int m) {
  const auto found = std::ranges::find(flights_, m, &InFlight::m);
  assert(found != flights_.end() && "this micro-batch is not in flight");
  return *found;
}

// Tied parameters that another stage owns.

Version TrainingStage::packed(Stream& stream, Version version) const {
  const auto& parameters = stage_.parameters();
  const auto lacks_form = [&](std::size_t slot) {
    const auto& weight = version.weights->slots[slot];
    return parameters[slot].use == Parameter::Use::matrix && !weight.value.empty() &&
           weight.packed.empty();
  };
  const auto is_left_out = [&](std::size_t slot) {
    return parameters[slot].frozen && version.weights->slots[slot].value.empty();
  };
  const Stream::Lasting lasting(stream);
  std::shared_ptr<Weights> made;
  for (std::size_t slot = 0; slot < parameters.size(); ++slot) {
    if (is_left_out(slot) && points_.newest().weights) {
      if (!made) made = std::make_shared<Weights>(*version.weights);
      made->slots[slot] = points_.newest().weights->slots[slot];
    }
    if (!lacks_form(slot)) continue;
    if (!made) made = std::make_shared<Weights>(*version.weights);
    made->slots[slot] =
        weight_of(stream, parameters[slot], precision_, version.weights->slots[slot].value);
  }
  if (made) version.weights = std::move(made);
  return version;
}

TrainingStage::Fixed TrainingStage::loaned(Stream& stream, const Loan& loan) const {
  for (const auto& last : loaned_)
    if (last.loan.name == loan.name && last.loan.tag == loan.tag) return last.slots;
  const Tensor value = stream.to_here(loan.value);
  Fixed slots;
  for (const auto slot : slots_named(stage_.parameters(), {loan.name}))
    slots.emplace_back(slot, weight_of(stream, stage_.parameters()[slot], precision_, value));
  return slots;
}

TrainingStage::Fixed TrainingStage::take_loans(Stream& stream, std::span<const Loan> loans) {
  assert(loans.size() == lateness_.borrowed.size());
  Fixed all;
  std::vector<Loaned> taken;
  for (const auto& loan : loans) {
    taken.push_back({loan, loaned(stream, loan)});
    all.insert(all.end(), taken.back().slots.begin(), taken.back().slots.end());
  }
  loaned_ = std::move(taken);
  return all;
}

Loan TrainingStage::lend(int m, const std::string& name) const {
  const auto flight = std::ranges::find(flights_, m, &InFlight::m);
  assert(flight != flights_.end() && "this micro-batch is not in flight");
  for (const auto& [slot, weight] : flight->loans)
    if (stage_.parameters()[slot].name == name) return {name, flight->tag, weight.value};
  assert(false && "this parameter is nobody else's");
  return {};
}

Loan TrainingStage::lend(const std::string& name) const {
  const auto slots = slots_named(stage_.parameters(), {name});
  assert(!slots.empty());
  return {name, version() * points_of_a_version, points_.newest().weights->slots[slots[0]].value};
}

// Late gradients.

/// `whose` is 0 for this stage's weights, and 1, 2, ... for the parameters that it borrows.
bool TrainingStage::sees_later_point(const InFlight& flight, std::size_t whose) {
  if (flight.m % round_.step_every == 0) first_points_ = flight.points;
  return flight.points[whose] != first_points_[whose];
}

/// Returns how many of a step's micro-batches, over all replicas, see the same weights as this one.
int TrainingStage::at_point_of(int m) const {
  const int first = window_of(m) * round_.step_every, size = size_of(window_of(m));
  int count = 0;
  for (int other = first; other < first + size; ++other)
    count += delay_of(other) == delay_of(m) ? 1 : 0;
  return count * share_of(window_of(m)).micro_batches / size;
}

std::vector<std::size_t> TrainingStage::borrowed_later(const InFlight& flight) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < lateness_.borrowed.size(); ++i)
    if (sees_later_point(flight, i + 1)) names.push_back(lateness_.borrowed[i]);
  return slots_named(stage_.parameters(), names);
}

/// Runs a pass that makes parameter gradients, and corrects them.
template <class Pass>
Bundle TrainingStage::mended(Stream& stream, InFlight& flight, Pass pass) {
  const auto& staleness = lateness_.staleness;
  const int delay = delay_of(flight.m);
  // Borrowed parameters may be late at their owner.
  const bool is_mending =
      (is_late() || !lateness_.borrowed.empty()) &&
      (staleness.gap_penalty != S::GapPenalty::none || staleness.gap_factor == S::GapFactor::max ||
       staleness.delay_compensation > 0);
  Bundle dx;
  if (is_mending) {
    const GapRules rules = this->rules();
    const Gap gap(rules, points_.newest(), gap_begins(flight));
    LateGradients mend(rules,
                       {.gap = delay > 0 ? &gap : nullptr,
                        .weight = 1.0 / share_of(window_of(flight.m)).micro_batches,
                        .factor = staleness.gap_factor == S::GapFactor::max ? flight.gap_factor : 1,
                        .is_later = sees_later_point(flight, 0),
                        .weight_at_point = 1.0 / at_point_of(flight.m),
                        .lent = lent_,
                        .later = borrowed_later(flight)});
    if (is_measured_) mend.measure();
    dx = pass(&mend);
    measured_.sums.penalty_mean += mend.penalty_mean() - 1;
    measured_.sums.penalty_most = std::max(measured_.sums.penalty_most, mend.penalty_most());
  } else {
    dx = pass(nullptr);
  }
  if (is_measured_) measure_gap(stream, flight);
  std::erase_if(flights_, [m = flight.m](const InFlight& each) { return each.m == m; });
  return dx;
}

void TrainingStage::expect_gap_factor(int m, double received) { find(m).gap_factor = received; }

/// Tells the previous stage this stage's gap: scales down all gradients that go to it, those of
/// kept values included, or sets gap_factor_.
Bundle TrainingStage::tell_gap(Stream& stream, InFlight& flight, Bundle dx) {
  const auto factor = lateness_.staleness.gap_factor;
  gap_factor_ = flight.gap_factor;
  if (factor == S::GapFactor::none || delay_of(flight.m) == 0) return dx;
  const GapRules rules = this->rules();
  const double own = Gap(rules, points_.newest(), gap_begins(flight)).factor(stream);
  if (factor == S::GapFactor::max) {
    gap_factor_ = flight.gap_factor = std::max(flight.gap_factor, own);
    return dx;
  }
  const auto scaled = [&](const Tensor& x) { return combined(stream, 1 / own, x, 0, x); };
  if (!dx.stream.empty()) dx.stream = scaled(dx.stream);
  for (auto& kept : dx.kept) kept = scaled(kept);
  return dx;
}

void TrainingStage::measure_gap(Stream& stream, const InFlight& flight) {
  const int delay = delay_of(flight.m);
  auto& delays = measured_.sums.delays;
  if (delays.size() <= static_cast<std::size_t>(delay)) delays.resize(delay + 1u);
  ++delays[static_cast<std::size_t>(delay)];
  ++measured_.passes;
  if (delay == 0 || !flight.forward || !flight.origin) return;
  const auto value = [&](const WeightsPtr& weights, std::size_t i) -> const Tensor& {
    return weights->slots[owned_[i][0]].value;
  };
  const auto& now = points_.newest().weights;
  std::vector<std::int64_t> counts;
  for (std::size_t i = 0; i < owned_.size(); ++i)
    counts.insert(counts.end(), 2, value(now, i).count());
  const auto squares = sums_of_squares(stream, counts, [&](std::size_t k) {
    const std::size_t i = k / 2;
    return combined(stream, 1, value(now, i), -1,
                    value(k % 2 == 0 ? flight.forward : flight.origin, i));
  });
  double gap = 0, way = 0;
  for (std::size_t k = 0; k < squares.size(); k += 2) {
    gap += std::sqrt(squares[k]);
    way += std::sqrt(squares[k + 1]);
  }
  ++measured_.late;
  measured_.sums.gap += gap;
  measured_.sums.prediction_error += way > 0 ? gap / way : 0;
}

StalenessMetrics TrainingStage::take_metrics() {
  auto [metrics, late, passes] = std::exchange(measured_, {});
  if (late > 0) {
    metrics.gap /= late;
    metrics.prediction_error /= late;
  }
  if (passes > 0) metrics.penalty_mean = 1 + (metrics.penalty_mean - 1) / passes;
  return metrics;
}

// The passes.

void TrainingStage::recompute(Stream& stream, int m) {
  stage_.recompute(stream, m, backward_weights(stream, find(m)));
}

Bundle TrainingStage::backward_input(Stream& stream, int m, Bundle dy) {
  auto& flight = find(m);
  assert(keeps_promise(flight));
  Bundle dx = stage_.backward_input(stream, m, backward_weights(stream, flight), std::move(dy));
  return tell_gap(stream, flight, std::move(dx));
}

void TrainingStage::backward_weight(Stream& stream, int m) {
  auto& flight = find(m);
  const WeightsPtr weights = flight.backward;
  mended(stream, flight, [&](GradientMend* mend) {
    stage_.backward_weight(stream, m, *weights, mend);
    return Bundle();
  });
}

Bundle TrainingStage::backward(Stream& stream, int m, Bundle dy) {
  auto& flight = find(m);
  assert(keeps_promise(flight));
  const auto factor = lateness_.staleness.gap_factor;
  const Weights& weights = backward_weights(stream, flight);
  // The max factor divides this stage's own gradients, too.
  if (factor == S::GapFactor::max) tell_gap(stream, flight, {});
  return mended(stream, flight, [&](GradientMend* mend) {
    Bundle dx = stage_.backward(stream, m, weights, std::move(dy), mend);
    return factor == S::GapFactor::scalar ? tell_gap(stream, flight, std::move(dx)) : dx;
  });
}

Bundle TrainingStage::evaluate(Stream& stream, Bundle input, Tensor targets,
                               std::span<const Loan> loans) const {
  assert(loans.size() == lateness_.borrowed.size());
  Fixed all;
  for (const auto& loan : loans)
    for (auto& slot : loaned(stream, loan)) all.push_back(std::move(slot));
  return stage_.evaluate(stream, *with(points_.newest().weights, all), std::move(input),
                         std::move(targets));
}

}  // namespace troupe::models
