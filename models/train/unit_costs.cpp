#include "models/train/unit_costs.h"

#include <algorithm>
#include <map>
#include <new>
#include <set>
#include <utility>

#include "kernels/rounding.h"
#include "kernels/steps.h"
#include "models/layers/parts.h"
#include "models/train/account.h"
#include "models/train/trained.h"
#include "models/train/update_rule.h"

namespace troupe::models {
namespace {

// More than any machine holds, yet small enough that no product of sizes overflows.
constexpr double most_numbers = 1e13;

std::int64_t block_bytes(const Shape& shape) {
  const auto bytes = shape.count() * static_cast<std::int64_t>(sizeof(float));
  return static_cast<std::int64_t>(MemoryPool::size_of_block(static_cast<std::size_t>(bytes)));
}

double numbers(const Shape& shape) {
  double product = 1;
  for (const auto size : shape) product *= static_cast<double>(size);
  return product;
}

Status check_sizes(const Model& model, const CostRequest& request) {
  const double samples = static_cast<double>(request.micro) * numbers(request.input);
  for (const auto& unit : model.units) {
    for (const auto& parameter : unit.layer->parameters()) {
      double widest = 1;
      for (const auto size : parameter.shape) widest = std::max(widest, static_cast<double>(size));
      if (std::max(numbers(parameter.shape), samples * widest) > most_numbers)
        return Error{
            "the parameter " + parameter.name + " " + to_string(parameter.shape) +
            " with micro-batches of " + std::to_string(request.micro) +
            " samples makes tensors of more than 10^13 numbers, which no device holds; use "
            "a smaller model or smaller micro-batches"};
    }
  }
  return Done{};
}

/// Returns the GPU for precisions that need tensor cores.
Computer computer_of(const CostRequest& request) {
  return kernels::is_on_tensor_cores(request.precision) ? Computer::gpu : request.computer;
}

/// The bundles before and behind a unit.
struct Bundles {
  const std::vector<BundlePart>& before;
  const std::vector<BundlePart>& behind;
  std::vector<int> taken;            // Numbers of the kept values before the unit.
  std::vector<int> given;            // Numbers of the kept values behind it.
  std::vector<int> given_gradients;  // Numbers of these with gradients.

  const Shape& given_shape(int number) const {
    const auto place = std::ranges::find(given, number) - given.begin();
    return behind[static_cast<std::size_t>(place) + 1].shape;
  }
};

/// A dry run of one unit, with the loss if it is the last, that measures its costs.
class Rehearsal {
 public:
  Rehearsal(const Model& model, std::size_t unit, const CostRequest& request)
      : model_(model),
        request_(request),
        is_first_(unit == 0),
        is_last_(unit + 1 == model.units.size()),
        lasting_(computer_of(request)),
        passing_(computer_of(request)) {
    parts_.add(*model.units[unit].layer);
    if (is_last_) parts_.add(*model.loss);
    parts_.freeze(model.frozen);
    trains_before_ = model.trains_before(static_cast<int>(unit));
    costs_.name = model.units[unit].name;
  }

