#include <map>
#include <set>

#include "catch.h"
#include "core/random.h"
#include "player.h"
#include "schedules/check/check.h"
#include "schedules/generators/registry.h"
#include "schedules/operators.h"
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

/// Applies one random edit.
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

/// Returns whether all A's and O's are on a device that holds their stage.
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

/// Returns the passes of each device, without order and groups.
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

/// The weight gradients, A's and O's of one stage on a device: "B0 B1 A1 O1 B2 A2 O2 ".
struct StageText {
  std::vector<std::string> words;
  bool ends_with_update = false;
};

std::map<std::pair<int, int>, StageText> stage_texts(const Schedule& schedule) {
  std::map<std::pair<int, int>, StageText> texts;
  for (int d = 0; d < schedule.devices(); ++d)
    for (const Action action : schedule.lanes[d]) {
      StageText& text = texts[{d, action.stage}];
      text.ends_with_update = action.kind == Kind::update;
      const std::string m = std::to_string(action.micro_batch);
      if (gives_weight_gradient(action.kind)) text.words.push_back("B" + m);
      if (!has_micro_batch(action.kind))
        text.words.push_back(letter(action.kind) +
                             (action.flags & Action::numbered ? m : std::string()));
    }
  return texts;
}

/// Returns the correct words: all B's, then one A and O; or numbered ones after each run of B's.
std::vector<std::string> wanted(const std::vector<std::string>& words, bool numbered, bool gives) {
  std::vector<std::string> made;
  std::string last;
  const auto close = [&] {
    if (last.empty()) return;
    const std::string m = numbered ? last.substr(1) : "";
    if (gives) made.push_back("A" + m);
    made.push_back("O" + m);
    last.clear();
  };
  for (const std::string& word : words) {
    if (word[0] == 'B')
      made.push_back(last = word);
    else if (numbered)
      close();
  }
  close();
  return made;
}

/// Returns whether A's and O's have a valid form that is equal in all stages.
bool updates_are_whole(const Schedule& schedule) {
  bool gives = false;
  bool updates = false;
  for (const Lane& lane : schedule.lanes)
    for (const Action action : lane) {
      gives |= action.kind == Kind::give;
      updates |= action.kind == Kind::update;
    }
  if (!gives && !updates) return true;
  std::set<std::string> orders;
  for (const auto& [where, text] : stage_texts(schedule)) {
    const bool at_end = text.ends_with_update && text.words == wanted(text.words, false, gives);
    if (!at_end && text.words != wanted(text.words, true, gives)) return false;
    std::string order;
    for (const std::string& word : text.words)
      if (word[0] == 'O') order += word + ' ';
    orders.insert(order);
  }
  return schedule.routes.size() > 1 || orders.size() == 1;
}

}  // namespace

TEST_CASE("check rejects a random edit by its rule or the schedule still plays", "[schedules]") {
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

    // Decide the same question with a token player and by counting.
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

TEST_CASE("check finds a deadlock in an edited schedule exactly when a token player stalls",
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
