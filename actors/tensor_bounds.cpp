#include "actors/tensor_bounds.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string_view>
#include <utility>

#include "actors/exchange.h"
#include "kernels/steps.h"
#include "models/train/section.h"
#include "models/train/shared_parameters.h"
#include "models/train/stage.h"
#include "models/train/trained.h"
#include "models/train/update_rule.h"

namespace troupe::actors {
namespace {

std::string form_text(const Tensor& tensor) {
  return tensor.empty() ? "nothing" : to_string(TensorForm{tensor.shape(), tensor.dtype()});
}

TensorForm form_of(const models::Parameter& parameter) { return {parameter.shape, parameter.type}; }

Error unlike(const std::string& what, const std::string& found, const std::string& wanted) {
  return Error{"found " + what + " as " + found + ", wanted " + wanted};
}

bool has_form(const Tensor& tensor, const TensorForm& form) {
  return !tensor.empty() && tensor.dtype() == form.type && tensor.shape() == form.shape;
}

/// Returns what numbers have that is out of bounds, or nothing.
std::string fault_of(const Tensor& tensor, const TensorForm& form, const std::string& what) {
  if (form.numbers) return out_of_bounds(tensor.numbers<float>(), *form.numbers, what);
  const auto numbers = tensor.numbers<std::int32_t>();
  if (!form.ignored) return out_of_bounds(numbers, form.bounds, what);
  std::vector<std::int32_t> counted(numbers.begin(), numbers.end());
  std::erase(counted, *form.ignored);
  return out_of_bounds(counted, form.bounds, what);
}

std::string of_stage(int stage) { return " of stage " + std::to_string(stage); }

std::string from_holder(const StepGradients& message) {
  return " from holder " + std::to_string(message.holder) + of_stage(message.stage);
}

}  // namespace

std::string to_string(const TensorForm& form) {
  return std::string(to_string(form.type)) + " " + to_string(form.shape);
}

bool fits(const Tensor& tensor, const TensorForm& form) {
  if (!has_form(tensor, form)) return false;
  return !form.has_bounds() || (tensor.place().is_host() && fault_of(tensor, form, {}).empty());
}

Status check(const Tensor& tensor, const TensorForm& form, const std::string& what) {
  if (fits(tensor, form)) return Done{};
  if (!has_form(tensor, form)) return unlike(what, form_text(tensor), to_string(form));
  if (!tensor.place().is_host()) return unlike(what, "a tensor of a device", "one of the host");
  return Error{"found " + fault_of(tensor, form, what)};
}

Status check(const models::Bundle& bundle, const BundleForm& form, const std::string& what) {
  if (auto good = check(bundle.stream, form.stream, what); !good) return good;
  if (bundle.kept.size() != form.kept.size())
    return unlike(what, "a stream and " + std::to_string(bundle.kept.size()) + " kept values",
                  std::to_string(form.kept.size()) + " kept values");
  for (std::size_t i = 0; i < form.kept.size(); ++i)
    if (auto good =
            check(bundle.kept[i], form.kept[i].form, what + ", kept value " + form.kept[i].name);
        !good)
      return good;
  return Done{};
}

std::shared_ptr<const BatchForms> BatchForms::of(const RunSpec& spec, const Source& source) {
  if (!source) return nullptr;
  const auto batch = source.inputs->shape();
  auto forms = std::make_shared<BatchForms>();
  forms->targets = {batch.target, batch.target_type};
  if (batch.target_type == DType::f32) {
    forms->targets.numbers = spec.model->sample.target_bounds;
  } else {
    forms->targets.bounds.below = spec.model->classes;
    forms->targets.ignored = spec.model->ignore;
  }
  const auto bundles = models::bundles_of(*spec.model, batch.input);
  for (const auto& stage : spec.stages) {
    const auto& parts = bundles[static_cast<std::size_t>(stage.first)];
    auto& input = forms->inputs.emplace_back();
    input.stream = {parts[0].shape, stage.first == 0 ? batch.input_type : parts[0].type,
                    parts[0].bounds};
    for (std::size_t i = 1; i < parts.size(); ++i)
      input.kept.push_back(
          {parts[i].name, {parts[i].shape, parts[i].type, parts[i].bounds}, parts[i].has_gradient});
  }
  return forms;
}

TensorBounds::TensorBounds(const RunSpec& spec) : spec_(spec) {
  const auto add = [&](const Source& source) {
    auto forms = BatchForms::of(spec, source);
    const auto is_same = [&](const auto& known) {
      return known->inputs[0].stream.shape == forms->inputs[0].stream.shape &&
             known->targets.shape == forms->targets.shape;
    };
    if (forms && std::ranges::none_of(batches_, is_same)) batches_.push_back(std::move(forms));
  };
  add(spec.batches);
  add(spec.validation);
  const auto usual = spec.round(0, 1);
  groups_ = usual->groups;
  for (int stage = 0; stage < static_cast<int>(spec.stages.size()); ++stage) {
    auto& shares = shares_.emplace_back();
    for (const auto& holder : holders_of(*usual, stage)) shares.push_back(holder.share);
    const auto index = static_cast<std::size_t>(stage);
    wants_gradient_.push_back(spec.model->trains_before(spec.stages[index].last));
  }
  const auto sets = models::GradientSets::of(spec.optimizer, spec.staleness);
  sets_ = sets.count;
  raw_set_ = sets.raw;
  for (auto& shared : models::shared_parameters(*spec.model, spec.stages)) {
    const auto [first, last] = spec.stages[static_cast<std::size_t>(shared.stages[0])];
    for (int unit = first; unit < last; ++unit)
      for (const auto& one : spec.model->units[static_cast<std::size_t>(unit)].layer->parameters())
        if (one.name == shared.name)
          shared_.emplace(shared.name, Shared{shared.stages, form_of(one)});
  }
  optimizers_.resize(static_cast<std::size_t>(optimizers_of(spec)));
  gradients_.resize(optimizers_.size());
}

int TensorBounds::owner_of(const std::string& parameter) const {
  const auto found = shared_.find(parameter);
  return found == shared_.end() ? -1 : found->second.stages[0];
}

const OptimizerForms& TensorBounds::of(int optimizer) const {
  const std::lock_guard lock(mutex_);
  auto& forms = optimizers_.at(static_cast<std::size_t>(optimizer));
  if (!forms) forms = make_forms(optimizer);
  return *forms;
}

const GradientForms& TensorBounds::gradients_for(int optimizer) const {
  const std::lock_guard lock(mutex_);
  auto& forms = gradients_.at(static_cast<std::size_t>(optimizer));
  if (!forms) forms = make_gradients(optimizer);
  return *forms;
}

std::unique_ptr<const OptimizerForms> TensorBounds::make_forms(int optimizer) const {
  const auto [stage, number] = place_of(spec_, optimizer);
  const models::Stage passes(*spec_.model, spec_.stages[static_cast<std::size_t>(stage)], {});
  const auto& section =
      spec_.sections[static_cast<std::size_t>(stage)][static_cast<std::size_t>(number)];
  auto forms = std::make_unique<OptimizerForms>();
  const auto pieces = models::parameters_of(section, passes.parameters());
  for (const auto& piece : pieces) {
    forms->slots.push_back(form_of(piece));
    forms->frozen.push_back(piece.frozen);
  }
  for (const auto& slots : models::owned_slots(pieces, {})) {
    const auto& piece = pieces[slots[0]];
    auto& parameter = forms->parameters.emplace_back();
    parameter.name = piece.name;
    parameter.form = form_of(piece);
    parameter.frozen = piece.frozen;
    if (piece.frozen) continue;
    const auto config = spec_.optimizer.for_parameter(piece.name);
    const auto& rule = models::rule_for(config, spec_.staleness, piece);
    for (const auto moment : models::moment_names(rule, config, spec_.staleness))
      parameter.moments.push_back(piece.name + "." + std::string(moment));
    parameter.first_block = piece.first / kernels::block_of_sums;
    parameter.blocks = kernels::blocks_of_sums(piece.shape.count());
  }
  forms->has_buffers = section.has_buffers;
  if (section.has_buffers)
    for (const auto& buffer : passes.buffers())
      forms->buffers.push_back({buffer.name, {buffer.shape, DType::f32}});
  return forms;
}

std::unique_ptr<const GradientForms> TensorBounds::make_gradients(int optimizer) const {
  auto forms = std::make_unique<GradientForms>();
  for (const auto& giving : given_to(spec_, optimizer)) {
    auto& given = (*forms)[giving.stage];
    const models::Stage user(*spec_.model, spec_.stages[static_cast<std::size_t>(giving.stage)],
                             {});
    for (const auto& piece : models::parameters_of(giving.section, user.parameters()))
      given.push_back(piece.frozen ? std::nullopt : std::optional(form_of(piece)));
  }
  return forms;
}

template <class Value, class FormOf>
Status TensorBounds::check_batch(const Value& value, const std::string& what,
                                 FormOf form_of) const {
  if (batches_.empty()) return Error{"found " + what + ", but the run has no data"};
  Status first = Done{};
  for (const auto& forms : batches_) {
    auto outcome = actors::check(value, form_of(*forms), what);
    if (outcome) return outcome;
    if (first) first = std::move(outcome);
  }
  return first;
}

Status TensorBounds::check(const Activation& message) const {
  const auto stage = static_cast<std::size_t>(message.stage);
  return check_batch(message.value, "the input" + of_stage(message.stage),
                     [&](const BatchForms& forms) { return forms.inputs[stage]; });
}

Status TensorBounds::check(const Targets& message) const {
  return check_batch(message.value, "targets",
                     [](const BatchForms& forms) { return forms.targets; });
}

/// The gradient of an output has the form of the next stage's input. An evaluation has none.
Status TensorBounds::check(const Gradient& message) const {
  const auto next = static_cast<std::size_t>(message.stage) + 1;
  const auto what = "the gradient of the output" + of_stage(message.stage);
  if (batches_.empty() || next >= spec_.stages.size())
    return Error{"found " + what + ", which has none"};
  if (!wants_gradient_[next - 1])
    return message.value.empty() ? Status(Done{})
                                 : Status(Error{"found " + what + ", which nothing before needs"});
  BundleForm wanted = batches_[0]->inputs[next];
  std::erase_if(wanted.kept, [](const BundleForm::Kept& kept) { return !kept.has_gradient; });
  return actors::check(message.value, wanted, what);
}

Status TensorBounds::check(const LoanFor& message) const {
  const auto found = shared_.find(message.loan.name);
  const bool is_borrower = found != shared_.end() && message.stage != found->second.stages[0] &&
                           std::ranges::count(found->second.stages, message.stage) > 0;
  if (!is_borrower)
    return Error{"found a parameter that stage " + std::to_string(message.stage) +
                 " does not borrow"};
  return actors::check(message.loan.value, found->second.form,
                       message.loan.name + " for stage " + std::to_string(message.stage));
}

Status TensorBounds::check_buffers(const std::vector<Tensor>& tensors, const OptimizerForms& forms,
                                   const std::string& what) const {
  if (tensors.size() != forms.buffers.size())
    return unlike(what, std::to_string(tensors.size()) + " tensors",
                  std::to_string(forms.buffers.size()));
  for (std::size_t i = 0; i < tensors.size(); ++i)
    if (const auto& [name, form] = forms.buffers[i]; !fits(tensors[i], form))
      return actors::check(tensors[i], form, name + " of " + what);
  return Done{};
}

Status TensorBounds::check_sum(const StepGradients& message, const models::PartialSum& sum,
                               int optimizer) const {
  const auto& wanted = gradients_for(optimizer).at(message.stage);
  const auto from = from_holder(message);
  const auto sets = static_cast<std::size_t>(sets_);
  if (sum.slots.size() != wanted.size() && sum.slots.size() != wanted.size() * sets)
    return unlike("gradients" + from, std::to_string(sum.slots.size()) + " tensors",
                  std::to_string(wanted.size()) +
                      (sets == 1 ? "" : " or " + std::to_string(wanted.size() * sets)));
  const bool is_own = message.stage == place_of(spec_, optimizer).stage;
  const bool has_raw = is_own || models::divides_by_gap_factor(spec_.staleness);
  for (std::size_t i = 0; i < sum.slots.size(); ++i) {
    const auto slot = i % wanted.size();
    const auto set = static_cast<int>(i / wanted.size());
    // Remedies for late gradients leave the places empty that they do not need.
    const bool is_needed = set == 0 || (set == raw_set_ && has_raw);
    if (sum.slots[i].empty() && (!is_needed || !wanted[slot])) continue;
    if (!wanted[slot])
      return Error{"found gradient " + std::to_string(i) + from + " of a frozen parameter"};
    if (fits(sum.slots[i], *wanted[slot])) continue;
    return actors::check(sum.slots[i], *wanted[slot], "gradient " + std::to_string(i) + from);
  }
  return Done{};
}

Status TensorBounds::check(const StepGradients& message, int optimizer) const {
  const auto& forms = of(optimizer);
  const auto from = from_holder(message);
  if (!gradients_for(optimizer).contains(message.stage))
    return Error{"found gradients" + from + ", which gives none to optimizer " +
                 std::to_string(optimizer)};
  const auto& given = *message.gradients;
  if (!(given.rate_share > 0 && given.rate_share <= 1))
    return Error{"found a share of the learning rate of " + std::to_string(given.rate_share) +
                 from + ", wanted more than 0, and 1 at most"};
  const auto& share =
      shares_[static_cast<std::size_t>(message.stage)][static_cast<std::size_t>(message.holder)];
  std::int64_t next = given.sums.empty() ? 0 : given.sums[0].first_group;
  for (const auto& sum : given.sums) {
    const std::int64_t end = std::int64_t{sum.first_group} + sum.groups;
    if (sum.first_group != next || sum.first_group < 0 || sum.groups < 1 || end > groups_)
      return Error{"found gradients of groups " + std::to_string(sum.first_group) + " to " +
                   std::to_string(end - 1) + from + ", wanted groups of 0 to " +
                   std::to_string(groups_ - 1) + " one after another"};
    next = end;
    if (auto good = check_sum(message, sum, optimizer); !good) return good;
  }
  const bool is_own = message.stage == place_of(spec_, optimizer).stage;
  const auto most = is_own && forms.has_buffers ? static_cast<std::size_t>(share.count()) : 0;
  if (given.statistics.size() > most)
    return Error{"found statistics of " + std::to_string(given.statistics.size()) +
                 " micro-batches" + from + ", wanted " + std::to_string(most) + " at most"};
  for (const auto& statistics : given.statistics)
    if (auto good = check_buffers(statistics, forms, "statistics" + from); !good) return good;
  return Done{};
}

/// The sums of squares of one optimizer's gradients, from this optimizer to another one.
Status TensorBounds::check(const Norms& message, int optimizer) const {
  const auto from = " from optimizer " + std::to_string(message.optimizer);
  const auto with = clipped_with(spec_, optimizer);
  if (std::ranges::count(with, message.optimizer) == 0)
    return Error{"found norms" + from + ", with which optimizer " + std::to_string(optimizer) +
                 " does not clip"};
  auto wanted = of(message.optimizer).parameters;
  std::erase_if(wanted, [](const auto& parameter) { return parameter.frozen; });
  const bool are_known = std::ranges::equal(
      message.squares, wanted, [](const models::SquaredNorm& found, const auto& parameter) {
        return found.name == parameter.name && found.first_block == parameter.first_block &&
               static_cast<std::int64_t>(found.blocks.size()) == parameter.blocks;
      });
  if (!are_known)
    return Error{"found norms of " + std::to_string(message.squares.size()) + " parameters" + from +
                 ", wanted those of its own " + std::to_string(wanted.size()) +
                 " parameters, block by block"};
  const auto can_be = [&](double sum) {
    return std::isfinite(sum) ? sum >= 0 : spec_.loss_scaling.is_on();
  };
  for (const auto& square : message.squares)
    for (const double sum : square.blocks)
      if (!can_be(sum))
        return Error{"found " + std::to_string(sum) + " as the square of a norm" + from};
  return Done{};
}

Status TensorBounds::check(const NewWeights& message) const {
  const int optimizer = optimizer_of(spec_, {message.stage, message.section});
  const auto& forms = of(optimizer);
  const auto from = " from section " + std::to_string(message.section) + of_stage(message.stage);
  const auto& [weights, moments] = message.version;
  if (weights->slots.size() != forms.slots.size())
    return unlike("weights" + from, std::to_string(weights->slots.size()) + " tensors",
                  std::to_string(forms.slots.size()));
  for (std::size_t i = 0; i < forms.slots.size(); ++i)
    if (const auto& value = weights->slots[i].value;
        !fits(value, forms.slots[i]) && !(value.empty() && forms.frozen[i]))
      return actors::check(value, forms.slots[i], "weight " + std::to_string(i) + from);
  if (auto good = check_buffers(weights->buffers, forms, "buffers" + from); !good) return good;
  auto trained = forms.parameters;
  std::erase_if(trained, [](const auto& parameter) { return parameter.frozen; });
  const auto of_how_many = stages_use_moments(spec_) ? trained.size() : 0;
  if (moments.size() != of_how_many)
    return unlike("moments" + from, "those of " + std::to_string(moments.size()) + " parameters",
                  "those of " + std::to_string(of_how_many));
  for (std::size_t i = 0; i < moments.size(); ++i) {
    const auto& parameter = trained[i];
    // Averages of weights stay with the optimizer.
    const std::size_t published = parameter.moments.size() - (spec_.optimizer.ema > 0 ? 1 : 0);
    const auto wanted = weights->version == 0 ? 0 : published;
    if (moments[i].size() != wanted)
      return unlike("moments of " + parameter.name + from,
                    std::to_string(moments[i].size()) + " tensors", std::to_string(wanted));
    for (std::size_t k = 0; k < wanted; ++k)
      if (!fits(moments[i][k], parameter.form))
        return actors::check(moments[i][k], parameter.form, parameter.moments[k] + from);
  }
  return Done{};
}

Status TensorBounds::check(const Snapshot& state) const {
  const auto& forms = of(state.optimizer);
  const auto of_state = " in the state of optimizer " + std::to_string(state.optimizer);
  std::map<std::string_view, const TensorForm*> weights, moments;
  for (const auto& parameter : forms.parameters) {
    weights.emplace(parameter.name, &parameter.form);
    if (state.step > 0)
      for (const auto& moment : parameter.moments) moments.emplace(moment, &parameter.form);
  }
  for (const auto& buffer : forms.buffers) weights.emplace(buffer.name, &buffer.form);
  const auto check_all = [&](const std::vector<NamedTensor>& tensors, auto wanted) -> Status {
    for (const auto& [name, tensor] : tensors) {
      const auto found = wanted.find(name);
      if (found == wanted.end()) return Error{"found " + name + of_state + " once too often"};
      if (!fits(tensor, *found->second))
        return actors::check(tensor, *found->second, name + of_state);
      if (!tensor.place().is_host())
        return unlike(name + of_state, "a tensor of a device", "one of the host");
      wanted.erase(found);
    }
    if (wanted.empty()) return Done{};
    return Error{"found no " + std::string(wanted.begin()->first) + of_state};
  };
  if (auto good = check_all(state.weights, std::move(weights)); !good) return good;
  return check_all(state.moments, std::move(moments));
}

Status fit_together(const std::vector<const models::GradientShare*>& shares) {
  int next = 0;
  std::size_t slots = 0;
  for (std::size_t holder = 0; holder < shares.size(); ++holder) {
    const auto from = " from holder " + std::to_string(holder);
    const auto& share = *shares[holder];
    if (share.rate_share != shares[0]->rate_share)
      return Error{"found a step of another length" + from + " than from holder 0"};
    for (const auto& sum : share.sums) {
      if (sum.first_group != next)
        return Error{"found gradients that begin with group " + std::to_string(sum.first_group) +
                     from + ", wanted group " + std::to_string(next)};
      if (next == 0) slots = sum.slots.size();
      if (sum.slots.size() != slots)
        return unlike("gradients" + from, std::to_string(sum.slots.size()) + " tensors",
                      std::to_string(slots) + " as from others");
      next += sum.groups;
    }
  }
  if (next == 0) return Error{"found no gradients from any holder"};
  return Done{};
}

}  // namespace troupe::actors