  /// `given` is the type of the previous unit's output; `is_kept` says if that unit keeps it.
  UnitCosts run(const Bundles& bundles, DType given, bool is_kept) {
    const Shape& input = bundles.before[0].shape;
    KeptShapes shapes(model_.kept.size());
    for (std::size_t i = 0; i < bundles.taken.size(); ++i)
      shapes[static_cast<std::size_t>(bundles.taken[i])] = bundles.before[i + 1].shape;
    costs_.work = trained_work(parts_.work_with(input, shapes));
    Optimizer optimizer(request_.optimizer, parts_.parameters(), parts_.buffers(),
                        request_.precision,
                        {.staleness = request_.staleness, .delay = 0, .borrowed = {}});
    const auto weights = optimizer.initial(lasting_.stream, 0);
    costs_.held.weight = lasting_.held();
    StageGradients gradients;
    for (const auto& parameter : parts_.parameters())
      gradients.slots.push_back(parameter.frozen ? Tensor()
                                                 : lasting_.stream.make(parameter.shape));
    costs_.held.gradient = lasting_.held() - costs_.held.weight;
    // Stages exchange fp32. Within a stage, activations have the type that the layer chose.
    const DType first_given = is_first_ ? model_.sample.input_type : DType::f32;
    PassCosts alone;
    gradients.statistics.push_back(
        pass(passing_, *weights, bundles, first_given, gradients.slots, alone));
    costs_.statistics = passing_.held();
    PassCosts amid = alone;
    if (!is_first_ && given != first_given) {
      Account account(computer_of(request_));
      pass(account, *weights, bundles, given, gradients.slots, amid);
    }
    gives_ = amid.gives;
    keeps_output_ = amid.keeps_output;
    costs_.boundary = alone.input;
    for (std::size_t i = 0; i < bundles.before.size(); ++i) {
      const auto& part = bundles.before[i];
      const auto bytes = part.shape.count() * static_cast<std::int64_t>(bytes_of(part.type));
      if (i > 0) costs_.boundary_kept += bytes;
      if (trains_before_ && part.has_gradient) costs_.boundary_back += bytes;
    }
    held_ = std::move(alone.held);
    costs_.stash = alone.stash;
    costs_.stash_input = alone.stash_input;
    costs_.stash_shared = std::max<std::int64_t>(
        0, alone.stash - amid.stash + (is_kept && amid.keeps_input ? amid.stash_stream : 0));
    costs_.stash_weight = std::max(alone.stash_weight, amid.stash_weight);
    costs_.workspace = std::max(alone.peak - alone.stash, amid.peak - amid.stash);
    update(optimizer, weights, std::move(gradients));
    return std::move(costs_);
  }

  /// Return the type of the unit's output within a stage, and whether the unit keeps that output.
  DType gives() const { return gives_; }
  bool keeps_output() const { return keeps_output_; }

  /// A kept value that the unit's layers save. If another unit made it, its bytes are not in this
  /// unit's stash.
  struct Held {
    int number = 0;
    std::int64_t bytes = 0;
    bool is_made_here = false;
    bool is_in_halves = false;  // Also between the halves of the backward pass.
    const MemoryBlock* block = nullptr;
  };
  const std::vector<Held>& held() const { return held_; }

 private:
  /// Bytes of a micro-batch.
  struct PassCosts {
    std::int64_t input = 0, stash_stream = 0, stash_input = 0, stash = 0, stash_weight = 0,
                 peak = 0;
    bool keeps_input = false, keeps_output = false;
    DType gives = DType::f32;
    std::vector<Held> held{};
  };

