#include "apps/machine/measure_units.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <latch>
#include <limits>
#include <thread>
#include <utility>

#include "apps/machine/machine_share.h"
#include "apps/machine/this_machine.h"
#include "models/train/account.h"
#include "models/train/optimizer.h"
#include "models/train/stage.h"

namespace troupe::apps {
namespace {

using models::Bundle;
using models::Stage;
using Clock = std::chrono::steady_clock;

constexpr std::int64_t most_bytes = std::int64_t{2} << 30;
constexpr int least_rounds = 2, most_rounds = 40;
// A round has two micro-batches, so that their gradients are added up, unless it takes long.
constexpr int most_micro_batches = 2;
constexpr double long_micro_batch = 0.1;  // Seconds.

constexpr double UnitTimes::*all_times[] = {&UnitTimes::forward, &UnitTimes::backward,
                                            &UnitTimes::backward_input, &UnitTimes::backward_weight,
                                            &UnitTimes::update};

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// Fills a tensor with numbers that a model takes.
void fill(Tensor& tensor, const IntegerBounds& bounds) {
  const auto count = tensor.count();
  if (tensor.dtype() == DType::f32) {
    for (std::int64_t i = 0; i < count; ++i) tensor.f32()[i] = static_cast<float>(i % 7) / 7;
    return;
  }
  auto* const numbers = tensor.data<std::int32_t>();
  const auto below = static_cast<std::int32_t>(std::clamp<std::int64_t>(bounds.below, 1, 1 << 30));
  for (std::int64_t i = 0; i < count; ++i) {
    const bool is_end = i % 2 == 1;
    const auto place = static_cast<std::int32_t>(i % below);
    numbers[i] = !bounds.are_spans ? place : is_end ? below - 1 : 0;
  }
}

/// Trains a model whose units are stages of their own.
class Trial {
 public:
  Trial(const MeasuredModel& measured, int threads)
      : request_(measured.request),
        micro_batches_(measured.expected > long_micro_batch ? 1 : most_micro_batches),
        stream_(memory_, threads) {
    const auto& model = measured.model;
    const auto& request = measured.request;
    for (int unit = 0; unit < static_cast<int>(model.units.size()); ++unit) {
      const auto& stage =
          stages_.emplace_back(model, models::UnitRange{unit, unit + 1},
                               models::StageOptions{.precision = request.precision});
      optimizers_.emplace_back(request.optimizer, stage.parameters(), stage.buffers(),
                               request.precision);
      weights_.push_back(optimizers_.back().initial(stream_, 1));
    }
    const auto inputs = models::bundles_of(model, models::with_batch(request.micro, request.input));
    for (const auto& part : inputs.front()) {
      Tensor made = stream_.make(part.shape, part.type);
      fill(made, part.name.empty() ? model.sample.bounds : part.bounds);
      if (input_.stream.empty())
        input_.stream = std::move(made);
      else
        input_.kept.push_back(std::move(made));
    }
    targets_ =
        stream_.make(models::with_batch(request.micro, request.target), model.sample.target_type);
    fill(targets_, {.below = model.classes});
    constexpr double unknown = std::numeric_limits<double>::infinity();
    best_.assign(stages_.size(), {unknown, unknown, unknown, unknown, unknown});
  }

  enum class Backward : std::uint8_t { whole, in_halves };

  /// Takes a step. Notes times that are shorter than those of the rounds before.
  void round(Backward backward) {
    std::vector<UnitTimes> spent(stages_.size());
    const auto all = targets_.count();
    for (auto& stage : stages_)
      stage.begin_step(models::Share::whole(micro_batches_, micro_batches_), micro_batches_ * all);
    for (int m = 0; m < micro_batches_; ++m) {
      forward(m, spent);
      if (backward == Backward::whole)
        backward_whole(m, spent);
      else
        backward_in_halves(m, spent);
    }
    update(spent);
    for (std::size_t unit = 0; unit < spent.size(); ++unit)
      note(backward, spent[unit], best_[unit]);
  }

  const std::vector<UnitTimes>& best() const { return best_; }

 private:
  template <class Body>
  double time_of(Body body) {
    const auto start = Clock::now();
    body();
    stream_.wait();
    return seconds_since(start);
  }

  void forward(int m, std::vector<UnitTimes>& spent) {
    const auto all = targets_.count();
    Bundle x = input_;
    for (std::size_t unit = 0; unit < stages_.size(); ++unit)
      spent[unit].forward += time_of([&] {
        const models::MicroBatch id{.step = weights_[unit]->version,
                                    .index = m,
                                    .first_sample = m * request_.micro,
                                    .targets = {.all = all, .counted = all}};
        Tensor targets = stages_[unit].is_last() ? targets_ : Tensor();
        x = stages_[unit].forward(stream_, id, *weights_[unit], std::move(x), std::move(targets));
      });
  }

