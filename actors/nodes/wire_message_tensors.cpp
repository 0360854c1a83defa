#include <numeric>

#include "actors/loss_scale_wire.h"
#include "actors/nodes/wire_message_parts.h"

// Encodes the messages that contain lists of tensors.
namespace troupe::actors {

using transport::required;

namespace {

struct LoanWire {
  Header header;
  int stage = 0;
  std::string name;
  std::int64_t tag = 0;
  static constexpr auto fields() {
    return std::tuple(required("header", &LoanWire::header), required("stage", &LoanWire::stage),
                      required("name", &LoanWire::name), required("tag", &LoanWire::tag));
  }
};

struct SharesWire {
  std::int64_t step = 0;
  int stage = 0;
  int holder = 0;
  double rate_share = 1;
  std::int64_t targets = 0;
  std::int64_t counted = 0;
  std::vector<int> first_groups;
  std::vector<int> groups;
  int slots = 0;  // Per sum.
  std::vector<int> statistics;
  std::string mask;
  static constexpr auto fields() {
    return std::tuple(required("step", &SharesWire::step), required("stage", &SharesWire::stage),
                      required("holder", &SharesWire::holder),
                      required("rate_share", &SharesWire::rate_share),
                      required("targets", &SharesWire::targets).at_least(0),
                      required("counted", &SharesWire::counted).at_least(0),
                      required("first_groups", &SharesWire::first_groups).at_least(0),
                      required("groups", &SharesWire::groups).at_least(1),
                      required("slots", &SharesWire::slots).at_least(0),
                      required("statistics", &SharesWire::statistics).at_least(0),
                      required("mask", &SharesWire::mask));
  }
};

struct WeightsWire {
  int stage = 0;
  int section = 0;
  std::int64_t version = 0;
  LossScaleWire loss_scale;
  std::string slots;  // A mask, like `buffers`.
  std::string buffers;
  std::vector<int> moments;
  static constexpr auto fields() {
    return std::tuple(required("stage", &WeightsWire::stage),
                      required("section", &WeightsWire::section).at_least(0),
                      required("version", &WeightsWire::version),
                      required("loss_scale", &WeightsWire::loss_scale),
                      required("slots", &WeightsWire::slots),
                      required("buffers", &WeightsWire::buffers),
                      required("moments", &WeightsWire::moments).at_least(0));
  }
};

struct SnapshotWire {
  int attempt = 0;
  int optimizer = 0;
  std::int64_t step = 0;
  std::string weights;
  std::string moments;
  LossScaleWire loss_scale;
  static constexpr auto fields() {
    return std::tuple(
        required("attempt", &SnapshotWire::attempt),
        required("optimizer", &SnapshotWire::optimizer), required("step", &SnapshotWire::step),
        required("weights", &SnapshotWire::weights), required("moments", &SnapshotWire::moments),
        required("loss_scale", &SnapshotWire::loss_scale));
  }
};

/// Copies a tensor in host memory. One on a device is copied anyway when it is brought to the host.
Tensor copy_of(const Tensor& tensor, MemoryPool& memory) {
  if (!tensor.place().is_host()) return tensor;
  Tensor copy = Tensor::make(memory, tensor.shape(), tensor.dtype());
  std::ranges::copy(tensor.host_bytes(), copy.host_bytes().begin());
  return copy;
}

}  // namespace

WireMessage put(const LoanFor& in, MemoryPool&) {
  auto wire_message =
      wire_message_of(LoanFor::type, LoanWire{in.header, in.stage, in.loan.name, in.loan.tag});
  wire_message.tensors.push_back(in.loan.value);
  return wire_message;
}
Result<LoanFor> take(WireMessage& from, const RunSpec&, const LoanFor*) {
  auto wire = read<LoanWire>(from);
  if (!wire) return wire.error();
  if (from.tensors.size() != 1) return Error{from.type + ": wanted one tensor"};
  return LoanFor{
      wire->header, wire->stage, {std::move(wire->name), wire->tag, std::move(from.tensors[0])}};
}

WireMessage put(const StepGradients& in, MemoryPool&) {
  SharesWire wire;
  wire.step = in.step;
  wire.stage = in.stage;
  wire.holder = in.holder;
  wire.rate_share = in.gradients->rate_share;
  wire.targets = in.gradients->targets.all;
  wire.counted = in.gradients->targets.counted;
  std::vector<Tensor> tensors;
  Packing packing(tensors);
  for (const auto& sum : in.gradients->sums) {
    wire.first_groups.push_back(sum.first_group);
    wire.groups.push_back(sum.groups);
    wire.slots = static_cast<int>(sum.slots.size());
    for (const auto& slot : sum.slots) packing.add(slot);
  }
  for (const auto& statistics : in.gradients->statistics) {
    wire.statistics.push_back(static_cast<int>(statistics.size()));
    for (const auto& statistic : statistics) packing.add(statistic);
  }
  wire.mask = packing.mask();
  auto wire_message = wire_message_of(StepGradients::type, wire);
  wire_message.tensors = std::move(tensors);
  return wire_message;
}
Result<StepGradients> take(WireMessage& from, const RunSpec&, const StepGradients*) {
  const auto wire = read<SharesWire>(from);
  if (!wire) return wire.error();
  if (wire->first_groups.size() != wire->groups.size())
    return Error{from.type + ": found " + std::to_string(wire->first_groups.size()) +
                 " first groups for " + std::to_string(wire->groups.size()) + " sums"};
  std::size_t places = wire->groups.size() * static_cast<std::size_t>(wire->slots);
  for (const int count : wire->statistics) places += static_cast<std::size_t>(count);
  Unpacking unpacking(wire->mask, from.tensors);
  if (auto good = unpacking.check(from.type, places); !good) return good.error();
  auto share = std::make_shared<models::GradientShare>();
  share->rate_share = wire->rate_share;
  share->targets = {.all = wire->targets, .counted = wire->counted};
  for (std::size_t i = 0; i < wire->groups.size(); ++i) {
    models::PartialSum sum{wire->first_groups[i], wire->groups[i], {}};
    for (int slot = 0; slot < wire->slots; ++slot) sum.slots.push_back(unpacking.next());
    share->sums.push_back(std::move(sum));
  }
  for (const int count : wire->statistics) {
    auto& statistics = share->statistics.emplace_back();
    for (int i = 0; i < count; ++i) statistics.push_back(unpacking.next());
  }
  return StepGradients{wire->step, wire->stage, wire->holder, std::move(share)};
}

WireMessage put(const NewWeights& in, MemoryPool& memory) {
  const auto& weights = *in.version.weights;
  std::vector<Tensor> tensors;
  Packing slots(tensors), buffers(tensors);
  for (const auto& slot : weights.slots) slots.add(slot.value);
  for (const auto& buffer : weights.buffers) buffers.add(buffer);
  WeightsWire wire{in.stage,
                   in.section,
                   weights.version,
                   LossScaleWire::of(weights.loss_scale),
                   slots.mask(),
                   buffers.mask(),
                   {}};
  for (const auto& moments : in.version.moments) {
    wire.moments.push_back(static_cast<int>(moments.size()));
    for (const auto& moment : moments) tensors.push_back(copy_of(moment, memory));
  }
  auto wire_message = wire_message_of(NewWeights::type, wire);
  wire_message.tensors = std::move(tensors);
  const std::int64_t times[] = {in.worked.start.time_since_epoch().count(),
                                in.worked.end.time_since_epoch().count()};
  wire_message.bytes = bytes_of<std::int64_t>(times);
  return wire_message;
}
Result<NewWeights> take(WireMessage& from, const RunSpec&, const NewWeights*) {
  const auto wire = read<WeightsWire>(from);
  if (!wire) return wire.error();
  const auto times = numbers_of<std::int64_t>(from.bytes, from.type);
  if (!times) return times.error();
  if (times->size() != 2) return Error{from.type + ": wanted two times"};
  std::string mask = wire->slots + wire->buffers;
  const auto moments_told =
      std::accumulate(wire->moments.begin(), wire->moments.end(), std::size_t{0});
  // Allocate nothing by a number that the sender chose.
  if (moments_told > from.tensors.size())
    return Error{from.type + ": found " + std::to_string(from.tensors.size()) + " tensors, but " +
                 std::to_string(moments_told) + " moments are told"};
  mask.append(moments_told, '1');
  Unpacking unpacking(mask, from.tensors);
  if (auto good = unpacking.check(from.type, mask.size()); !good) return good.error();
  auto weights = std::make_shared<models::Weights>();
  weights->version = wire->version;
  weights->loss_scale = wire->loss_scale.scale();
  for (std::size_t i = 0; i < wire->slots.size(); ++i)
    weights->slots.push_back({unpacking.next(), {}});
  for (std::size_t i = 0; i < wire->buffers.size(); ++i)
    weights->buffers.push_back(unpacking.next());
  models::Moments moments;
  for (const int count : wire->moments) {
    auto& of_one = moments.emplace_back();
    for (int i = 0; i < count; ++i) of_one.push_back(unpacking.next());
  }
  const auto time = [&](std::size_t i) {
    return std::chrono::steady_clock::time_point(std::chrono::steady_clock::duration((*times)[i]));
  };
  return NewWeights{
      wire->stage, wire->section, {std::move(weights), std::move(moments)}, {time(0), time(1)}};
}

WireMessage put(const Snapshot& in, MemoryPool&) {
  std::vector<Tensor> tensors;
  const auto add = [&](const std::vector<NamedTensor>& named) {
    std::vector<std::string> names;
    for (const auto& [name, tensor] : named) {
      names.push_back(name);
      tensors.push_back(tensor);
    }
    return joined(names);
  };
  SnapshotWire wire{in.attempt, in.optimizer, in.step, {}, {}, LossScaleWire::of(in.loss_scale)};
  wire.weights = add(in.weights);
  wire.moments = add(in.moments);
  auto wire_message = wire_message_of(Snapshot::type, wire);
  wire_message.tensors = std::move(tensors);
  return wire_message;
}
Result<Snapshot> to_snapshot(WireMessage from) {
  const auto wire = read<SnapshotWire>(from);
  if (!wire) return wire.error();
  const auto weights = lines_of(wire->weights), moments = lines_of(wire->moments);
  if (weights.size() + moments.size() != from.tensors.size())
    return Error{from.type + ": found " + std::to_string(from.tensors.size()) + " tensors for " +
                 std::to_string(weights.size() + moments.size()) + " names"};
  Snapshot snapshot{wire->attempt, wire->optimizer, wire->step, {}, {}, wire->loss_scale.scale()};
  std::size_t i = 0;
  for (const auto& name : weights) snapshot.weights.push_back({name, from.tensors[i++]});
  for (const auto& name : moments) snapshot.moments.push_back({name, from.tensors[i++]});
  return snapshot;
}

Result<Snapshot> take(WireMessage& from, const RunSpec&, const Snapshot*) {
  return to_snapshot(std::move(from));
}

WireMessage put(const StateCopy& in, MemoryPool& memory) {
  auto wire_message = put(in.state, memory);
  wire_message.type = StateCopy::type;
  wire_message.body.set("line", in.line);
  return wire_message;
}
Result<StateCopy> take(WireMessage& from, const RunSpec&, const StateCopy*) {
  const Value* line = from.body.find("line");
  if (!line || !line->integer()) return Error{from.type + ": names no line"};
  const auto number = *line->integer();
  auto state = to_snapshot(std::move(from));
  if (!state) return state.error();
  return StateCopy{std::move(*state), number};
}

}  // namespace troupe::actors
