#include <cstdio>
#include <cstring>
#include <string>

#include "apps/command.h"
#include "apps/commands/usage.h"
#include "apps/events/terminal_width.h"
#include "apps/run/schedule_file.h"
#include "core/json.h"
#include "core/text.h"
#include "schedules/check/check.h"
#include "schedules/formats/blocks.h"
#include "schedules/formats/csv.h"
#include "schedules/formats/json_form.h"
#include "schedules/formats/svg.h"
#include "schedules/formats/trace.h"
#include "schedules/generators/registry.h"
#include "schedules/operators.h"
#include "schedules/search/search.h"
#include "schedules/simulate/simulate.h"
#include "schedules/text.h"

namespace troupe::apps {
namespace {

namespace sched = troupe::schedules;

struct ScheduleArguments {
  std::string name;
  int stages = 4;
  int micro_batches = 8;
  int chunks = 1;
  std::string costs = "1,1,1,0";
  std::string format = "auto";
  std::string check;
  double cap = 0;
  bool updates = false;
  bool search = false;
  bool list = false;
};

/// F,I,W,HOP: the times of a device's share of the model, and of a message between two devices.
struct DeviceTimes {
  double forward, input, weight, hop;
};

Result<DeviceTimes> parse_times(const std::string& text) {
  double numbers[4];
  const char* at = text.c_str();
  for (int i = 0; i < 4; ++i) {
    char* end = nullptr;
    numbers[i] = std::strtod(at, &end);
    const bool last = i == 3;
    if (end == at || *end != (last ? '\0' : ','))
      return Error{"--costs " + text + ": wanted four numbers F,I,W,HOP, such as 1,1,0.7,0.05"};
    at = end + 1;
  }
  return DeviceTimes{numbers[0], numbers[1], numbers[2], numbers[3]};
}

sched::Costs costs_for(const DeviceTimes& times, int devices, int chunks) {
  sched::StageCosts device;
  device.forward = device.recompute = times.forward;
  device.backward_input = times.input;
  device.backward_weight = times.weight;
  device.backward = times.input + times.weight;
  return sched::uniform_costs(devices, chunks, device, {.latency = times.hop});
}

/// Formats figures as a comment of the text form: "# F=I=W=1: T 18.000 peak 4.000 4.000 4.000".
std::string figures(const DeviceTimes& times, const sched::Simulation& simulation) {
  const bool units = times.forward == 1 && times.input == 1 && times.weight == 1 && times.hop == 0;
  std::string text = units
                         ? "# F=I=W=1:"
                         : "# F=" + shortest(times.forward) + " I=" + shortest(times.input) +
                               " W=" + shortest(times.weight) + " hop=" + shortest(times.hop) + ":";
  char number[40];
  std::snprintf(number, sizeof number, " T %.3f peak", simulation.makespan);
  text += number;
  for (const auto& device : simulation.devices) {
    std::snprintf(number, sizeof number, " %.3f", device.peak);
    text += number;
  }
  return text + "\n";
}

ExitCode print(const sched::Schedule& schedule, const sched::Costs& costs, const DeviceTimes& times,
               std::string format) {
  if (format == "auto") format = columns_of(stdout) ? "blocks" : "text";
  const auto simulation = sched::simulate(schedule, costs);
  if (!simulation) return invalid(simulation.error());
  std::string out;
  if (format == "text") {
    out = sched::to_text(schedule) + figures(times, *simulation);
  } else if (format == "json") {
    out = to_json_lines(sched::to_value(schedule));
  } else if (format == "csv") {
    const auto table = sched::to_csv(schedule);
    if (!table) return invalid(table.error());
    out = *table;
  } else {
    const auto timeline = sched::timeline_of(schedule, costs, *simulation);
    const std::string caption = schedule.name + ", " + std::to_string(schedule.devices()) +
                                " devices, " + std::to_string(schedule.micro_batches) +
                                " micro-batches: " + sched::summary(*simulation);
    constexpr std::size_t usual = 80;
    const auto columns = columns_of(stdout).value_or(usual);
    out = format == "svg" ? sched::to_svg(timeline, caption)
          : format == "trace"
              ? sched::to_trace(timeline)
              : sched::to_blocks(timeline, caption, columns, form_of(stdout).has_colours);
  }
  std::fwrite(out.data(), 1, out.size(), stdout);
  if (!out.ends_with('\n')) std::fputc('\n', stdout);
  return ExitCode::done;
}

ExitCode list(const CommonFlags& flags) {
  for (const auto& schedule : sched::named_schedules()) {
    const bool synchronous = schedule.mode == sched::Mode::synchronous;
    if (flags.output == "json") {
      Value line;
      line.set("name", schedule.name);
      line.set("mode", synchronous ? "synchronous" : "asynchronous");
      line.set("needs", schedule.needs);
      line.set("idea", schedule.idea);
      std::puts(to_json(line).c_str());
    } else {
      char names[64];
      std::snprintf(names, sizeof names, "%-15s %-14s ", std::string(schedule.name).c_str(),
                    synchronous ? "synchronous" : "asynchronous");
      print_columns(names + std::string(schedule.idea) + "\n");
      print_columns(std::string(std::strlen(names), ' ') + "needs: " + std::string(schedule.needs) +
                    "\n");
    }
  }
  return ExitCode::done;
}

ExitCode check(const ScheduleArguments& arguments) {
  const auto schedule = read_schedule(*storage::disk_files(), arguments.check);
  if (!schedule) return invalid(schedule.error());
  const auto violations = sched::check(*schedule);
  for (const auto& violation : violations)
    std::fprintf(stderr, "%s: %s\n", arguments.check.c_str(),
                 sched::render(*schedule, violation).c_str());
  if (!violations.empty())
    return invalid({arguments.check +
                    " is no valid schedule: " + std::to_string(violations.size()) +
                    (violations.size() == 1 ? " rule is broken" : " places break a rule")});
  std::printf(
      "%s: valid: %d devices, %d stages, %d micro-batches; cannot deadlock; needs %d landing slots "
      "a queue; "
      "digest %s\n",
      arguments.check.c_str(), schedule->devices(), schedule->stages, schedule->micro_batches,
      sched::fewest_landing_slots(*schedule, 1), to_string(sched::digest(*schedule)).c_str());
  return ExitCode::done;
}

ExitCode search(const ScheduleArguments& arguments, const DeviceTimes& times) {
  const int devices = arguments.stages;
  sched::SearchRequest request;
  request.devices = devices;
  request.micro_batches = arguments.micro_batches;
  for (int chunks = 1; chunks <= 4; ++chunks)
    request.partitions.push_back(costs_for(times, devices, chunks));
  if (arguments.cap > 0) request.caps.assign(static_cast<std::size_t>(devices), arguments.cap);
  const auto found = sched::search(request);
  if (!found) return invalid(found.error());
  const auto table = sched::to_table(*found);
  const auto columns = columns_of(stderr);
  std::fputs((columns ? wrapped(table, *columns) : table).c_str(), stderr);
  return print(found->schedule, found->costs, times, arguments.format);
}

ExitCode draw(const ScheduleArguments& arguments, const DeviceTimes& times) {
  auto schedule = sched::generate(arguments.name,
                                  {arguments.stages, arguments.micro_batches, arguments.chunks});
  if (!schedule) return invalid(schedule.error());
  if (arguments.updates) schedule = sched::with_updates(*schedule);
  const int chunks = schedule->routes.size() > 1 ? 1 : schedule->stages / schedule->devices();
  sched::Costs costs = costs_for(times, schedule->devices(), chunks);
  if (auto good = sched::check_costs(costs, schedule->stages, schedule->devices()); !good)
    return invalid(within("--costs " + arguments.costs, good.error()));
  return print(*schedule, costs, times, arguments.format);
}

ExitCode schedule(const ScheduleArguments& arguments, const CommonFlags& flags) {
  if (arguments.list) return list(flags);
  if (!arguments.check.empty()) return check(arguments);
  const auto times = parse_times(arguments.costs);
  if (!times) return invalid(times.error());
  if (arguments.name.empty() && !arguments.search)
    return complain(ExitCode::usage,
                    "troupe schedule: wanted the name of a schedule, --search, --check FILE or "
                    "--list");
  if (arguments.search || arguments.name == "auto") return search(arguments, *times);
  return draw(arguments, *times);
}

}  // namespace

void add_schedule(Program& program) {
  auto [command, arguments] = add_command(program, program.app, "schedule",
                                          "show, check and search pipeline schedules", schedule);
  command->add_option("name", arguments.name, "a schedule from --list, or auto");
  command
      ->add_option("--stages", arguments.stages,
                   "number of pipeline stages; with --search, number of devices (default: 4)")
      ->check(above_zero());
  command
      ->add_option("--micro-batches", arguments.micro_batches,
                   "micro-batches per step (default: 8)")
      ->check(above_zero());
  command->add_option("--chunks", arguments.chunks, "stages per device (default: 1)");
  command
      ->add_option("--costs", arguments.costs,
                   "F,I,W,HOP: time of a device's forward, input-gradient and weight-gradient "
                   "pass, and of a message")
      ->capture_default_str();
  command
      ->add_option("--format", arguments.format,
                   "output format: blocks, text, csv, json, svg or trace (default: blocks on a "
                   "terminal, else text)")
      ->check(CLI::IsMember({"auto", "blocks", "text", "csv", "json", "svg", "trace"}));
  command->add_option("--check", arguments.check, "check that the schedule in this file is valid");
  command->add_option(
      "--cap", arguments.cap,
      "with --search: memory limit per device (1 = activations of one micro-batch)");
  command->add_flag("--updates", arguments.updates,
                    "show gradient exchanges (A) and optimizer updates (O)");
  command->add_flag("--search", arguments.search, "search the best schedule for these costs");
  command->add_flag("--list", arguments.list, "list all schedules");
}

}  // namespace troupe::apps
