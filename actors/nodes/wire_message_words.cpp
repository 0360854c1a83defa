#include <numeric>
#include <type_traits>

#include "actors/nodes/wire_message_parts.h"

// Encodes the messages that contain only words and numbers.
namespace troupe::actors {

using transport::required;

namespace {

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

struct NormsWire {
  int optimizer = 0;
  std::int64_t step = 0;
  std::string names;
  std::vector<std::int64_t> first_blocks;
  std::vector<int> blocks;
  static constexpr auto fields() {
    return std::tuple(required("optimizer", &NormsWire::optimizer).at_least(0),
                      required("step", &NormsWire::step), required("names", &NormsWire::names),
                      required("first_blocks", &NormsWire::first_blocks).at_least(0),
                      required("blocks", &NormsWire::blocks).at_least(0));
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
  Digest content;
  std::int64_t counted = 0;
  static constexpr auto fields() {
    return std::tuple(
        required("attempt", &LossWire::attempt), required("replica", &LossWire::replica),
        required("device", &LossWire::device), required("step", &LossWire::step),
        required("index", &LossWire::index), required("purpose", &LossWire::purpose),
        required("samples", &LossWire::samples), required("content", &LossWire::content),
        required("counted", &LossWire::counted).at_least(0));
  }
};

struct PlayedWire {
  int attempt = 0;
  int replica = 0;
  int device = 0;
  std::int64_t first_step = 0;
  Round::Purpose purpose = Round::Purpose::training;
  std::int64_t most_parcels = 0;
  std::vector<int> held_up;
  static constexpr auto fields() {
    return std::tuple(
        required("attempt", &PlayedWire::attempt), required("replica", &PlayedWire::replica),
        required("device", &PlayedWire::device), required("first_step", &PlayedWire::first_step),
        required("purpose", &PlayedWire::purpose),
        required("most_parcels", &PlayedWire::most_parcels).at_least(0),
        transport::optional("held_up", &PlayedWire::held_up).at_least(0));
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

/// A DeviceSpan as raw bytes.
struct SpanBytes {
  schedules::Action action;
  std::int64_t start = 0;
  std::int64_t end = 0;
};
static_assert(std::is_trivially_copyable_v<SpanBytes>);

}  // namespace

WireMessage put(const Play& play, MemoryPool&) {
  return wire_message_of(Play::type,
                         PlayWire{play.round->purpose, play.first_step, play.round->steps});
}
Result<Play> take(WireMessage& from, const RunSpec& spec, const Play*) {
  const auto wire = read<PlayWire>(from);
  if (!wire) return wire.error();
  if (wire->purpose == Round::Purpose::evaluation) return Play{spec.evaluation, wire->first_step};
  return Play{spec.round(wire->first_step, wire->steps), wire->first_step};
}

WireMessage put(const Norms& in, MemoryPool&) {
  NormsWire wire{in.optimizer, in.step, {}, {}, {}};
  std::vector<std::string> names;
  std::vector<double> values;
  for (const auto& square : in.squares) {
    names.push_back(square.name);
    wire.first_blocks.push_back(square.first_block);
    wire.blocks.push_back(static_cast<int>(square.blocks.size()));
    values.insert(values.end(), square.blocks.begin(), square.blocks.end());
  }
  wire.names = joined(names);
  auto wire_message = wire_message_of(Norms::type, wire);
  wire_message.bytes = bytes_of<double>(values);
  return wire_message;
}
Result<Norms> take(WireMessage& from, const RunSpec&, const Norms*) {
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
  Norms norms{wire->optimizer, wire->step, {}};
  auto value = values->begin();
  for (std::size_t i = 0; i < names.size(); ++i) {
    const auto end = value + wire->blocks[i];
    norms.squares.push_back({names[i], {value, end}, wire->first_blocks[i]});
    value = end;
  }
  return norms;
}

WireMessage put(const LateGradients& in, MemoryPool&) {
  const auto& metrics = in.metrics;
  auto wire_message =
      wire_message_of(LateGradients::type, LateWire{in.attempt, in.stage, in.step, metrics.delays});
  const double numbers[] = {metrics.gap, metrics.prediction_error, metrics.penalty_mean,
                            metrics.penalty_most};
  wire_message.bytes = bytes_of<double>(numbers);
  return wire_message;
}
Result<LateGradients> take(WireMessage& from, const RunSpec&, const LateGradients*) {
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

WireMessage put(const MicroBatchLoss& in, MemoryPool&) {
  auto wire_message = wire_message_of(MicroBatchLoss::type,
                                      LossWire{in.attempt, in.replica, in.device, in.step, in.index,
                                               in.purpose, in.samples, in.content, in.counted});
  wire_message.bytes = bytes_of<double>(std::span(&in.mean, 1));  // In bytes, since it may be NaN.
  return wire_message;
}
Result<MicroBatchLoss> take(WireMessage& from, const RunSpec&, const MicroBatchLoss*) {
  const auto wire = read<LossWire>(from);
  if (!wire) return wire.error();
  const auto mean = numbers_of<double>(from.bytes, from.type);
  if (!mean) return mean.error();
  if (mean->size() != 1) return Error{from.type + ": wanted one number"};
  return MicroBatchLoss{wire->attempt, wire->replica, wire->device,  wire->step,    wire->index,
                        wire->purpose, mean->front(), wire->samples, wire->content, wire->counted};
}

WireMessage put(const RoundPlayed& in, MemoryPool&) {
  auto wire_message = wire_message_of(
      RoundPlayed::type, PlayedWire{in.attempt, in.replica, in.device, in.first_step, in.purpose,
                                    static_cast<std::int64_t>(in.most_parcels), in.held_up});
  std::vector<SpanBytes> spans;
  for (const auto& span : *in.spans)
    spans.push_back({span.action, span.time.start.time_since_epoch().count(),
                     span.time.end.time_since_epoch().count()});
  wire_message.bytes = bytes_of<SpanBytes>(spans);
  return wire_message;
}
Result<RoundPlayed> take(WireMessage& from, const RunSpec&, const RoundPlayed*) {
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
                     static_cast<std::size_t>(wire->most_parcels),
                     wire->held_up};
}

WireMessage put(const Pulse& in, MemoryPool&) {
  return wire_message_of(Pulse::type,
                         PulseWire{in.attempt, in.who, in.wait.on, in.wait.what, in.patiences});
}
Result<Pulse> take(WireMessage& from, const RunSpec&, const Pulse*) {
  auto wire = read<PulseWire>(from);
  if (!wire) return wire.error();
  return Pulse{wire->attempt, wire->who, {wire->on, std::move(wire->what)}, wire->patiences};
}

}  // namespace troupe::actors
