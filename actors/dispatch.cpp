#include "actors/dispatch.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <string_view>
#include <utility>

#include "actors/rt.h"
#include "transport/fields.h"

namespace troupe::actors {
namespace {

using transport::required;

// What is put in bytes: numbers of one type, as they lie in memory. All processes of a run are of
// one build and one byte order; their welcome checks that.

template <class T>
std::string bytes_of(std::span<const T> numbers) {
  return {reinterpret_cast<const char*>(numbers.data()), numbers.size_bytes()};
}
template <class T>
Result<std::vector<T>> numbers_of(const std::string& bytes, std::string_view type) {
  if (bytes.size() % sizeof(T) != 0)
    return Error{std::string(type) + ": found " + std::to_string(bytes.size()) +
                 " bytes beside the body, wanted a multiple of " + std::to_string(sizeof(T))};
  std::vector<T> numbers(bytes.size() / sizeof(T));
  std::memcpy(numbers.data(), bytes.data(), bytes.size());
  return numbers;
}

/// Texts that have no line breaks, as one.
template <class Names>
std::string joined(const Names& names) {
  std::string text;
  for (const auto& name : names) text += name + "\n";
  return text;
}
std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t at = 0; at < text.size();) {
    const auto end = std::min(text.find('\n', at), text.size());
    lines.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return lines;
}

/// Tensors of a list of which some may be empty: '1' for each that is there.
class Packing {
 public:
  explicit Packing(std::vector<Tensor>& into) : into_(into) {}
  void add(const Tensor& tensor) {
    mask_ += tensor.empty() ? '0' : '1';
    if (!tensor.empty()) into_.push_back(tensor);
  }
  std::string mask() const { return mask_; }

 private:
  std::vector<Tensor>& into_;
  std::string mask_;
};
class Unpacking {
 public:
  Unpacking(std::string mask, std::vector<Tensor>& from) : mask_(std::move(mask)), from_(from) {}
  Status check(std::string_view type, std::size_t places) const {
    const auto there = static_cast<std::size_t>(std::ranges::count(mask_, '1'));
    if (mask_.size() == places && there == from_.size()) return Done{};
    return Error{std::string(type) + ": found " + std::to_string(from_.size()) + " tensors for " +
                 std::to_string(there) + " of " + std::to_string(mask_.size()) +
                 " places, wanted " + std::to_string(places) + " places"};
  }
  Tensor next() { return mask_[at_++] == '1' ? std::move(from_[taken_++]) : Tensor(); }

 private:
  std::string mask_;
  std::vector<Tensor>& from_;
  std::size_t at_ = 0, taken_ = 0;
};

// How those messages are put that fields() and tensors() alone do not say.

struct PlayWire {
  Round::Purpose purpose = Round::Purpose::training;
  std::int64_t first_step = 0;
  int steps = 1;
  static constexpr auto fields() {
    return std::tuple(required("purpose", &PlayWire::purpose),
                      required("first_step", &PlayWire::first_step).at_least(0),
                      required("steps", &PlayWire::steps).at_least(1));
  }
};

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
  std::vector<int> first_groups;
  std::vector<int> groups;
  int slots = 0;  // Of each sum.
  std::vector<int> statistics;
  std::string mask;
  static constexpr auto fields() {
    return std::tuple(required("step", &SharesWire::step), required("stage", &SharesWire::stage),
                      required("holder", &SharesWire::holder),
                      required("rate_share", &SharesWire::rate_share),
                      required("first_groups", &SharesWire::first_groups).at_least(0),
                      required("groups", &SharesWire::groups).at_least(1),
                      required("slots", &SharesWire::slots).at_least(0),
                      required("statistics", &SharesWire::statistics).at_least(0),
                      required("mask", &SharesWire::mask));
  }
};

struct NormsWire {
  int attempt = 0;
  int optimizer = 0;
  std::int64_t step = 0;
  std::string names;
  std::vector<std::int64_t> first_blocks;
  std::vector<int> blocks;
  static constexpr auto fields() {
    return std::tuple(required("attempt", &NormsWire::attempt),
                      required("optimizer", &NormsWire::optimizer).at_least(0),
                      required("step", &NormsWire::step), required("names", &NormsWire::names),
                      required("first_blocks", &NormsWire::first_blocks).at_least(0),
                      required("blocks", &NormsWire::blocks).at_least(0));
  }
};