  /// Runs forward and backward. Returns the micro-batch's statistics for the buffers.
  std::vector<Tensor> pass(Account& account, const Weights& weights, const Bundles& bundles,
                           DType given, std::vector<Tensor>& gradients, PassCosts& costs) {
    Stream& stream = account.stream;
    const auto shrinks_without = [&](Tensor& tensor) {
      const auto before = account.held();
      tensor = {};
      return account.held() < before;
    };
    const Shape& input = bundles.before[0].shape;
    Tensor x = stream.make(input, given);
    costs.input = static_cast<std::int64_t>(x.bytes());
    costs.stash_stream = account.held();
    Frame frame{.values = std::vector<Tensor>(model_.kept.size()),
                .gradients = std::vector<Tensor>(model_.kept.size())};
    make_taken(stream, bundles, frame, costs);
    costs.stash_input = account.held();
    Tensor targets;
    if (is_last_)
      targets = stream.make(with_batch(request_.micro, request_.target), model_.sample.target_type);

    const Pass pass{.stream = stream,
                    .precision = request_.precision,
                    .key = {},
                    .targets = targets,
                    .frame = &frame};
    const Layer::In in{
        .pass = pass,
        .weights = weights.slots,
        .buffers = weights.buffers,
        .input_gradient = is_first_ ? InputGradient::unwanted : InputGradient::wanted,
        .frozen = parts_.frozen()};
    std::vector<Tensor> saved(static_cast<std::size_t>(parts_.saved()));
    std::vector<Tensor> statistics(parts_.buffers().size());
    Tensor y = x;
    for (int i = 0; i < parts_.count(); ++i)
      y = parts_.forward(i, of_part(in, i), std::move(y), saved, statistics);
    for (int number = 0; number < static_cast<int>(frame.values.size()); ++number) {
      Tensor value = std::exchange(frame.values[static_cast<std::size_t>(number)], {});
      const bool is_taken = std::ranges::count(bundles.taken, number) > 0;
      if (value.empty() || !has_block(saved, value.block())) continue;
      costs.held.push_back(
          {.number = number,
           .bytes = static_cast<std::int64_t>(MemoryPool::size_of_block(value.bytes())),
           .is_made_here = !is_taken,
           .block = value.block()});
    }
    const Shape output = y.shape();
    costs.gives = y.dtype();
    costs.keeps_input = !shrinks_without(x);
    // The losses stay until the step has summed them. Another output goes to the next unit, or in
    // fp32 to the next stage.
    if (!is_last_) {
      kernels::as_type(stream, y, DType::f32);
      costs.keeps_output = !shrinks_without(y);
    }
    costs.stash = account.held();
    for (const auto& held : costs.held)
      if (!held.is_made_here) costs.stash -= held.bytes;

    for (const int number : bundles.given_gradients)
      frame.gradients[static_cast<std::size_t>(number)] = stream.make(bundles.given_shape(number));
    Tensor dy;
    if (!is_last_) dy = stream.make(output);
    for (int i = parts_.count() - 1; i >= 0; --i)
      dy = parts_.backward_input(i, of_part(in, i), std::move(dy), saved);
    const DType type = dy.empty() ? DType::f32 : dy.dtype();
    const bool has_gradient = !dy.empty();
    dy = {};
    std::vector<Shape> sent;
    for (auto& gradient : frame.gradients) {
      if (!gradient.empty()) sent.push_back(gradient.shape());
      gradient = {};
    }
    costs.stash_weight = account.held();
    for (auto& held : costs.held) {
      held.is_in_halves = has_block(saved, held.block);
      if (held.is_in_halves && !held.is_made_here) costs.stash_weight -= held.bytes;
    }
    if (has_gradient) dy = stream.make(input, type);
    std::vector<Tensor> back;
    for (const auto& shape : sent) back.push_back(stream.make(shape));
    for (int i = parts_.count() - 1; i >= 0; --i)
      parts_.backward_weight(i, of_part(in, i), saved, gradients);
    if (has_gradient) kernels::as_type(stream, dy, DType::f32);
    costs.peak = account.peak();
    return statistics;
  }

  /// Makes the kept values that the unit receives.
  static void make_taken(Stream& stream, const Bundles& bundles, Frame& frame, PassCosts& costs) {
    for (std::size_t i = 0; i < bundles.taken.size(); ++i) {
      const auto& part = bundles.before[i + 1];
      Tensor& value = frame.values[static_cast<std::size_t>(bundles.taken[i])];
      value = stream.make(part.shape, part.type);
      costs.input += static_cast<std::int64_t>(value.bytes());
    }
  }

  static bool has_block(const std::vector<Tensor>& saved, const MemoryBlock* block) {
    return std::ranges::any_of(saved,
                               [&](const Tensor& tensor) { return tensor.block() == block; });
  }

