#include "scalar_pipeline.h"

#include <algorithm>
#include <memory>
#include <numeric>
#include <span>
#include <utility>

#include "catch.h"
#include "models/train/section.h"

namespace troupe::models {
namespace {

double& number(Tensor& tensor) { return *tensor.data<double>(); }
double number(const Tensor& tensor) { return *tensor.data<double>(); }

Tensor make(Stream& stream, double value) {
  Tensor tensor = stream.make({1}, DType::f64);
  number(tensor) = value;
  return tensor;
}

class ScalarLayer final : public Layer {
 public:
  ScalarLayer(std::vector<std::string> names, double c, std::vector<double>& seen)
      : names_(std::move(names)), c_(c), seen_(seen) {}

  std::vector<Parameter> parameters() const override {
    std::vector<Parameter> all;
    for (const auto& name : names_) {
      auto& parameter = all.emplace_back();
      parameter.name = name;
      parameter.shape = {1};
      parameter.type = DType::f64;
    }
    return all;
  }
  // Saves z and h in the forward pass, then z and the gradient of h.
  int saved() const override { return 2 * static_cast<int>(names_.size()); }

  Tensor forward(const In& in, Tensor z, SavedSpan saved, SavedSpan) const override {
    seen_.clear();
    for (std::size_t i = 0; i < in.weights.size(); ++i) {
      const double w = number(std::as_const(in.weights[i].value));
      seen_.push_back(w);
      const double h = w * number(std::as_const(z));
      saved[2 * i] = std::move(z);
      saved[2 * i + 1] = make(in.pass.stream, h);
      z = make(in.pass.stream, h + c_ / 2 * h * h);
    }
    return z;
  }

  Tensor backward_input(const In& in, Tensor dz, SavedSpan saved) const override {
    for (std::size_t i = in.weights.size(); i-- > 0;) {
      const double h = number(std::as_const(saved[2 * i + 1]));
      const double dh = number(std::as_const(dz)) * (1 + c_ * h);
      saved[2 * i + 1] = make(in.pass.stream, dh);
      dz = make(in.pass.stream, dh * number(std::as_const(in.weights[i].value)));
    }
    return dz;
  }

  void backward_weight(const In& in, SavedSpan saved, SavedSpan gradients) const override {
    for (std::size_t i = 0; i < in.weights.size(); ++i) {
      number(gradients[i]) +=
          number(std::as_const(saved[2 * i])) * number(std::as_const(saved[2 * i + 1]));
      saved[2 * i] = saved[2 * i + 1] = {};
    }
  }

 private:
  std::vector<std::string> names_;
  double c_;
  std::vector<double>& seen_;
};

class SquareLoss final : public Layer {
 public:
  int saved() const override { return 1; }
  Tensor forward(const In& in, Tensor y, SavedSpan saved, SavedSpan) const override {
    const double miss = number(std::as_const(y)) - number(in.pass.targets);
    saved[0] = make(in.pass.stream, miss);
    return make(in.pass.stream, miss * miss / 2);
  }
  Tensor backward_input(const In& in, Tensor, SavedSpan saved) const override {
    const Tensor miss = std::exchange(saved[0], {});
    return make(in.pass.stream, number(miss) * static_cast<double>(in.pass.loss_gradient));
  }
};

}  // namespace

ScalarPipeline::ScalarPipeline(const ScalarRun& run) : run_(run) {
  const int count = static_cast<int>(run.weights.size());
  REQUIRE(run.depths.size() == run.weights.size());
  for (int s = 0; s < count; ++s) {
    auto layer = std::make_unique<ScalarLayer>(names(static_cast<std::size_t>(s)), run.c, seen_);
    model_.units.push_back({"s" + std::to_string(s), std::move(layer)});
  }
  if (run.end == ScalarRun::End::outside)
    model_.units.push_back(
        {"outside", std::make_unique<ScalarLayer>(std::vector<std::string>(), 0, seen_)});
  model_.loss = std::make_unique<SquareLoss>();
  model_.frozen = run.frozen;
  stages_.reserve(static_cast<std::size_t>(count));
  for (int s = 0; s < count; ++s) {
    const auto at = static_cast<std::size_t>(s);
    const auto steps = lane(run.depths[at]);
    const auto late = delays(steps);
    std::vector<std::string> borrowed;
    if (borrows(at)) borrowed.push_back(names(0)[0]);
    TrainingStage training(model_, {s, s + 1},
                           {.precision = kernels::Precision::fp32, .keep = run.keep, .seed = 0},
                           run.staleness, run.optimizer, borrowed);
    Optimizer optimizer(
        run.optimizer, training.passes().parameters(), {}, kernels::Precision::fp32,
        {.staleness = run.staleness, .delay = std::ranges::max(late), .borrowed = borrowed});
    std::vector<NamedTensor> first;
    for (std::size_t i = 0; i < run.weights[at].size(); ++i)
      first.push_back({names(at)[i], scalar(run.weights[at][i])});
    auto weights = optimizer.from(stream_, first, 0);
    REQUIRE(weights.ok());
    training.adopt({*weights, {}});
    if (run.is_measured) training.measure();
    trace_.delays.push_back(late);
    stages_.push_back(
        {std::move(training), std::move(optimizer), *weights, steps, 0, {}, {}, {}, {}});
    turns_.push_back(at);
  }
  trace_.theta.resize(stages_.size());
  trace_.forward.resize(stages_.size());
  trace_.penalty_mean.resize(stages_.size());
  trace_.penalty_most.resize(stages_.size());
  trace_.norm.resize(stages_.size());
  trace_.penalised_norm.resize(stages_.size());
  for (std::size_t s = 0; s < stages_.size(); ++s) note_theta(s);
}

ScalarPipeline::~ScalarPipeline() = default;

Tensor ScalarPipeline::scalar(double value) { return make(stream_, value); }

std::vector<std::string> ScalarPipeline::names(std::size_t s) const {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < run_.weights[s].size(); ++i)
    names.push_back("s" + std::to_string(i == 0 && borrows(s) ? 0 : s) + "." + std::to_string(i));
  return names;
}

