#include "models/train/stage.h"

#include <algorithm>
#include <cassert>
#include <iterator>
#include <utility>

#include "kernels/rounding.h"
#include "models/train/repeatedly.h"

namespace troupe::models {

double Losses::sum() const {
  double sum = 0;
  for (const float loss : each.numbers<float>()) sum += static_cast<double>(loss);
  return sum;
}

double Losses::mean(std::int64_t counted) const {
  return counted == 0 ? 0 : sum() / static_cast<double>(counted);
}

double mean_of(std::span<const MeanLoss> losses) {
  const auto size = static_cast<double>(losses.size());
  std::int64_t all = 0;
  for (const auto& loss : losses) all += loss.counted;
  double sum = 0;
  for (const auto& loss : losses)
    if (loss.counted > 0)
      sum += loss.mean * (static_cast<double>(loss.counted) * size / static_cast<double>(all));
  return sum / size;
}

StageGradients join(Stream& stream, std::vector<GradientShare> shares) {
  StageGradients whole;
  TreeFold tree;
  for (auto& share : shares) {
    whole.rate_share = share.rate_share;
    whole.targets += share.targets;
    for (auto& sum : share.sums) {
      for (auto& slot : sum.slots) slot = stream.to_here(std::move(slot));
      tree.push(stream, std::move(sum));
    }
    for (auto& of_one : share.statistics)
      for (auto& statistic : of_one) statistic = stream.to_here(std::move(statistic));
    std::ranges::move(share.statistics, std::back_inserter(whole.statistics));
  }
  whole.slots = tree.finish(stream);
  return whole;
}

namespace {

std::int64_t rows_of(const Tensor& input) {
  const auto& shape = input.shape();
  return input.dtype() == DType::i32 ? input.count() : input.count() / shape[shape.rank() - 1];
}

/// Widens 16-bit tensors to fp32 before they leave the stage, so that stages exchange the same type
/// in all precisions. It loses no bit: the next stage sees the values it would see without a cut.
Tensor leaving(Stream& stream, Tensor given) {
  const bool is_narrow = given.dtype() == DType::bf16 || given.dtype() == DType::f16;
  return is_narrow ? kernels::as_type(stream, given, DType::f32) : std::move(given);
}

Bundle to_here(Stream& stream, Bundle bundle) {
  bundle.stream = stream.to_here(std::move(bundle.stream));
  for (auto& kept : bundle.kept) kept = stream.to_here(std::move(kept));
  return bundle;
}

/// Moves the kept values of a bundle to their places.
void put_kept(std::vector<Tensor> kept, const std::vector<int>& numbers, std::vector<Tensor>& to) {
  assert(kept.size() == numbers.size() && "the bundle has other kept values than the cut");
  for (std::size_t i = 0; i < numbers.size(); ++i)
    to[static_cast<std::size_t>(numbers[i])] = std::move(kept[i]);
}

/// Moves kept values from their places to a bundle.
std::vector<Tensor> kept_of(Stream& stream, const std::vector<int>& numbers,
                            std::vector<Tensor>& from) {
  std::vector<Tensor> kept;
  for (const int number : numbers)
    kept.push_back(leaving(stream, std::exchange(from[static_cast<std::size_t>(number)], {})));
  return kept;
}

}  // namespace

Stage::Stage(const Model& model, UnitRange units, const StageOptions& options) : options_(options) {
  const auto count = static_cast<int>(model.units.size());
  assert(0 <= units.first && units.first < units.last && units.last <= count);
  for (int i = units.first; i < units.last; ++i)
    parts_.add(*model.units[static_cast<std::size_t>(i)].layer);
  if (units.first == 0) input_gradient_ = InputGradient::unwanted;
  if (units.last == count) {
    parts_.add(*model.loss);
    end_ = End::loss;
  }
  parts_.freeze(model.frozen);
  kept_ = model.kept.size();
  taken_ = kept_across(model, units.first);
  given_ = kept_across(model, units.last);
  taken_gradients_ = gradients_across(model, units.first);
  given_gradients_ = gradients_across(model, units.last);
  if (kept_ > 0) read_last_.resize(static_cast<std::size_t>(parts_.count()));
  for (std::size_t i = 0; i < kept_; ++i)
    if (const int last = model.kept[i].last; units.first <= last && last < units.last)
      read_last_[static_cast<std::size_t>(last - units.first)].push_back(static_cast<int>(i));
  gives_gradient_ = model.trains_before(units.first);
  if (!gives_gradient_ && !parts_.frozen().empty())
    while (first_trained_ < parts_.count() && !parts_.is_trained(first_trained_)) ++first_trained_;
}

void Stage::begin_step(const Share& share, std::int64_t targets_in_step) {
  assert(fold_.idle() && "the gradients of the step before were not taken");
  fold_ = GradientFold(share);
  expect_targets(targets_in_step);
}

void Stage::expect_targets(std::int64_t targets_in_step) {
  target_share_ = static_cast<float>(1.0 / static_cast<double>(targets_in_step));
}

int Stage::in_flight() const {
  return static_cast<int>(std::ranges::count_if(
      places_, [](const InFlight& place) { return place.next != Phase::unused; }));
}

Stage::InFlight& Stage::free_place() {
  const auto found = std::ranges::find(places_, Phase::unused, &InFlight::next);
  if (found != places_.end()) return *found;
  auto& place = places_.emplace_back();
  place.saved.resize(static_cast<std::size_t>(parts_.saved()));
  place.statistics.resize(buffers().size());
  return place;
}

Stage::InFlight& Stage::find(int m, Phase next) {
  const auto found = std::ranges::find_if(places_, [&](const InFlight& place) {
    return place.next != Phase::unused && place.id.index == m;
  });
  assert(found != places_.end() && "this micro-batch is not in flight");
  assert(found->next == next && "this pass is not the one that comes next");
  return *found;
}

/// Prepares the frame, too, in which the pass finds kept values.
Pass Stage::pass_of(Stream& stream, const InFlight& place, Frame& frame) const {
  frame.values.resize(kept_);
  frame.gradients.resize(kept_);
  return {.stream = stream,
          .mode = Mode::training,
          .precision = options_.precision,
          .key = {.seed = options_.seed,
                  .step = static_cast<std::uint32_t>(place.id.step),
                  .sample = static_cast<std::uint32_t>(place.id.first_sample),
                  .operation = 0},
          .targets = place.targets,
          .loss_gradient = place.loss_gradient,
          .targets_that_count = place.id.targets.counted,
          .frame = &frame};
}

Layer::In Stage::whole(const Pass& pass, const Weights& weights, int part) const {
  return {.pass = pass,
          .weights = weights.slots,
          .buffers = weights.buffers,
          .input_gradient = part == 0 ? input_gradient_ : InputGradient::wanted,
          .frozen = parts_.frozen()};
}

/// Under Keep::input, frees a unit's saved tensors as soon as its output exists.
Bundle Stage::run(const Pass& pass, const Weights& weights, Bundle input, Keep keep,
                  std::vector<Tensor>& saved, std::vector<Tensor>& statistics,
                  std::span<Tensor> caches) const {
  auto& values = pass.frame->values;
  put_kept(std::move(input.kept), taken_, values);
  Tensor x = std::move(input.stream);
  for (int i = 0; i < parts_.count(); ++i) {
    const bool ends_here = end_ == End::loss && i + 1 == parts_.count();
    if (ends_here && pass.targets.empty()) break;
    auto in = whole(pass, weights, i);
    in.caches = caches;
    x = parts_.forward(i, in, std::move(x), saved, statistics);
    if (keep == Keep::input || i < first_trained_)
      std::ranges::fill(parts_.saved_by(i, saved), Tensor());
    if (kept_ > 0)
      for (const int number : read_last_[static_cast<std::size_t>(i)])
        values[static_cast<std::size_t>(number)] = {};
  }
  Bundle output = leaving(pass.stream, std::move(x));
  output.kept = kept_of(pass.stream, given_, values);
  return output;
}

Tensor Stage::begin_backward(const Pass& pass, Bundle dy) const {
  dy = to_here(pass.stream, std::move(dy));
  // Nothing came if nothing is trained here or before.
  if (!dy.kept.empty()) put_kept(std::move(dy.kept), given_gradients_, pass.frame->gradients);
  return std::move(dy.stream);
}

Bundle Stage::end_backward(const Pass& pass, Tensor dx) const {
  if (!gives_gradient_) return {};
  Bundle back = leaving(pass.stream, std::move(dx));
  back.kept = kept_of(pass.stream, taken_gradients_, pass.frame->gradients);
  return back;
}

/// Runs the work that a pass gives to the stream. The body must not wait for a device. Its kernel
/// arguments should stay the same from pass to pass as far as possible.
template <class Body>
void Stage::repeat(Stream& stream, const InFlight& place, SteadyMemory::Work work, Body body) {
  if (!place.is_short) return body();
  const SteadyMemory::Turn turn(memory_, stream, work);
  repeatedly(stream, std::move(body));
}

/// Returns the work number of a pass that makes gradients: it depends on the fold's next action.
SteadyMemory::Work Stage::folding(Passing pass, const GradientMend* mend) const {
  return pass + 8 * (fold_.next_kind() * 2 + (mend ? 1 : 0));
}

Bundle Stage::forward(Stream& stream, const MicroBatch& m, const Weights& weights, Bundle input,
                      Tensor targets) {
  assert(is_last() != targets.empty() && "targets belong to the last stage");
  auto& place = free_place();
  place.id = m;
  place.is_short = rows_of(input.stream) <= options_.short_rows;
  place.loss_gradient = target_share_ * static_cast<float>(weights.loss_scale.factor());
  Bundle output;
  repeat(stream, place, pass_forward, [&] {
    Bundle x = to_here(stream, std::move(input));
    place.targets = stream.to_here(std::move(targets));
    switch (options_.keep) {
      case Keep::everything:
        place.next = Phase::backward;
        break;
      case Keep::input:
        place.next = Phase::recompute;
        place.input = x;
        break;
    }
    Frame frame;
    output = run(pass_of(stream, place, frame), weights, std::move(x), options_.keep, place.saved,
                 place.statistics);
  });
  return output;
}

void Stage::recompute(Stream& stream, int m, const Weights& weights) {
  auto& place = find(m, Phase::recompute);
  place.next = Phase::backward;
  if (first_trained_ == parts_.count()) {  // The backward pass needs nothing.
    place.input = {};
    return;
  }
  // The buffers keep the first pass's statistics. This pass may see other weights.
  std::vector<Tensor> unused(place.statistics.size());
  repeat(stream, place, pass_again, [&] {
    Frame frame;
    run(pass_of(stream, place, frame), weights, std::exchange(place.input, {}), Keep::everything,
        place.saved, unused);
    unused.clear();
  });
}

Bundle Stage::backward_input(Stream& stream, int m, const Weights& weights, Bundle dy) {
  auto& place = find(m, Phase::backward);
  place.next = Phase::backward_weight;
  Bundle back;
  repeat(stream, place, pass_input, [&] {
    Frame frame;
    const Pass pass = pass_of(stream, place, frame);
    Tensor dx = begin_backward(pass, std::move(dy));
    for (int i = parts_.count() - 1; i >= first_trained_; --i)
      dx = parts_.backward_input(i, whole(pass, weights, i), std::move(dx), place.saved);
    back = end_backward(pass, std::move(dx));
  });
  return back;
}

std::span<Tensor> Stage::open_gradients(Stream& stream, const GradientMend* mend) {
  return mend ? fold_.open_apart(stream, parameters(), mend->sets())
              : fold_.open(parameters().size());
}

void Stage::backward_weight(Stream& stream, int m, const Weights& weights, GradientMend* mend) {
  auto& place = find(m, Phase::backward_weight);
  Frame frame;
  const Pass pass = pass_of(stream, place, frame);
  std::span<Tensor> tensors;
  repeat(stream, place, folding(pass_weight, mend), [&] {
    tensors = open_gradients(stream, mend);
    const auto gradients = tensors.first(parameters().size());
    for (int i = parts_.count() - 1; i >= first_trained_; --i)
      parts_.backward_weight(i, whole(pass, weights, i), place.saved, gradients);
    if (!mend) fold_.close(stream);
  });
  finish(stream, place, tensors, mend);
}

Bundle Stage::backward(Stream& stream, int m, const Weights& weights, Bundle dy,
                       GradientMend* mend) {
  auto& place = find(m, Phase::backward);
  std::span<Tensor> tensors;
  Bundle back;
  repeat(stream, place, folding(pass_both, mend), [&] {
    Frame frame;
    const Pass pass = pass_of(stream, place, frame);
    tensors = open_gradients(stream, mend);
    const auto gradients = tensors.first(parameters().size());
    Tensor dx = begin_backward(pass, std::move(dy));
    // Goes unit by unit, so that a unit's saved tensors are freed before the next one needs memory.
    for (int i = parts_.count() - 1; i >= first_trained_; --i) {
      const auto in = whole(pass, weights, i);
      dx = parts_.backward_input(i, in, std::move(dx), place.saved);
      parts_.backward_weight(i, in, place.saved, gradients);
    }
    back = end_backward(pass, std::move(dx));
    if (!mend) fold_.close(stream);
  });
  finish(stream, place, tensors, mend);
  return back;
}

/// Corrects gradients as separate work after the pass, because a mend may wait for the device.
void Stage::finish(Stream& stream, InFlight& place, std::span<Tensor> tensors, GradientMend* mend) {
  if (mend)
    repeat(stream, place, folding(pass_mend, mend), [&] {
      mend->mend(stream, tensors);
      fold_.close(stream);
    });
  keep_statistics(stream, place);
  targets_ += place.id.targets;
  place.targets = {};
  place.next = Phase::unused;
}

/// Keeps a micro-batch's statistics until the step ends. Copies them out of a short pass's memory,
/// because that stays allocated as a whole while any of it is held.
void Stage::keep_statistics(Stream& stream, InFlight& place) {
  if (place.is_short && stream.device() && !place.statistics.empty())
    repeat(stream, place, pass_statistics, [&] {
      for (auto& statistic : place.statistics) {
        Tensor kept = stream.make(statistic.shape(), statistic.dtype());
        stream.copy(statistic, kept);
        statistic = std::move(kept);
      }
    });
  statistics_.push_back(place.statistics);
  std::ranges::fill(place.statistics, Tensor());
}

GradientShare Stage::take_gradients() {
  return {.sums = fold_.take(),
          .statistics = std::exchange(statistics_, {}),
          .rate_share = 1,
          .targets = std::exchange(targets_, {})};
}

Bundle Stage::evaluate(Stream& stream, const Weights& weights, Bundle input, Tensor targets) const {
  std::vector<Tensor> saved(static_cast<std::size_t>(parts_.saved()));
  std::vector<Tensor> statistics(buffers().size());
  Frame frame{.values = std::vector<Tensor>(kept_), .gradients = {}};
  const Pass pass{.stream = stream,
                  .mode = Mode::evaluation,
                  .precision = options_.precision,
                  .key = {},
                  .targets = stream.to_here(std::move(targets)),
                  .frame = &frame};
  return run(pass, weights, to_here(stream, std::move(input)), Keep::input, saved, statistics);
}

ContinuedText Stage::begin_text(std::int64_t most) const {
  return {.most = most,
          .tokens = 0,
          .caches = std::vector<Tensor>(static_cast<std::size_t>(parts_.cached()))};
}

Bundle Stage::continue_text(Stream& stream, const Weights& weights, NextTokens next,
                            ContinuedText& text) const {
  assert(next.bundle.stream.shape()[0] == 1 && text.tokens + next.count <= text.most);
  std::vector<Tensor> saved(static_cast<std::size_t>(parts_.saved()));
  std::vector<Tensor> statistics(buffers().size());
  Frame frame{.values = std::vector<Tensor>(kept_), .gradients = {}};
  const Pass pass{.stream = stream,
                  .mode = Mode::evaluation,
                  .precision = options_.precision,
                  .key = {},
                  .targets = {},
                  .frame = &frame,
                  .first_position = text.tokens,
                  .most_positions = text.most};
  text.tokens += next.count;
  return run(pass, weights, std::move(next.bundle), Keep::input, saved, statistics, text.caches);
}

}  // namespace troupe::models