  /// Returns the share of a unit's work that training does. Products with weights are most of it,
  /// so the gradients of weights count by the numbers that are trained.
  Work trained_work(Work work) const {
    double all = 0, trained = 0;
    for (const auto& parameter : parts_.parameters()) {
      all += numbers(parameter.shape);
      if (!parameter.frozen) trained += numbers(parameter.shape);
    }
    if (trained == all) return work;
    for (auto& kernel : work.backward_weight) {
      kernel.operations *= trained / all;
      kernel.bytes *= trained / all;
    }
    if (trained == 0) work.backward_weight.clear();
    if (trained == 0 && !trains_before_) work.backward_input.clear();
    return work;
  }

  Layer::In of_part(Layer::In in, int part) const {
    if (part > 0) in.input_gradient = InputGradient::wanted;
    return in;
  }

  std::int64_t frozen_bytes() const {
    if (parts_.frozen().empty()) return 0;
    auto frozen = parts_.parameters();
    std::erase_if(frozen, [](const Parameter& parameter) { return !parameter.frozen; });
    Account account(computer_of(request_));
    const auto weights = Optimizer(request_.optimizer, std::move(frozen), {}, request_.precision)
                             .initial(account.stream, 0);
    return account.held();
  }

  void update(Optimizer& optimizer, const WeightsPtr& weights, StageGradients gradients) {
    const auto next = optimizer.step(lasting_.stream, weights, std::move(gradients), 1);
    // Both versions share frozen parameters.
    costs_.held.optimizer = lasting_.held() - 2 * costs_.held.weight + frozen_bytes();
    costs_.update_room = std::max<std::int64_t>(
        0, lasting_.peak() - costs_.held.weight - costs_.held.gradient - costs_.held.optimizer);
  }