double ScalarPipeline::theta(std::size_t s, std::size_t weight) const {
  if (weight == 0 && borrows(s)) return theta(0);
  return number(std::as_const(stages_[s].weights->slots[weight].value));
}

void ScalarPipeline::note_theta(std::size_t s) {
  std::vector<double> now;
  for (std::size_t i = 0; i < run_.weights[s].size(); ++i) now.push_back(theta(s, i));
  trace_.theta[s].push_back(std::move(now));
}

std::vector<ScalarPipeline::Step> ScalarPipeline::lane(int depth) const {
  using Kind = Step::Kind;
  std::vector<Step> lane;
  int f = 0, b = 0;
  const auto may_go_ahead = [&] {
    if (run_.order == ScalarRun::Order::flush) return f / run_.step_every == b / run_.step_every;
    return f - b <= depth;
  };
  while (b < run_.micro_batches) {
    if (f < run_.micro_batches && may_go_ahead())
      lane.push_back({Kind::forward, f++});
    else
      lane.push_back({Kind::backward, b++});
  }
  return lane;
}

std::vector<int> ScalarPipeline::delays(const std::vector<Step>& lane) const {
  std::vector<int> delays(static_cast<std::size_t>(run_.micro_batches), 0);
  int steps = 0;
  for (const auto& [kind, m] : lane) {
    const auto at = static_cast<std::size_t>(m);
    delays[at] = kind == Step::Kind::forward ? -steps : delays[at] + steps;
    if (kind == Step::Kind::backward && (m + 1) % run_.step_every == 0) ++steps;
  }
  return delays;
}

void ScalarPipeline::round() {
  const auto count = static_cast<std::size_t>(run_.micro_batches);
  for (auto& place : stages_) {
    place.next = 0;
    place.inputs.assign(count, {});
    place.gradients.assign(count, {});
    place.gap_factors.assign(count, 1);
    place.loans.assign(count, {});
  }
  trace_.loss.assign(count, 0);
  for (std::size_t s = 0; s < stages_.size(); ++s) {
    const bool is_flush = run_.order == ScalarRun::Order::flush;
    stages_[s].training.begin_round(
        {.delays = is_flush ? std::vector<int>(count, 0) : trace_.delays[s],
         .step_every = run_.step_every,
         .share = Share::whole(run_.step_every, 1),
         .targets_in_step = run_.step_every});
  }
  const auto is_done = [](const Place& place) { return place.next == place.lane.size(); };
  while (!std::ranges::all_of(stages_, is_done)) {
    bool moved = false;
    for (const auto s : turns_) moved = advance(s) || moved;
    REQUIRE(moved);
  }
}

bool ScalarPipeline::advance(std::size_t s) {
  auto& place = stages_[s];
  if (place.next == place.lane.size()) return false;
  const auto [kind, m] = place.lane[place.next];
  const auto at = static_cast<std::size_t>(m);
  const bool is_first = s == 0, is_last = s + 1 == stages_.size();
  if (kind == Step::Kind::forward && !is_first && place.inputs[at].empty()) return false;
  if (kind == Step::Kind::backward && !is_last && place.gradients[at].empty()) return false;
  ++place.next;
  if (kind == Step::Kind::forward)
    forward(s, m);
  else
    backward(s, m);
  return true;
}