struct WeightsWire {
  int stage = 0;
  int section = 0;
  std::int64_t version = 0;
  std::string slots;  // Masks.
  std::string buffers;
  std::vector<int> moments;
  static constexpr auto fields() {
    return std::tuple(required("stage", &WeightsWire::stage),
                      required("section", &WeightsWire::section).at_least(0),
                      required("version", &WeightsWire::version),
                      required("slots", &WeightsWire::slots),
                      required("buffers", &WeightsWire::buffers),
                      required("moments", &WeightsWire::moments).at_least(0));
  }
};

struct LateWire {
  int attempt = 0;
  int stage = 0;
  std::int64_t step = 0;
  std::vector<int> delays;
  static constexpr auto fields() {
    return std::tuple(required("attempt", &LateWire::attempt), required("stage", &LateWire::stage),
                      required("step", &LateWire::step), required("delays", &LateWire::delays));
  }
};

struct LossWire {
  int attempt = 0;
  int replica = 0;
  int device = 0;
  std::int64_t step = 0;
  int index = 0;
  Round::Purpose purpose = Round::Purpose::training;
  Digest samples;
  static constexpr auto fields() {
    return std::tuple(required("attempt", &LossWire::attempt),
                      required("replica", &LossWire::replica),
                      required("device", &LossWire::device), required("step", &LossWire::step),
                      required("index", &LossWire::index), required("purpose", &LossWire::purpose),
                      required("samples", &LossWire::samples));
  }
};

struct PlayedWire {
  int attempt = 0;
  int replica = 0;
  int device = 0;
  std::int64_t first_step = 0;
  Round::Purpose purpose = Round::Purpose::training;
  std::int64_t most_parcels = 0;
  static constexpr auto fields() {
    return std::tuple(
        required("attempt", &PlayedWire::attempt), required("replica", &PlayedWire::replica),
        required("device", &PlayedWire::device), required("first_step", &PlayedWire::first_step),
        required("purpose", &PlayedWire::purpose),
        required("most_parcels", &PlayedWire::most_parcels).at_least(0));
  }
};

struct PulseWire {
  int attempt = 0;
  PlayerId who;
  Wait::On on = Wait::On::nothing;
  std::string what;
  int patiences = 0;
  static constexpr auto fields() {
    return std::tuple(required("attempt", &PulseWire::attempt), required("who", &PulseWire::who),
                      required("on", &PulseWire::on), required("what", &PulseWire::what),
                      required("patiences", &PulseWire::patiences).at_least(0));
  }
};

struct SnapshotWire {
  int attempt = 0;
  int optimizer = 0;
  std::int64_t step = 0;
  std::string weights;
  std::string moments;
  static constexpr auto fields() {
    return std::tuple(
        required("attempt", &SnapshotWire::attempt),
        required("optimizer", &SnapshotWire::optimizer), required("step", &SnapshotWire::step),
        required("weights", &SnapshotWire::weights), required("moments", &SnapshotWire::moments));
  }
};

template <class Wire>
Dispatch dispatch_of(std::string_view type, const Wire& wire) {
  return {std::string(type), transport::to_value(wire), {}, {}};
}

template <class Wire>
Result<Wire> read(const Dispatch& from) {
  return transport::from_value<Wire>(from.body, from.type);
}

Tensor copy_of(const Tensor& tensor, MemoryPool& memory) {
  Tensor copy = Tensor::make(memory, tensor.shape(), tensor.dtype());
  std::memcpy(copy.raw(), tensor.raw(), tensor.bytes());
  return copy;
}

// put() and take() of each message.

template <class Message>
concept Plain = transport::HasFields<Message>;

template <Plain Message>
Dispatch put(const Message& message, MemoryPool&) {
  auto dispatch = dispatch_of(Message::type, message);
  if constexpr (requires { Message::tensors(); })
    std::apply([&](auto... member) { (dispatch.tensors.push_back(message.*member), ...); },
               Message::tensors());
  return dispatch;
}
template <Plain Message>
Result<Message> take(Dispatch& from, const RunSpec&, const Message*) {
  auto message = read<Message>(from);
  if (!message) return message;
  if constexpr (requires { Message::tensors(); }) {
    constexpr auto wanted = std::tuple_size_v<decltype(Message::tensors())>;
    if (from.tensors.size() != wanted)
      return Error{from.type + ": found " + std::to_string(from.tensors.size()) +
                   " tensors, wanted " + std::to_string(wanted)};
    std::size_t i = 0;
    std::apply([&](auto... member) { ((*message.*member = std::move(from.tensors[i++])), ...); },
               Message::tensors());
  }
  return message;
}