  void backward_whole(int m, std::vector<UnitTimes>& spent) {
    Bundle dy;
    for (std::size_t unit = stages_.size(); unit-- > 0;)
      spent[unit].backward +=
          time_of([&] { dy = stages_[unit].backward(stream_, m, *weights_[unit], std::move(dy)); });
  }

  void backward_in_halves(int m, std::vector<UnitTimes>& spent) {
    Bundle dy;
    for (std::size_t unit = stages_.size(); unit-- > 0;) {
      spent[unit].backward_input += time_of(
          [&] { dy = stages_[unit].backward_input(stream_, m, *weights_[unit], std::move(dy)); });
      spent[unit].backward_weight +=
          time_of([&] { stages_[unit].backward_weight(stream_, m, *weights_[unit]); });
    }
  }

  void update(std::vector<UnitTimes>& spent) {
    for (std::size_t unit = 0; unit < stages_.size(); ++unit)
      spent[unit].update = time_of([&] {
        auto gradients = models::join(stream_, {stages_[unit].take_gradients()});
        const double norm =
            models::global_norm(optimizers_[unit].squared_norms(stream_, gradients));
        weights_[unit] =
            optimizers_[unit].step(stream_, weights_[unit], std::move(gradients), norm);
      });
  }

  void note(Backward backward, const UnitTimes& spent, UnitTimes& best) const {
    const auto shorten = [&](double UnitTimes::*time) {
      best.*time = std::min(best.*time, spent.*time / micro_batches_);
    };
    shorten(&UnitTimes::forward);
    if (backward == Backward::whole) {
      shorten(&UnitTimes::backward);
    } else {
      shorten(&UnitTimes::backward_input);
      shorten(&UnitTimes::backward_weight);
    }
    best.update = std::min(best.update, spent.update);
  }

  const models::CostRequest& request_;
  int micro_batches_;
  MemoryPool memory_;
  Stream stream_;
  std::vector<Stage> stages_;
  std::vector<models::Optimizer> optimizers_;
  std::vector<models::WeightsPtr> weights_;
  Bundle input_;
  Tensor targets_;
  std::vector<UnitTimes> best_;
};

/// Returns about the most bytes that a trial holds.
std::int64_t bytes_of(const std::vector<models::UnitCosts>& costs) {
  std::int64_t held = 0, room = 0;
  for (const auto& unit : costs) {
    held += unit.held.weight + most_micro_batches * unit.held.gradient + unit.held.optimizer +
            unit.stash;
    room = std::max({room, unit.workspace, unit.held.weight + unit.update_room});
  }
  return held + room;
}

}  // namespace

std::vector<UnitTimes> measure_units(const MeasuredModel& measured,
                                     const MeasuringDevices& devices) {
  const auto& request = measured.request;
  const bool is_on_cores = request.computer == models::Computer::cores &&
                           !kernels::is_on_tensor_cores(request.precision);
  if (!is_on_cores || measured.expected > devices.longest_micro_batch) return {};
  if (bytes_of(measured.costs) > most_bytes / devices.count) return {};
  std::vector<std::vector<UnitTimes>> by_device(static_cast<std::size_t>(devices.count));
  std::latch all_are_warm(devices.count);
  {
    std::vector<std::jthread> threads;
    threads.reserve(by_device.size());
    for (auto& times : by_device)
      threads.emplace_back([&] {
        Trial trial(measured, devices.threads);
        trial.round(Trial::Backward::whole);
        all_are_warm.arrive_and_wait();
        const auto until = Clock::now() + devices.patience;
        for (int i = 0; i < most_rounds && (i < least_rounds || Clock::now() < until); ++i)
          trial.round(i % 2 == 0 ? Trial::Backward::whole : Trial::Backward::in_halves);
        times = trial.best();
      });
  }
  std::vector<UnitTimes> mean(measured.costs.size());
  for (const auto& times : by_device)
    for (std::size_t unit = 0; unit < mean.size(); ++unit)
      for (const auto time : all_times) mean[unit].*time += times[unit].*time / devices.count;
  return mean;
}

std::vector<UnitTimes> measure_units_here(const MeasuredModel& measured, int devices) {
  const int cores = own_machine_share().cores();
  return measure_units(
      measured, {.count = std::min(devices, cores), .threads = std::max(1, cores / devices)});
}

bool takes_seconds_to_measure(const MeasuredModel& measured) {
  return measured.expected > long_micro_batch &&
         measured.expected <= MeasuringDevices().longest_micro_batch;
}

std::vector<UnitTimes> nominal_unit_times(const MeasuredModel& measured) {
  constexpr MeasuringDevices a_core{.longest_micro_batch = 0.02,
                                    .patience = std::chrono::milliseconds(50)};
  auto times = measure_units(measured, a_core);
  if (times.empty()) return {};
  const double speed =
      measure_products(1, measured.request.precision) / nominal_device().rate.operations;
  for (auto& unit : times)
    for (const auto time : all_times) unit.*time *= speed;
  return times;
}

}  // namespace troupe::apps
