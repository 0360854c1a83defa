#include "actors/checkpoints.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <set>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "actors/exchange.h"
#include "actors/loss_scale_wire.h"

namespace troupe::actors {
namespace {

template <class Load>
Result<std::vector<NamedTensor>> load_all(const std::vector<storage::TensorView>& views,
                                          Load load) {
  std::vector<NamedTensor> tensors;
  tensors.reserve(views.size());
  for (const auto& view : views) {
    auto tensor = load(view.name);
    if (!tensor) return tensor.error();
    tensors.push_back({view.name, std::move(*tensor)});
  }
  return tensors;
}

constexpr std::string_view loss_scale_key = "loss_scale";

/// Returns the parameter of a moment: "h.0.ln_1.weight" for "h.0.ln_1.weight.m".
std::string_view parameter_of(std::string_view moment) {
  return moment.substr(0, moment.rfind('.'));
}

std::map<std::string, Shape, std::less<>> shapes_of(const models::Model& model) {
  std::map<std::string, Shape, std::less<>> shapes;
  for (const auto& unit : model.units)
    for (const auto& parameter : unit.layer->parameters())
      shapes.emplace(parameter.name, parameter.shape);
  return shapes;
}

/// A run without loss scaling stores no loss scale, unless it skipped a step.
Result<models::LossScale> loss_scale_in(const Value& state) {
  const Value* told = state.find(loss_scale_key);
  if (!told) return models::LossScale();
  const auto wire = transport::from_value<LossScaleWire>(*told, loss_scale_key);
  if (!wire) return wire.error();
  return wire->scale();
}

/// Joins consecutive pieces of the same name. Whole tensors stay where they are.
template <class ParameterOf>
std::vector<NamedTensor> put_together(std::vector<NamedTensor> pieces,
                                      const std::map<std::string, Shape, std::less<>>& shapes,
                                      ParameterOf parameter_of, MemoryPool& memory) {
  std::vector<NamedTensor> whole;
  for (auto piece = pieces.begin(); piece != pieces.end();) {
    const auto end = std::find_if(
        piece, pieces.end(), [&](const NamedTensor& other) { return other.name != piece->name; });
    if (end - piece == 1) {
      whole.push_back(std::move(*piece++));
      continue;
    }
    const std::string name = piece->name;
    const auto fail = [&](const std::string& why) {
      throw std::runtime_error("the parts of " + name + " do not fit together: " + why);
    };
    const auto shape = shapes.find(parameter_of(name));
    if (shape == shapes.end()) fail("the model has no such parameter");
    Tensor tensor = Tensor::make(memory, shape->second, piece->tensor.dtype());
    auto rest = tensor.host_bytes();
    for (; piece != end; ++piece) {
      const auto bytes = piece->tensor.host_bytes();
      if (piece->tensor.dtype() != tensor.dtype()) fail("their types differ");
      if (bytes.size() > rest.size()) fail("they have too many bytes");
      std::ranges::copy(bytes, rest.begin());
      rest = rest.subspan(bytes.size());
    }
    if (!rest.empty()) fail(std::to_string(rest.size()) + " bytes are missing");
    whole.push_back({name, std::move(tensor)});
  }
  return whole;
}

}  // namespace

Result<StartPoint> checkpoint_of(storage::Files& files, const std::string& root, std::int64_t step,
                                 MemoryPool& memory) {
  const auto checkpoint =
      storage::Checkpoint::open(files, root + "/" + storage::step_directory(step));
  if (!checkpoint) return checkpoint.error();
  return start_point(*checkpoint, memory);
}

namespace {

MemoryPool& memory_of_states(const RunSpec& spec) {
  return spec.memory(0, 0, spec.evaluation->devices());
}

}  // namespace

std::function<Result<StartPoint>(std::int64_t step)> loading(RunSpecPtr spec,
                                                             std::optional<StartPoint> first) {
  return
      [spec = std::move(spec), first = std::move(first)](std::int64_t step) -> Result<StartPoint> {
        if (first && first->step == step) return *first;
        return spec->checkpoints->load(step, memory_of_states(*spec));
      };
}

Result<StartPoint> start_point(const storage::Checkpoint& checkpoint, MemoryPool& memory) {
  auto weights = load_all(checkpoint.weights(), [&](const std::string& name) {
    return checkpoint.load_weight(name, memory);
  });
  if (!weights) return weights.error();
  auto moments = load_all(checkpoint.optimizer(), [&](const std::string& name) {
    return checkpoint.load_optimizer(name, memory);
  });
  if (!moments) return moments.error();
  auto loss_scale = loss_scale_in(checkpoint.manifest().state);
  if (!loss_scale) return within(checkpoint.directory(), loss_scale.error());
  return StartPoint{checkpoint.manifest().step, std::move(*weights), std::move(*moments),
                    *loss_scale};
}

StartPoint part_of(const StartPoint& start, const RunSpec& spec, int optimizer) {
  const auto [stage, number] = place_of(spec, optimizer);
  const auto index = static_cast<std::size_t>(stage);
  const models::Stage passes(*spec.model, spec.stages[index], {});
  const auto& section = spec.sections[index][static_cast<std::size_t>(number)];
  std::map<std::string_view, models::Section::Piece> pieces;
  for (const auto& piece : section.pieces)
    pieces.emplace(passes.parameters()[piece.slot].name, piece);
  std::set<std::string_view> buffers;
  if (section.has_buffers)
    for (const auto& buffer : passes.buffers()) buffers.insert(buffer.name);

  StartPoint part{start.step, {}, {}, start.loss_scale};
  const auto add = [&](const NamedTensor& tensor, std::string_view parameter, auto& to) {
    const auto found = pieces.find(parameter);
    if (found == pieces.end()) return;
    const auto& [slot, first, count] = found->second;
    // A tensor of another shape is passed on: the optimizer will report it.
    const bool fits = tensor.tensor.shape() == passes.parameters()[slot].shape;
    to.push_back(
        {tensor.name, fits ? models::piece_of(tensor.tensor, found->second) : tensor.tensor});
  };
  for (const auto& weight : start.weights) {
    add(weight, weight.name, part.weights);
    if (buffers.contains(weight.name)) part.weights.push_back(weight);
  }
  for (const auto& moment : start.moments) add(moment, parameter_of(moment.name), part.moments);
  return part;
}

storage::CheckpointContent checkpoint_content(const RunSpec& spec, std::int64_t step,
                                              std::vector<Snapshot> snapshots, MemoryPool& memory) {
  storage::CheckpointContent content;
  content.step = step;
  content.samples = step * spec.samples_in_step;
  content.recipe = spec.recipe;
  content.model = spec.model_description;
  std::ranges::sort(snapshots, {}, &Snapshot::optimizer);
  if (spec.loss_scaling.is_on() || snapshots[0].loss_scale.skipped_steps > 0)
    content.state.set(std::string(loss_scale_key),
                      transport::to_value(LossScaleWire::of(snapshots[0].loss_scale)));
  for (auto& part : snapshots) {
    std::ranges::move(part.weights, std::back_inserter(content.weights));
    std::ranges::move(part.moments, std::back_inserter(content.optimizer));
  }
  // The stable sort keeps pieces of one name in order.
  std::ranges::stable_sort(content.weights, {}, &NamedTensor::name);
  std::ranges::stable_sort(content.optimizer, {}, &NamedTensor::name);
  const auto shapes = shapes_of(*spec.model);
  const auto whole = [](const std::string& name) { return std::string_view(name); };
  content.weights = put_together(std::move(content.weights), shapes, whole, memory);
  content.optimizer = put_together(std::move(content.optimizer), shapes, parameter_of, memory);
  return content;
}

}  // namespace troupe::actors
