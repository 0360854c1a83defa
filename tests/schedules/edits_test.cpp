#include <map>
#include <regex>
#include <set>

#include "catch.h"
#include "core/random.h"
#include "player.h"
#include "schedules/check.h"
#include "schedules/operators.h"
#include "schedules/registry.h"
#include "schedules/text.h"

using namespace troupe;
using namespace troupe::schedules;

namespace {

enum class Edit { swap, drop, duplicate, move, stage };

std::vector<Schedule> bases() {
  std::vector<Schedule> all;
  const auto add = [&](std::string_view name, PipelineShape shape) {
    all.push_back(*generate(name, shape));
    all.push_back(with_updates(all.back()));
  };
  add("1f1b", {3, 4, 1});
  add("gpipe", {2, 3, 1});
  add("interleaved", {4, 4, 2});
  add("zb-h1", {3, 4, 1});
  add("zb-v", {4, 4, 2});
  add("chimera", {4, 4, 1});
  add("dualpipev", {4, 5, 2});
  add("pipedream", {3, 4, 1});
  add("2bw", {2, 5, 1});
  all.push_back(with_recompute(*generate("1f1b", {3, 4, 1}), {true, false, true}));
  return all;
}

/// One edit that a seed draws.
Schedule edited(Schedule schedule, Edit edit, const std::array<std::uint32_t, 4>& draw) {
  Lane& lane = schedule.lanes[draw[0] % schedule.lanes.size()];
  const std::size_t k = draw[1] % lane.size();
  const std::size_t other = draw[2] % lane.size();
  switch (edit) {
    case Edit::swap:
      std::swap(lane[k], lane[other]);
      break;
    case Edit::drop:
      lane.erase(lane.begin() + k);
      break;
    case Edit::duplicate:
      lane.insert(lane.begin() + other, Action(lane[k]));
      break;
    case Edit::move: {
      const Action action = lane[k];
      lane.erase(lane.begin() + k);
      lane.insert(lane.begin() + other % (lane.size() + 1), action);
      break;
    }
    case Edit::stage:
      lane[k].stage = static_cast<std::uint16_t>((lane[k].stage + 1 + draw[2] % schedule.stages) %
                                                 (schedule.stages + 1));
      break;
  }
  return schedule;
}

bool groups_are_whole(const Schedule& schedule) {
  for (const Lane& lane : schedule.lanes)
    for (std::size_t k = 0; k < lane.size(); ++k)
      if ((lane[k].flags & Action::with_next) &&
          (k + 1 == lane.size() || !has_micro_batch(lane[k].kind) ||
           !has_micro_batch(lane[k + 1].kind)))
        return false;
  return true;
}

/// Whether A's and O's are on a device that has their stage.
bool updates_are_at_home(const Schedule& schedule) {
  for (int d = 0; d < schedule.devices(); ++d)
    for (const Action action : schedule.lanes[d]) {
      if (has_micro_batch(action.kind)) continue;
      if (action.stage >= schedule.stages) return false;
      bool home = false;
      for (const Route& route : schedule.routes) home |= route[action.stage] == d;
      if (!home) return false;
    }
  return true;
}

/// The passes of each device, whatever their order and groups.
std::vector<std::multiset<std::string>> passes_of(const Schedule& schedule) {
  std::vector<std::multiset<std::string>> all;
  for (const Lane& lane : schedule.lanes) {
    auto& passes = all.emplace_back();
    for (const Action action : lane)
      if (has_micro_batch(action.kind)) passes.insert(to_string(action));
  }
  return all;
}

bool sums_by_micro_batch(const Schedule& schedule) {
  for (const Lane& lane : schedule.lanes) {
    std::map<int, std::vector<std::uint32_t>> sums;
    for (const Action action : lane)
      if (gives_weight_gradient(action.kind)) sums[action.stage].push_back(action.micro_batch);
    for (const auto& [stage, order] : sums)
      if (!std::ranges::is_sorted(order)) return false;
  }
  return true;
}

/// Whether A's and O's stand as in one of the forms that there are, stage by stage: as text.
bool updates_are_whole(const Schedule& schedule) {
  bool gives = false;
  bool updates = false;
  std::map<std::pair<int, int>, std::string> texts;
  for (int d = 0; d < schedule.devices(); ++d)
    for (const Action action : schedule.lanes[d]) {
      gives |= action.kind == Kind::give;
      updates |= action.kind == Kind::update;
      std::string& text = texts[{d, action.stage}];
      const bool in_form = gives_weight_gradient(action.kind) || !has_micro_batch(action.kind);
      const bool numbered = has_micro_batch(action.kind) || (action.flags & Action::numbered);
      // Passes that give no weight gradients only matter behind the last O.
      text += !in_form                             ? "."
              : gives_weight_gradient(action.kind) ? "B"
                                                   : std::string(1, letter(action.kind));
      if (in_form) text += numbered ? std::to_string(action.micro_batch) : "";
    }
  if (!gives && !updates) return true;
  const std::string give = gives ? "A" : "";
  const std::regex at_end("([.]|B[0-9]+)*B[0-9]+[.]*" + give + "[.]*O");
  // A's may come any time between the gradient and the O, with its number.
  const std::regex amid(gives ? "(([.]|B[0-9]+)*B([0-9]+)[.]*A\\3[.]*O\\3)+[.]*"
                              : "(([.]|B[0-9]+)*B([0-9]+)[.]*O\\3)+[.]*");
  std::set<std::string> orders;
  for (const auto& [where, text] : texts) {
    orders.insert(std::regex_replace(text, std::regex("[^O0-9]|[AB][0-9]+"), ""));
    if (!std::regex_match(text, at_end) && !std::regex_match(text, amid)) return false;
  }
  return schedule.routes.size() > 1 || orders.size() == 1;
}

}  // namespace

