#include "schedules/formats/json_form.h"

#include <algorithm>

#include "schedules/scanner.h"
#include "schedules/text.h"

namespace troupe::schedules {
namespace {

Value numbers(const std::vector<std::uint16_t>& from) {
  Value::List list;
  for (const auto number : from) list.emplace_back(static_cast<int>(number));
  return list;
}

/// Returns a lane as a list of texts, one for each action or group.
Value items(const Lane& lane) {
  Value::List list;
  for (std::size_t begin = 0, end = 0; begin < lane.size(); begin = end) {
    end = begin + 1;
    while (lane[end - 1].flags & Action::with_next) ++end;
    list.emplace_back(to_string(Lane(lane.begin() + begin, lane.begin() + end)));
  }
  return list;
}

class Reader {
 public:
  explicit Reader(const Value& root) : root_(root) {}

  Result<Schedule> read() {
    if (!root_.map()) return wrong(root_, "a table");
    if (read_head() && read_routes() && read_lanes()) return std::move(schedule_);
    return error_;
  }

 private:
  static Error wrong(const Value& value, const std::string& wanted) {
    return error_at(value.position,
                    "found " + std::string(describe(value.kind())) + ", expected " + wanted);
  }
  bool fail(Error error) {
    error_ = std::move(error);
    return false;
  }

  /// Returns a required entry of the root; reports an error if it is missing.
  const Value* entry(const std::string& key) {
    const Value* value = root_.find(key);
    if (!value) fail(error_at(root_.position, "a schedule needs the key '" + key + "'"));
    return value;
  }
  const Value::List* list(const Value* value, const std::string& of) {
    if (!value) return nullptr;
    if (!value->list()) fail(wrong(*value, "a list of " + of));
    return value->list();
  }
  template <class Number>
  bool number(const Value* value, Number& number, std::int64_t least, std::int64_t most) {
    if (!value) return false;
    const std::int64_t* whole = value->integer();
    if (!whole || *whole < least || *whole > most)
      return fail(error_at(value->position,
                           "expected a whole number from " + std::to_string(least) + " to " +
                               std::to_string(most) +
                               (whole ? ", found " + std::to_string(*whole)
                                      : ", found " + std::string(describe(value->kind())))));
    number = static_cast<Number>(*whole);
    return true;
  }

  bool read_head() {
    static constexpr std::string_view keys[] = {"sched",         "name",   "devices",  "stages",
                                                "micro_batches", "routes", "route_of", "lanes"};
    for (const Value::Entry& entry : *root_.map())
      if (std::ranges::find(keys, entry.key) == std::end(keys))
        return fail(error_at(entry.position, "a schedule has no key '" + entry.key + "'"));
    int version = 0;
    if (!number(entry("sched"), version, 1, 1)) return false;
    const Value* name = entry("name");
    if (!name) return false;
    if (!name->text() || !is_schedule_name(*name->text()))
      return fail(
          error_at(name->position, "a name is one word of at most 100 printable characters"));
    schedule_.name = *name->text();
    return number(entry("devices"), devices_, 1, max_stages) &&
           number(entry("stages"), schedule_.stages, 1, max_stages) &&
           number(entry("micro_batches"), schedule_.micro_batches, 1, max_micro_batches);
  }

  bool read_numbers(const Value* value, std::vector<std::uint16_t>& into, std::size_t most,
                    std::int64_t largest) {
    const Value::List* values = list(value, "whole numbers");
    if (!values) return false;
    if (values->empty() || values->size() > most)
      return fail(error_at(value->position, "found " + std::to_string(values->size()) +
                                                " numbers, wanted at least 1 and at most " +
                                                std::to_string(most)));
    into.resize(values->size());
    for (std::size_t k = 0; k < into.size(); ++k)
      if (!number(&(*values)[k], into[k], 0, largest)) return false;
    return true;
  }

  bool read_routes() {
    const Value::List* routes = list(entry("routes"), "routes");
    if (!routes) return false;
    if (routes->empty() || routes->size() > max_stages)
      return fail(
          error_at(root_.find("routes")->position, "found " + std::to_string(routes->size()) +
                                                       " routes, wanted at least 1 and at most " +
                                                       std::to_string(max_stages)));
    for (const Value& route : *routes) {
      schedule_.routes.emplace_back();
      if (!read_numbers(&route, schedule_.routes.back(), max_stages, devices_ - 1)) return false;
      if (schedule_.routes.back().size() != static_cast<std::size_t>(schedule_.stages))
        return fail(error_at(route.position,
                             "found a route of " + std::to_string(schedule_.routes.back().size()) +
                                 " stages, wanted " + std::to_string(schedule_.stages)));
    }
    return read_numbers(entry("route_of"), schedule_.route_of, max_micro_batches,
                        static_cast<std::int64_t>(routes->size()) - 1);
  }

  bool read_lanes() {
    const Value* value = entry("lanes");
    const Value::List* lanes = list(value, "lanes");
    if (!lanes) return false;
    if (lanes->size() != static_cast<std::size_t>(devices_))
      return fail(error_at(value->position, "found " + std::to_string(lanes->size()) +
                                                " lanes, wanted one for each of " +
                                                std::to_string(devices_) + " devices"));
    for (const Value& lane : *lanes) {
      schedule_.lanes.emplace_back();
      if (!read_lane(lane, schedule_.lanes.back())) return false;
    }
    return true;
  }

  bool read_lane(const Value& value, Lane& lane) {
    const Value::List* items = list(&value, "actions");
    if (!items) return false;
    for (const Value& item : *items) {
      if (!item.text()) return fail(wrong(item, "an action such as \"0F1\""));
      // A range or loop instead of an action could expand to millions of actions.
      const bool is_plain = item.text()->find_first_of("[{# \t\r\n") == std::string::npos;
      const auto read =
          parse_lane(is_plain ? *item.text() : "", {schedule_.stages, schedule_.micro_batches});
      if (!read) return fail(error_at(item.position, "within the text, " + read.error().text));
      if (items_in(*read) != 1)
        return fail(error_at(item.position, "found \"" + item.text()->substr(0, 40) +
                                                "\", expected one action or group"));
      actions_ += read->size();
      if (actions_ > max_actions)
        return fail(error_at(item.position, "here the schedule comes to more than " +
                                                std::to_string(max_actions) + " actions"));
      lane.insert(lane.end(), read->begin(), read->end());
    }
    return true;
  }

  static std::size_t items_in(const Lane& lane) {
    return static_cast<std::size_t>(std::ranges::count_if(
        lane, [](Action action) { return !(action.flags & Action::with_next); }));
  }

  const Value& root_;
  Schedule schedule_;
  int devices_ = 0;
  std::size_t actions_ = 0;
  Error error_;
};

}  // namespace

Value to_value(const Schedule& schedule) {
  Value root;
  root.set("sched", 1);
  root.set("name", schedule.name);
  root.set("devices", schedule.devices());
  root.set("stages", schedule.stages);
  root.set("micro_batches", schedule.micro_batches);
  Value::List routes;
  for (const Route& route : schedule.routes) routes.push_back(numbers(route));
  root.set("routes", std::move(routes));
  root.set("route_of", numbers(schedule.route_of));
  Value::List lanes;
  for (const Lane& lane : schedule.lanes) lanes.push_back(items(lane));
  root.set("lanes", std::move(lanes));
  return root;
}

Result<Schedule> schedule_from(const Value& value) { return Reader(value).read(); }

}  // namespace troupe::schedules