void ScalarPipeline::forward(std::size_t s, int m) {
  auto& place = stages_[s];
  const auto at = static_cast<std::size_t>(m);
  const bool is_last = s + 1 == stages_.size(), is_outside = run_.end == ScalarRun::End::outside;
  Tensor input = s == 0 ? scalar(run_.x[at]) : std::exchange(place.inputs[at], {});
  Tensor targets = is_last && !is_outside ? scalar(run_.t[at]) : Tensor();
  Tensor y =
      place.training
          .forward(stream_, {.step = 0, .index = m, .first_sample = m}, std::move(input),
                   std::move(targets), std::span(place.loans).subspan(at, borrows(s) ? 1 : 0))
          .stream;
  if (s == 0 && run_.tied) stages_.back().loans[at] = place.training.lend(m, names(0)[0]);
  trace_.forward[s].push_back(seen_);
  if (!is_last) {
    stages_[s + 1].inputs[at] = std::move(y);
    return;
  }
  if (!is_outside) {
    trace_.loss[at] = number(std::as_const(y));
    return;
  }
  const double miss = number(std::as_const(y)) - run_.t[at];
  trace_.loss[at] = miss * miss / 2;
  place.gradients[at] = scalar(miss / run_.step_every);
}

void ScalarPipeline::backward(std::size_t s, int m) {
  auto& place = stages_[s];
  const auto at = static_cast<std::size_t>(m);
  if (run_.keep == Keep::input) place.training.recompute(stream_, m);
  if (s + 1 < stages_.size()) place.training.expect_gap_factor(m, place.gap_factors[at]);
  Tensor dx = place.training.backward(stream_, m, std::exchange(place.gradients[at], {})).stream;
  if (s > 0) {
    // Before the first trained weight nobody reads it: it only says that the turn has come.
    stages_[s - 1].gradients[at] = dx.empty() ? scalar(0) : std::move(dx);
    stages_[s - 1].gap_factors[at] = place.training.gap_factor();
  }
  if (!keeps_metrics_) {
    const auto metrics = place.training.take_metrics();
    trace_.penalty_mean[s].push_back(metrics.penalty_mean);
    trace_.penalty_most[s].push_back(metrics.penalty_most);
  }
  if ((m + 1) % run_.step_every == 0 || m + 1 == run_.micro_batches) step(s);
}

void ScalarPipeline::step(std::size_t s) {
  auto& place = stages_[s];
  auto share = place.training.take_gradients(stream_);
  if (borrows(s)) {
    const Section tied{.pieces = {{.slot = 0, .first = 0, .count = 1}}, .has_buffers = false};
    given_back_.push_back(join(stream_, {part_of(share, tied, run_.weights[s].size())}));
  }
  auto gradients = join(stream_, {std::move(share)});
  if (s == 0 && run_.tied) {
    REQUIRE(!given_back_.empty());
    place.optimizer.add_uses(stream_, gradients, {names(0)[0]}, given_back_.front());
    given_back_.pop_front();
  }
  const double norm = global_norm(place.optimizer.squared_norms(stream_, gradients));
  trace_.norm[s].push_back(norm);
  trace_.penalised_norm[s].push_back(
      global_norm(place.optimizer.penalised_squares(stream_, gradients)));
  place.weights = place.optimizer.step(stream_, place.weights, std::move(gradients), norm);
  place.training.adopt({place.weights, place.optimizer.moments()});
  most_held_ = std::max(most_held_, memory_.counters().bytes_in_use);
  note_theta(s);
}

std::vector<NamedTensor> ScalarPipeline::saved(std::size_t s) const {
  auto all = stages_[s].optimizer.named(*stages_[s].weights);
  for (auto& moment : stages_[s].optimizer.state()) all.push_back(std::move(moment));
  return all;
}

void ScalarPipeline::restore(std::size_t s, const std::vector<NamedTensor>& tensors,
                             std::int64_t steps) {
  auto& place = stages_[s];
  auto weights = place.optimizer.from(stream_, tensors, steps);
  REQUIRE(weights.ok());
  REQUIRE(place.optimizer.restore(stream_, tensors, steps).ok());
  place.weights = *weights;
  place.training.adopt({place.weights, place.optimizer.moments()});
}

ScalarTrace run(const ScalarRun& run) {
  ScalarPipeline pipeline(run);
  pipeline.round();
  return pipeline.trace();
}

}  // namespace troupe::models