TEST_CASE("of a thousand random edits each is rejected by its rule, or plays as well as before",
          "[schedules]") {
  const auto all = bases();
  std::map<Rule, int> rejected;
  int accepted = 0;
  for (std::uint32_t k = 0; k < 1000; ++k) {
    const Schedule& base = all[k % all.size()];
    const auto edit = static_cast<Edit>(k / all.size() % 5);
    const Schedule schedule = edited(base, edit, RandomKey{7, k, 0, 0}.words(0));
    const auto violations = check(schedule);
    INFO(to_text(schedule));
    if (!violations.empty()) INFO(render(schedule, violations.front()));

    // The same question, asked of a player of tokens and of plain counting.
    const bool same_passes = groups_are_whole(schedule) && passes_of(schedule) == passes_of(base);
    const bool plays = same_passes && plays_to_the_end(schedule, std::nullopt, k);
    const bool valid = plays && sums_by_micro_batch(schedule) && updates_are_whole(schedule);
    CHECK(violations.empty() == valid);
    for (const Violation& violation : violations) {
      ++rejected[violation.rule];
      switch (violation.rule) {
        case Rule::placement:
          CHECK_FALSE((same_passes && updates_are_at_home(schedule)));
          break;
        case Rule::completeness:
          CHECK_FALSE(same_passes);
          break;
        case Rule::local_order:
          CHECK((same_passes && !(plays && sums_by_micro_batch(schedule))));
          break;
        case Rule::acyclic:
          CHECK((same_passes && !plays));
          break;
        case Rule::step_order:
          CHECK((same_passes && !updates_are_whole(schedule)));
          break;
        case Rule::memory:
        case Rule::bounded_buffers:
        case Rule::streams:
        case Rule::versions:
          FAIL("nobody asked for " << to_string(violation.rule));
      }
    }
    if (valid) ++accepted;
    if (edit == Edit::drop || edit == Edit::duplicate) CHECK_FALSE(valid);
  }
  for (const Rule rule :
       {Rule::placement, Rule::completeness, Rule::local_order, Rule::acyclic, Rule::step_order})
    CHECK(rejected[rule] >= 10);
  CHECK(accepted >= 10);
}

TEST_CASE("edited schedules get stuck in bounded queues just when a player of tokens does",
          "[schedules]") {
  const auto all = bases();
  int stuck = 0;
  int asked = 0;
  for (std::uint32_t k = 0; k < 3000; ++k) {
    const Edit edit = k % 2 == 0 ? Edit::swap : Edit::move;
    const Schedule schedule = edited(all[k % all.size()], edit, RandomKey{8, k, 0, 0}.words(0));
    if (!check(schedule).empty()) continue;
    for (const Buffers buffers : {Buffers{1, 1}, Buffers{2, 1}, Buffers{1, 2}}) {
      CheckRequest request;
      request.buffers = buffers;
      const bool valid = check(schedule, request).empty();
      INFO(to_text(schedule));
      CHECK(plays_to_the_end(schedule, buffers, k) == valid);
      stuck += valid ? 0 : 1;
      ++asked;
    }
  }
  CHECK(asked >= 100);
  CHECK(stuck >= 10);
}