Dispatch put(const Play& play, MemoryPool&) {
  return dispatch_of(Play::type, PlayWire{play.round->purpose, play.first_step, play.round->steps});
}
Result<Play> take(Dispatch& from, const RunSpec& spec, const Play*) {
  const auto wire = read<PlayWire>(from);
  if (!wire) return wire.error();
  if (wire->purpose == Round::Purpose::evaluation) return Play{spec.evaluation, wire->first_step};
  return Play{spec.round(wire->first_step, wire->steps), wire->first_step};
}

Dispatch put(const LoanFor& in, MemoryPool&) {
  auto dispatch =
      dispatch_of(LoanFor::type, LoanWire{in.header, in.stage, in.loan.name, in.loan.tag});
  dispatch.tensors.push_back(in.loan.value);
  return dispatch;
}
Result<LoanFor> take(Dispatch& from, const RunSpec&, const LoanFor*) {
  auto wire = read<LoanWire>(from);
  if (!wire) return wire.error();
  if (from.tensors.size() != 1) return Error{from.type + ": wanted one tensor"};
  return LoanFor{
      wire->header, wire->stage, {std::move(wire->name), wire->tag, std::move(from.tensors[0])}};
}

Dispatch put(const StepGradients& in, MemoryPool&) {
  SharesWire wire;
  wire.step = in.step;
  wire.stage = in.stage;
  wire.holder = in.holder;
  wire.rate_share = in.gradients->rate_share;
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
  auto dispatch = dispatch_of(StepGradients::type, wire);
  dispatch.tensors = std::move(tensors);
  return dispatch;
}
Result<StepGradients> take(Dispatch& from, const RunSpec&, const StepGradients*) {
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

Dispatch put(const Norms& in, MemoryPool&) {
  NormsWire wire{in.attempt, in.optimizer, in.step, {}, {}, {}};
  std::vector<std::string> names;
  std::vector<double> values;
  for (const auto& square : in.squares) {
    names.push_back(square.name);
    wire.first_blocks.push_back(square.first_block);
    wire.blocks.push_back(static_cast<int>(square.blocks.size()));
    values.insert(values.end(), square.blocks.begin(), square.blocks.end());
  }
  wire.names = joined(names);
  auto dispatch = dispatch_of(Norms::type, wire);
  dispatch.bytes = bytes_of<double>(values);
  return dispatch;
}
Result<Norms> take(Dispatch& from, const RunSpec&, const Norms*) {
  const auto wire = read<NormsWire>(from);
  if (!wire) return wire.error();
  const auto values = numbers_of<double>(from.bytes, from.type);
  if (!values) return values.error();
  const auto names = lines_of(wire->names);
  const auto wanted = std::accumulate(wire->blocks.begin(), wire->blocks.end(), std::size_t{0});
  if (names.size() != wire->blocks.size() || names.size() != wire->first_blocks.size() ||
      values->size() != wanted)
    return Error{from.type + ": found " + std::to_string(names.size()) + " names and " +
                 std::to_string(values->size()) + " numbers for " + std::to_string(wanted) +
                 " blocks of " + std::to_string(wire->blocks.size()) + " parameters"};
  Norms norms{wire->attempt, wire->optimizer, wire->step, {}};
  auto value = values->begin();
  for (std::size_t i = 0; i < names.size(); ++i) {
    const auto end = value + wire->blocks[i];
    norms.squares.push_back({names[i], {value, end}, wire->first_blocks[i]});
    value = end;
  }
  return norms;
}

Dispatch put(const NewWeights& in, MemoryPool& memory) {
  const auto& weights = *in.version.weights;
  std::vector<Tensor> tensors;
  Packing slots(tensors), buffers(tensors);
  for (const auto& slot : weights.slots) slots.add(slot.value);
  for (const auto& buffer : weights.buffers) buffers.add(buffer);
  WeightsWire wire{in.stage, in.section, weights.version, slots.mask(), buffers.mask(), {}};
  for (const auto& moments : in.version.moments) {
    wire.moments.push_back(static_cast<int>(moments.size()));
    for (const auto& moment : moments) tensors.push_back(copy_of(moment, memory));
  }
  auto dispatch = dispatch_of(NewWeights::type, wire);
  dispatch.tensors = std::move(tensors);
  const std::int64_t times[] = {in.worked.start.time_since_epoch().count(),
                                in.worked.end.time_since_epoch().count()};
  dispatch.bytes = bytes_of<std::int64_t>(times);
  return dispatch;
}
Result<NewWeights> take(Dispatch& from, const RunSpec&, const NewWeights*) {
  const auto wire = read<WeightsWire>(from);
  if (!wire) return wire.error();
  const auto times = numbers_of<std::int64_t>(from.bytes, from.type);
  if (!times) return times.error();
  if (times->size() != 2) return Error{from.type + ": wanted two times"};
  std::string mask = wire->slots + wire->buffers;
  for (const int count : wire->moments) mask.append(static_cast<std::size_t>(count), '1');
  Unpacking unpacking(mask, from.tensors);
  if (auto good = unpacking.check(from.type, mask.size()); !good) return good.error();
  auto weights = std::make_shared<models::Weights>();
  weights->version = wire->version;
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

Dispatch put(const LateGradients& in, MemoryPool&) {
  const auto& metrics = in.metrics;
  auto dispatch =
      dispatch_of(LateGradients::type, LateWire{in.attempt, in.stage, in.step, metrics.delays});
  const double numbers[] = {metrics.gap, metrics.prediction_error, metrics.penalty_mean,
                            metrics.penalty_most};
  dispatch.bytes = bytes_of<double>(numbers);
  return dispatch;
}
Result<LateGradients> take(Dispatch& from, const RunSpec&, const LateGradients*) {
  auto wire = read<LateWire>(from);
  if (!wire) return wire.error();
  const auto numbers = numbers_of<double>(from.bytes, from.type);
  if (!numbers) return numbers.error();
  if (numbers->size() != 4) return Error{from.type + ": wanted four numbers"};
  return LateGradients{
      wire->attempt,
      wire->stage,
      wire->step,
      {std::move(wire->delays), (*numbers)[0], (*numbers)[1], (*numbers)[2], (*numbers)[3]}};
}

Dispatch put(const MicroBatchLoss& in, MemoryPool&) {
  auto dispatch = dispatch_of(
      MicroBatchLoss::type,
      LossWire{in.attempt, in.replica, in.device, in.step, in.index, in.purpose, in.samples});
  dispatch.bytes = bytes_of<double>(std::span(&in.mean, 1));  // It may be no number any more.
  return dispatch;
}
Result<MicroBatchLoss> take(Dispatch& from, const RunSpec&, const MicroBatchLoss*) {
  const auto wire = read<LossWire>(from);
  if (!wire) return wire.error();
  const auto mean = numbers_of<double>(from.bytes, from.type);
  if (!mean) return mean.error();
  if (mean->size() != 1) return Error{from.type + ": wanted one number"};
  return MicroBatchLoss{wire->attempt, wire->replica, wire->device,  wire->step,
                        wire->index,   wire->purpose, mean->front(), wire->samples};
}

/// A DeviceSpan in bytes.
struct SpanBytes {
  schedules::Action action;
  std::int64_t start = 0;
  std::int64_t end = 0;
};
static_assert(std::is_trivially_copyable_v<SpanBytes>);

Dispatch put(const RoundPlayed& in, MemoryPool&) {
  auto dispatch = dispatch_of(
      RoundPlayed::type, PlayedWire{in.attempt, in.replica, in.device, in.first_step, in.purpose,
                                    static_cast<std::int64_t>(in.most_parcels)});
  std::vector<SpanBytes> spans;
  for (const auto& span : *in.spans)
    spans.push_back({span.action, span.time.start.time_since_epoch().count(),
                     span.time.end.time_since_epoch().count()});
  dispatch.bytes = bytes_of<SpanBytes>(spans);
  return dispatch;
}
Result<RoundPlayed> take(Dispatch& from, const RunSpec&, const RoundPlayed*) {
  const auto wire = read<PlayedWire>(from);
  if (!wire) return wire.error();
  const auto bytes = numbers_of<SpanBytes>(from.bytes, from.type);
  if (!bytes) return bytes.error();
  auto spans = std::make_shared<std::vector<DeviceSpan>>();
  const auto time = [](std::int64_t count) {
    return std::chrono::steady_clock::time_point(std::chrono::steady_clock::duration(count));
  };
  for (const auto& span : *bytes)
    spans->push_back({span.action, {time(span.start), time(span.end)}});
  return RoundPlayed{wire->attempt,
                     wire->replica,
                     wire->device,
                     wire->first_step,
                     wire->purpose,
                     std::move(spans),
                     static_cast<std::size_t>(wire->most_parcels)};
}

Dispatch put(const Pulse& in, MemoryPool&) {
  return dispatch_of(Pulse::type,
                     PulseWire{in.attempt, in.who, in.wait.on, in.wait.what, in.patiences});
}
Result<Pulse> take(Dispatch& from, const RunSpec&, const Pulse*) {
  auto wire = read<PulseWire>(from);
  if (!wire) return wire.error();
  return Pulse{wire->attempt, wire->who, {wire->on, std::move(wire->what)}, wire->patiences};
}

Dispatch put(const Snapshot& in, MemoryPool&) {
  std::vector<Tensor> tensors;
  const auto add = [&](const std::vector<NamedTensor>& named) {
    std::vector<std::string> names;
    for (const auto& [name, tensor] : named) {
      names.push_back(name);
      tensors.push_back(tensor);
    }
    return joined(names);
  };
  SnapshotWire wire{in.attempt, in.optimizer, in.step, {}, {}};
  wire.weights = add(in.weights);
  wire.moments = add(in.moments);
  auto dispatch = dispatch_of(Snapshot::type, wire);
  dispatch.tensors = std::move(tensors);
  return dispatch;
}
Result<Snapshot> take(Dispatch& from, const Snapshot*) {
  const auto wire = read<SnapshotWire>(from);
  if (!wire) return wire.error();
  const auto weights = lines_of(wire->weights), moments = lines_of(wire->moments);
  if (weights.size() + moments.size() != from.tensors.size())
    return Error{from.type + ": found " + std::to_string(from.tensors.size()) + " tensors for " +
                 std::to_string(weights.size() + moments.size()) + " names"};
  Snapshot snapshot{wire->attempt, wire->optimizer, wire->step, {}, {}};
  std::size_t i = 0;
  for (const auto& name : weights) snapshot.weights.push_back({name, from.tensors[i++]});
  for (const auto& name : moments) snapshot.moments.push_back({name, from.tensors[i++]});
  return snapshot;
}

Result<Snapshot> take(Dispatch& from, const RunSpec&, const Snapshot* kind) {
  return take(from, kind);
}

/// Whether it was a Message; then `outcome` says whether it was a good one.
template <class Message>
bool deliver_as(Dispatch& dispatch, const RunSpec& spec, const caf::actor& to, Status& outcome) {
  if (dispatch.type != Message::type) return false;
  auto message = take(dispatch, spec, static_cast<const Message*>(nullptr));
  if (message)
    rt::post(to, std::move(*message));
  else
    outcome = message.error();
  return true;
}

template <class... Message>
Status deliver_as_any(Dispatch& dispatch, const RunSpec& spec, const caf::actor& to,
                      std::tuple<Message...>*) {
  Status outcome = Done{};
  const bool known = (deliver_as<Message>(dispatch, spec, to, outcome) || ...);
  if (!known)
    return Error{"found a message of type '" + dispatch.type + "', which no player knows"};
  return outcome;
}

}  // namespace

template <class Message>
Dispatch to_dispatch(const Message& message, MemoryPool& memory) {
  return put(message, memory);
}

template Dispatch to_dispatch(const Play&, MemoryPool&);
template Dispatch to_dispatch(const Activation&, MemoryPool&);
template Dispatch to_dispatch(const Targets&, MemoryPool&);
template Dispatch to_dispatch(const Gradient&, MemoryPool&);
template Dispatch to_dispatch(const LoanFor&, MemoryPool&);
template Dispatch to_dispatch(const Taken&, MemoryPool&);
template Dispatch to_dispatch(const StepGradients&, MemoryPool&);
template Dispatch to_dispatch(const Norms&, MemoryPool&);
template Dispatch to_dispatch(const Decision&, MemoryPool&);
template Dispatch to_dispatch(const NewWeights&, MemoryPool&);
template Dispatch to_dispatch(const StepDone&, MemoryPool&);
template Dispatch to_dispatch(const LateGradients&, MemoryPool&);
template Dispatch to_dispatch(const MicroBatchLoss&, MemoryPool&);
template Dispatch to_dispatch(const RoundPlayed&, MemoryPool&);
template Dispatch to_dispatch(const Pulse&, MemoryPool&);
template Dispatch to_dispatch(const TakeSnapshot&, MemoryPool&);
template Dispatch to_dispatch(const Snapshot&, MemoryPool&);

Result<Snapshot> to_snapshot(Dispatch dispatch) {
  return take(dispatch, static_cast<const Snapshot*>(nullptr));
}

Status deliver(Dispatch dispatch, const RunSpec& spec, const caf::actor& to) {
  return deliver_as_any(dispatch, spec, to, static_cast<Travelling*>(nullptr));
}

}  // namespace troupe::actors
