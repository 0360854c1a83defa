#include "apps/run/memory_file.h"

#include <algorithm>

#include "apps/events/json_lines.h"
#include "core/json.h"

namespace troupe::apps {
namespace {

using schedules::Holding;
using schedules::RunMemory;

// Bounds for a file's numbers: no run has a million devices or an exbibyte.
constexpr std::int64_t most_in_a_run = 1 << 20;
constexpr std::int64_t most_held = std::int64_t{1} << 60;

Status take_plan(const Value& value, RunMemory& memory) {
  const Value* run = value.find("run");
  const Value* plan = value.find("plan");
  const Value* devices = value.find("devices");
  if (!run || !run->text() || !plan || !plan->text() || !devices || !devices->integer())
    return Error{"expected run, plan and devices"};
  if (*devices->integer() < 1 || *devices->integer() > most_in_a_run)
    return Error{"devices = " + std::to_string(*devices->integer()) + ": wanted 1 to " +
                 std::to_string(most_in_a_run)};
  memory.run = *run->text();
  memory.plan = *plan->text();
  memory.devices = static_cast<int>(*devices->integer());
  return Done{};
}

Result<Holding> holding_of(const Value& value, const RunMemory& memory) {
  const Value* device = value.find("device");
  const Value* stage = value.find("stage");
  const Value* unit = value.find("unit");
  const Value* held = value.find("held");
  const Value* bytes = value.find("bytes");
  if (!device || !device->integer() || !stage || !stage->integer() || (unit && !unit->text()) ||
      !held || !held->text() || !bytes || !bytes->integer())
    return Error{"expected device, stage, unit, held and bytes"};
  const auto found = std::ranges::find(schedules::all_held, *held->text(),
                                       [](schedules::Held one) { return name_of(one); });
  if (found == schedules::all_held.end())
    return Error{"held = \"" + *held->text() +
                 "\": wanted weights, gradients, optimizer, activations or buffers"};
  if (*device->integer() < 0 || *device->integer() >= memory.devices)
    return Error{"there is no device " + std::to_string(*device->integer())};
  if (*stage->integer() < 0 || *stage->integer() >= most_in_a_run)
    return Error{"there is no stage " + std::to_string(*stage->integer())};
  if (*bytes->integer() < 0 || *bytes->integer() > most_held)
    return Error{"bytes = " + std::to_string(*bytes->integer()) + ": wanted 0 to " +
                 std::to_string(most_held)};
  return Holding{.device = static_cast<int>(*device->integer()),
                 .stage = static_cast<int>(*stage->integer()),
                 .unit = unit ? *unit->text() : "",
                 .held = *found,
                 .bytes = *bytes->integer()};
}

}  // namespace

Status write_memory(storage::Files& files, const std::string& path, const RunMemory& memory) {
  Value plan;
  plan.set("run", memory.run);
  plan.set("plan", memory.plan);
  plan.set("devices", memory.devices);
  std::string text = to_json(plan) + "\n";
  for (const Holding& holding : memory.holdings) {
    Value line;
    line.set("device", holding.device);
    line.set("stage", holding.stage);
    if (!holding.unit.empty()) line.set("unit", holding.unit);
    line.set("held", name_of(holding.held));
    line.set("bytes", holding.bytes);
    text += to_json(line) + "\n";
  }
  return storage::replace_file(files, path, text);
}

Result<RunMemory> read_memory(storage::Files& files, const std::string& path) {
  RunMemory memory;
  const auto read = each_json_line(files, path, [&](int line, const Value& value) -> Status {
    if (line == 1) return take_plan(value, memory);
    auto holding = holding_of(value, memory);
    if (!holding) return holding.error();
    memory.holdings.push_back(std::move(*holding));
    return Done{};
  });
  if (!read) return read.error();
  if (memory.devices == 0) return Error{path + ": it is empty"};
  return memory;
}

}  // namespace troupe::apps