  const Model& model_;
  const CostRequest& request_;
  bool is_first_, is_last_;
  bool trains_before_ = true;
  Parts parts_;
  UnitCosts costs_;
  Account lasting_;  // Weights, gradients, moments.
  Account passing_;  // Tensors of a micro-batch.
  DType gives_ = DType::f32;
  bool keeps_output_ = false;
  std::vector<Held> held_;
};

/// Charges the kept values that units save: each to the first of them, and to a stage that begins
/// behind that one. What stays between the halves of the backward pass is charged likewise.
void charge_held(const std::vector<std::vector<Rehearsal::Held>>& held,
                 std::vector<UnitCosts>& all) {
  struct Saved {
    std::size_t first = 0, last = 0;
    bool is_made_there = false;  // The first unit made it and has the bytes.
    std::int64_t bytes = 0;
  };
  const auto charge = [&](const std::map<int, Saved>& values, std::int64_t UnitCosts::*own,
                          std::int64_t UnitCosts::*if_first) {
    for (const auto& [number, saved] : values)
      for (auto unit = saved.first; unit <= saved.last; ++unit) {
        if (unit > saved.first)
          all[unit].*if_first += saved.bytes;
        else if (!saved.is_made_there)
          all[unit].*own += saved.bytes;
      }
  };
  std::map<int, Saved> values, in_halves;
  for (std::size_t unit = 0; unit < held.size(); ++unit)
    for (const auto& value : held[unit]) {
      const Saved begins{.first = unit, .is_made_there = value.is_made_here};
      auto& saved = values.try_emplace(value.number, begins).first->second;
      saved.last = unit;
      saved.bytes = value.bytes;
      if (!value.is_in_halves) continue;
      auto& halves = in_halves.try_emplace(value.number, begins).first->second;
      halves.last = unit;
      halves.bytes = value.bytes;
    }
  charge(values, &UnitCosts::stash, &UnitCosts::stash_shared);
  for (const auto& [number, saved] : values)  // `stash` is that of a stage that begins here.
    for (auto unit = saved.first + 1; unit <= saved.last; ++unit) all[unit].stash += saved.bytes;
  charge(in_halves, &UnitCosts::stash_weight, &UnitCosts::stash_weight_shared);
}

/// Returns the operations that make a matrix orthogonal: five times x x^T, its square, and that
/// times x.
double orthogonal_operations(const Parameter& parameter) {
  const auto rows = static_cast<double>(parameter.shape[0]);
  const double columns = numbers(parameter.shape) / rows;
  const double side = std::min(rows, columns), inner = std::max(rows, columns);
  return 5 * (4 * side * side * inner + 2 * side * side * side);
}

/// Moves the costs of parameters that an earlier unit has, too, from `held` to `ties`.
void settle_ties(const Model& model, const Layer& unit, const CostRequest& request,
                 const std::map<std::string, int>& users, std::set<std::string>& seen,
                 UnitCosts& costs) {
  std::set<std::string> own;
  for (const auto& parameter : unit.parameters()) {
    if (!own.insert(parameter.name).second) continue;
    const bool is_frozen = model.frozen.contains(parameter.name);
    const auto config = request.optimizer.for_parameter(parameter.name);
    const UpdateRule& rule = rule_for(config, request.staleness, parameter);
    const auto kept =
        is_frozen ? 0
                  : static_cast<std::int64_t>(moment_names(rule, config, request.staleness).size());
    const std::int64_t count = parameter.shape.count();
    const auto uncut = rule.wants_whole ? count : std::min(count, kernels::block_of_sums);
    costs.uncut_moments =
        std::max(costs.uncut_moments, uncut * static_cast<std::int64_t>(sizeof(float)) * kept);
    if (&rule == &muon_rule && !is_frozen)
      costs.orthogonal_operations += orthogonal_operations(parameter);
    ParameterBytes* tie = nullptr;
    if (users.at(parameter.name) > 1)
      tie = &costs.ties.emplace_back(UnitCosts::Tie{.name = parameter.name}).bytes;
    if (seen.insert(parameter.name).second) {
      costs.parameters += parameter.shape.count();
      continue;
    }
    const std::int64_t bytes = block_bytes(parameter.shape);
    const auto moments = bytes * kept;
    costs.held.weight -= bytes;
    tie->weight += bytes;
    costs.held.optimizer -= moments;
    tie->optimizer += moments;
    if (!is_frozen) tie->gradient += bytes;
    costs.update_room = std::max<std::int64_t>(0, costs.update_room - bytes);
  }
}

std::map<std::string, int> users_of_parameters(const Model& model) {
  std::map<std::string, int> users;
  for (const auto& unit : model.units) {
    std::set<std::string> own;
    for (const auto& parameter : unit.layer->parameters())
      if (own.insert(parameter.name).second) ++users[parameter.name];
  }
  return users;
}

}  // namespace

Result<std::vector<UnitCosts>> unit_costs(const Model& model, const CostRequest& request) {
  if (auto good = check_sizes(model, request); !good) return good.error();
  const auto users = users_of_parameters(model);
  std::set<std::string> seen;
  std::vector<UnitCosts> all;
  const auto bundles = bundles_of(model, with_batch(request.micro, request.input));
  std::vector<std::vector<Rehearsal::Held>> held;
  DType given = model.sample.input_type;
  bool is_kept = false;
  try {
    for (std::size_t i = 0; i < model.units.size(); ++i) {
      Rehearsal rehearsal(model, i, request);
      const int unit = static_cast<int>(i);
      UnitCosts costs = rehearsal.run({.before = bundles[i],
                                       .behind = bundles[i + 1],
                                       .taken = kept_across(model, unit),
                                       .given = kept_across(model, unit + 1),
                                       .given_gradients = gradients_across(model, unit + 1)},
                                      given, is_kept);
      held.push_back(rehearsal.held());
      given = rehearsal.gives();
      is_kept = rehearsal.keeps_output();
      const Layer& layer = *model.units[i].layer;
      settle_ties(model, layer, request, users, seen, costs);
      costs.update_bytes = static_cast<double>(2 * costs.held.weight + costs.held.gradient +
                                               2 * costs.held.optimizer);
      all.push_back(std::move(costs));
    }
    charge_held(held, all);
  } catch (const std::bad_alloc&) {
    return too_few_addresses();
  }
  return all;
}

}  // namespace troupe::models
