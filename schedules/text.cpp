#include "schedules/text.h"

#include <algorithm>
#include <numeric>

#include "schedules/lane_parser.h"
#include "schedules/scanner.h"

namespace troupe::schedules {
namespace {

/// Returns whether the routes take turns (the default, which the text omits).
bool takes_turns(const Schedule& schedule) {
  std::vector<std::uint16_t> turns(schedule.routes.size());
  std::iota(turns.begin(), turns.end(), std::uint16_t{0});
  return schedule.route_of == turns;
}

void append(std::string& text, const std::vector<std::uint16_t>& numbers) {
  for (const auto number : numbers) text += ' ' + std::to_string(number);
  text += '\n';
}

/// Reads the canonical text line by line and stops at the first error.
class Reader {
 public:
  explicit Reader(std::string_view text) : scanner_(text) {}

  Result<Schedule> read() {
    if (read_head() && read_routes() && read_lanes()) return std::move(schedule_);
    return error_;
  }

 private:
  bool fail(Error error) {
    error_ = std::move(error);
    return false;
  }
  bool fail_here(const std::string& wanted) { return fail(scanner_.unexpected(wanted)); }

  bool word(std::string_view wanted) {
    return scanner_.accept_word(wanted) || fail_here("'" + std::string(wanted) + "'");
  }
  bool number(int& number, int least, int most, const std::string& what) {
    const auto read = scanner_.number(least, most, what);
    if (!read) return fail(read.error());
    number = *read;
    return true;
  }
  bool line_end() { return scanner_.accept_line_end() || fail_here("the end of the line"); }

  bool read_head() {
    int version = 0;
    if (!word("sched") || !number(version, 1, 1, "the version") || !line_end()) return false;
    if (!word("name")) return false;
    const Position place = scanner_.position();
    schedule_.name = scanner_.word();
    if (!is_schedule_name(schedule_.name))
      return fail(error_at(place, "a name is one word of at most 100 printable characters"));
    int devices = 0;
    if (!line_end() || !word("devices") || !number(devices, 1, max_stages, "the devices") ||
        !word("stages") || !number(schedule_.stages, 1, max_stages, "the stages") ||
        !word("microbatches") ||
        !number(schedule_.micro_batches, 1, max_micro_batches, "the micro-batches") || !line_end())
      return false;
    schedule_.lanes.resize(devices);
    return true;
  }

  bool read_routes() {
    if (!scanner_.at_word("route")) return fail_here("'route 0:'");
    while (scanner_.accept_word("route")) {
      const int next = static_cast<int>(schedule_.routes.size());
      int index = 0;
      if (!number(index, next, next, "the route's index") || !colon()) return false;
      Route& route = schedule_.routes.emplace_back();
      for (int stage = 0; stage < schedule_.stages; ++stage) {
        int device = 0;
        if (!number(device, 0, schedule_.devices() - 1,
                    "the device of stage " + std::to_string(stage)))
          return false;
        route.push_back(static_cast<std::uint16_t>(device));
      }
      if (!line_end()) return false;
      if (schedule_.routes.size() > max_stages)
        return fail_here("at most " + std::to_string(max_stages) + " routes");
    }
    return read_cycle();
  }

  bool read_cycle() {
    schedule_.route_of.resize(schedule_.routes.size());
    std::iota(schedule_.route_of.begin(), schedule_.route_of.end(), std::uint16_t{0});
    if (!scanner_.accept_word("cycle")) return true;
    if (!colon()) return false;
    schedule_.route_of.clear();
    while (!scanner_.at_line_end()) {
      if (schedule_.route_of.size() == max_micro_batches) return fail_here("the end of the line");
      int route = 0;
      if (!number(route, 0, static_cast<int>(schedule_.routes.size()) - 1, "a route")) return false;
      schedule_.route_of.push_back(static_cast<std::uint16_t>(route));
    }
    if (schedule_.route_of.empty()) return fail_here("a route");
    return line_end();
  }

  bool read_lanes() {
    std::size_t room = max_actions;
    for (int device = 0; device < schedule_.devices(); ++device) {
      if (!word("d" + std::to_string(device)) || !colon()) return false;
      LaneParser parser(scanner_, {schedule_.stages, schedule_.micro_batches}, room);
      auto lane = parser.parse();
      if (!lane) return fail(lane.error());
      room -= lane->size();
      schedule_.lanes[device] = std::move(*lane);
      if (!line_end()) return false;
    }
    return scanner_.at_end() || fail_here("the end of the schedule");
  }

  bool colon() { return scanner_.accept(':') || fail_here("':'"); }

  Scanner scanner_;
  Schedule schedule_;
  Error error_;
};

}  // namespace

std::string to_text(const Schedule& schedule) {
  std::string text = "sched 1\nname " + schedule.name + "\ndevices " +
                     std::to_string(schedule.devices()) + " stages " +
                     std::to_string(schedule.stages) + " microbatches " +
                     std::to_string(schedule.micro_batches) + '\n';
  for (std::size_t q = 0; q < schedule.routes.size(); ++q) {
    text += "route " + std::to_string(q) + ':';
    append(text, schedule.routes[q]);
  }
  if (!takes_turns(schedule)) {
    text += "cycle:";
    append(text, schedule.route_of);
  }
  for (int device = 0; device < schedule.devices(); ++device) {
    const std::string lane = to_string(schedule.lanes[device]);
    text += 'd' + std::to_string(device) + ':' + (lane.empty() ? "" : " ") + lane + '\n';
  }
  return text;
}

Result<Schedule> parse_schedule(std::string_view text) { return Reader(text).read(); }

Result<Lane> parse_lane(std::string_view text, LaneBounds bounds) {
  Scanner scanner(text);
  auto lane = LaneParser(scanner, bounds, max_actions).parse();
  if (lane && !scanner.at_end()) return scanner.unexpected("the end of the lane");
  return lane;
}

bool is_schedule_name(std::string_view name) {
  return !name.empty() && name.size() <= 100 &&
         std::ranges::all_of(name, [](char c) { return c > ' ' && c <= '~' && c != '#'; });
}

}  // namespace troupe::schedules
