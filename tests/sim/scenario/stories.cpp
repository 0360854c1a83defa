#include "tests/sim/scenario/stories.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <span>
#include <utility>

#include "tests/sim/scenario/drawn_faults.h"

namespace troupe::simulation {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Duration = Scheduler::Duration;
using Kind = Fault::Kind;
using actors::decide::Row;

/// Draws the stories of a scenario.
class Stories {
 public:
  Stories(Drawing& draw, Scenario& scenario)
      : draw_(draw),
        scenario_(scenario),
        length_(usual_length(scenario) / 2),
        node_(draw.between(1, scenario.nodes)),
        other_(scenario.nodes == 1 ? 1 : draw.between(1, scenario.nodes - 1)) {
    if (scenario.nodes > 1 && other_ >= node_) ++other_;
  }

  /// Draws some stories.
  void draw() {
    // Stories that seldom lead to their decision are there more often.
    constexpr std::array<std::pair<Story, int>, 23> all = {
        {{&Stories::gather_in_vain, 3},   {&Stories::gather_and_lose, 4},
         {&Stories::tear_decision, 3},    {&Stories::prepare_late, 1},
         {&Stories::load_late, 3},        {&Stories::load_and_fail, 13},
         {&Stories::bad_source, 10},      {&Stories::no_progress, 2},
         {&Stories::too_few_for_long, 2}, {&Stories::no_paths, 12},
         {&Stories::every_cordon, 5},     {&Stories::unheard, 2},
         {&Stories::nobody_is_left, 13},  {&Stories::every_device_fails, 14},
         {&Stories::full_disk, 6},        {&Stories::lose_some, 2},
         {&Stories::faulty_step, 8},      {&Stories::keeps_ending, 10},
         {&Stories::come_back_soon, 6},   {&Stories::fails_now_and_then, 13},
         {&Stories::nodes_leave, 11},     {&Stories::stop_and_go_on, 9},
         {&Stories::last_save_fails, 15}}};
    // In half of such seeds one or two stories are all that happens.
    const bool is_alone = draw_.one_in(2);
    if (is_alone) {
      scenario_.faults.clear();
      scenario_.stays_healthy.assign(scenario_.stays_healthy.size(), true);
    }
    for (int count = is_alone ? draw_.between(1, 2) : draw_.between(6, 9); count > 0; --count) {
      at_ = draw_.one_in(2) ? Duration(0) : draw_.time_below(length_);
      (this->*draw_story(all))();
    }
  }

  /// A head is late to hear of steps as a node goes: the run has decided to recover by then, and
  /// nodes keep later states than it knows of.
  void late_steps() {
    scenario_.copies = std::max(scenario_.copies, 2);
    for (int i = 0; i < 4; ++i) {
      at_ = draw_.time_below(length_);
      const auto lasts = draw_.time_between(milliseconds(10), milliseconds(300));
      add_at(Row::step_done, Kind::stuck, 0, lasts);
      add_at(Row::step_done, Kind::kill, i % 2 == 0 ? node_ : other_).later =
          draw_.time_below(lasts);
    }
  }

  /// The supervisor is stuck from the beginning of an attempt on, and a node goes before it hears
  /// of the first steps. Or it is stuck as the next attempt begins, while the ledger gets steps of
  /// the one before. Nodes keep the states after these steps.
  void late_supervisor() {
    scenario_.copies = std::max(scenario_.copies, 2);
    const auto step = usual_length(scenario_) / scenario_.steps;
    for (int i = 0; i < 4; ++i) {
      at_ = i == 0 ? Duration(0) : draw_.time_below(length_);
      const auto lasts = step + draw_.time_below(4 * step);
      const bool is_of_ledger = i % 2 == 1;
      add_at(Row::loaded, Kind::stuck, 0, lasts).part = is_of_ledger ? "recorder" : "supervisor";
      add_at(Row::loaded, Kind::kill, draw_.one_in(2) ? node_ : other_).later =
          lasts / 2 + draw_.time_below(lasts / 2);
      if (is_of_ledger) add_at(Row::attempt_ended, Kind::stuck, 0, seconds(1)).part = "supervisor";
    }
  }

  /// No two nodes reach each other.
  void no_paths() {
    need_all_nodes();
    if (scenario_.stages == 1) scenario_.stages = 2;
    const auto lasts = draw_.time_between(seconds(6), seconds(15));
    for (int i = 1; i <= scenario_.nodes; ++i)
      for (int j = i + 1; j <= scenario_.nodes; ++j) add(Kind::cut, i, lasts).other = j;
  }

 private:
  using Story = void (Stories::*)();
  Story draw_story(std::span<const std::pair<Story, int>> all) {
    int weights = 0;
    for (const auto& [story, weight] : all) weights += weight;
    int drawn = draw_.between(1, weights);
    for (const auto& [story, weight] : all)
      if ((drawn -= weight) <= 0) return story;
    return all.back().first;
  }
  Fault& add(Kind kind, int machine, Duration lasts = milliseconds(1)) {
    auto& fault = scenario_.faults.emplace_back(draw_fault(draw_, kind, scenario_));
    fault.at = at_;
    fault.machine = machine;
    fault.lasts = lasts;
    return fault;
  }
  Fault& add_at(Row when, Kind kind, int machine, Duration lasts = milliseconds(1)) {
    auto& fault = add(kind, machine, lasts);
    fault.when = when;
    return fault;
  }
  /// The run needs all nodes. No fault lasts for ever then.
  void need_all_nodes() {
    scenario_.fewest = scenario_.nodes;
    scenario_.stays_healthy.assign(scenario_.stays_healthy.size(), true);
    for (auto& fault : scenario_.faults)
      if (!fault.lasts) fault.lasts = seconds(10);
  }
  /// Kills the processes of all nodes but one.
  void kill_others(Row when, Duration later, int but = 0) {
    for (int i = 1; i <= scenario_.nodes; ++i)
      if (i != but) add_at(when, Kind::kill, i).later = later;
  }

  /// A new head waits for a node that stays away, and the others go as it gives up.
  void gather_in_vain() {
    scenario_.fewest = 1;
    add(Kind::kill, 0).at += milliseconds(10);
    add_at(Row::boot_again, Kind::crash, node_, draw_.time_between(seconds(6), seconds(9)));
    kill_others(Row::boot_again, milliseconds(4'990), node_);
  }
  /// A new head waits for a node that stays away, and loses another one.
  void gather_and_lose() {
    add(Kind::kill, 0).at += milliseconds(10);
    add_at(Row::boot_again, Kind::crash, node_, draw_.time_between(seconds(6), seconds(9)));
    kill_others(Row::gather_waits, milliseconds(5), node_);
  }
  void tear_decision() {
    add(Kind::torn_decision, 0);
    add(Kind::kill, node_).at += milliseconds(1);
    add(Kind::kill, other_).at += milliseconds(1);
  }
  void prepare_late() {
    scenario_.is_impatient = true;
    const auto lasts = draw_.time_between(milliseconds(80), seconds(2));
    add_at(Row::plan_ready, Kind::freeze, node_, lasts).times = 2;
    add_at(Row::plan_ready, Kind::freeze, other_, lasts).times = 2;
  }
  void load_late() {
    scenario_.is_impatient = true;
    const auto lasts = draw_.time_between(milliseconds(50), seconds(1));
    for (int i = 1; i <= scenario_.nodes; ++i)
      add_at(Row::prepared_all, Kind::freeze, i, lasts).times = 2;
  }
  void load_and_fail() {
    for (int i = 1; i <= scenario_.nodes; ++i)
      add_at(Row::prepared_all, Kind::failing_jobs, i, milliseconds(20)).times = 2;
  }
  /// The states to begin from turn out to be bad.
  void bad_source() {
    scenario_.copies = 1;
    scenario_.save_every = 2;
    for (int i = 1; i <= 3; ++i) {
      at_ = i * length_ / 3;
      for (int j = 1; j <= scenario_.nodes; ++j) add(Kind::kill, j);
    }
    at_ = Duration(0);
    for (int i = 0; i < 6; ++i) add_at(Row::recover_plans, Kind::damage, 0).times = 3;
  }
  /// Attempts end before they have done a new step.
  void no_progress() {
    scenario_.is_impatient = true;
    for (int i = 1; i <= scenario_.nodes; ++i) add_at(Row::loaded, Kind::kill, i).times = 4;
  }
  /// As the run has waited for long enough after that, all nodes go.
  void nobody_is_left() {
    scenario_.is_impatient = true;
    add_at(Row::loaded, Kind::kill, node_).times = 2;
    add_at(Row::loaded, Kind::kill, other_).times = 2;
    kill_others(Row::recover_futile, milliseconds(990));
    kill_others(Row::gather_again, milliseconds(10));
  }
  /// Nodes are away for longer than the run waits.
  void too_few_for_long() {
    scenario_.is_impatient = true;
    const auto lasts = draw_.time_between(seconds(6), seconds(9));
    for (int i = 0; i <= scenario_.nodes - scenario_.fewest; ++i)
      add(Kind::crash, 1 + (node_ + i) % scenario_.nodes, lasts);
  }
  /// The head looks at nodes when one comes.
  void every_cordon() {
    const auto lasts = draw_.time_between(milliseconds(300), milliseconds(600));
    for (int i = 0; i < 3; ++i, at_ += 2 * lasts) {
      add(Kind::cordon, node_, lasts);
      add(Kind::kill, other_).at += milliseconds(20);
      add(Kind::kill, other_).at += lasts + milliseconds(20);
    }
  }
  /// Nodes lose their connections while the run waits, and come back.
  void unheard() {
    need_all_nodes();
    add(Kind::crash, other_, seconds(3));
    for (int i = 1; i <= 3; ++i) {
      at_ += milliseconds(900);
      add(Kind::refusals, 0, draw_.time_between(milliseconds(150), milliseconds(700)));
      for (int j = 1; j <= scenario_.nodes; ++j) add(Kind::end_of_links, j).other = 0;
    }
  }
  void every_device_fails() {
    scenario_.fewest = 1;
    const auto lasts = draw_.time_between(seconds(2), seconds(5));
    for (int i = 1; i <= scenario_.nodes; ++i) add(Kind::failing_jobs, i, lasts).number = 0;
  }
  /// A node comes back while the next plan's nodes prepare.
  void come_back_soon() {
    scenario_.has_daemons = true;
    scenario_.fewest = 1;
    add_at(Row::plan_ready, Kind::freeze, other_,
           draw_.time_between(milliseconds(600), seconds(2)));
    add_at(Row::plan_ready, Kind::kill, node_);
  }
  /// A step ends the processes that play it.
  void faulty_step() {
    scenario_.has_daemons = true;
    scenario_.fewest = 1;
    for (int i = 1; i <= scenario_.nodes; ++i)
      add_at(Row::loaded, Kind::program_fault, i).times = 3;
  }
  /// The processes of a node end one after the other.
  void keeps_ending() {
    scenario_.has_daemons = true;
    scenario_.fewest = 1;
    scenario_.is_impatient = true;
    add(Kind::program_fault, node_);
    for (const auto when : {Row::run_arrival, Row::loaded})
      add_at(when, Kind::program_fault, node_).times = 3;
  }
  /// A device fails now and then, each time otherwise, and the run needs its node.
  void fails_now_and_then() {
    need_all_nodes();
    // Each node plays.
    scenario_.stages = scenario_.nodes;
    scenario_.replicas = 1;
    scenario_.is_impatient = true;
    at_ = Duration(0);
    add_at(Row::player_failed, Kind::kill, node_).times = 4;
    // A job begins meanwhile.
    auto& fails = add_at(Row::loaded, Kind::failing_jobs, node_, 2 * scenario_.slowest_job);
    fails.later = draw_.time_between(milliseconds(2), milliseconds(60));
    fails.times = 4;
    fails.number = 1;
  }
  /// For longer than a head goes on without writing down what it must decide.
  void full_disk() {
    add(Kind::full_disk, 0, seconds(70)).number = 0;
    for (int i = 1; i <= scenario_.nodes; ++i) add(Kind::kill, i).at += milliseconds(1);
  }
  /// Nodes that play are drained one after the other.
  void nodes_leave() {
    scenario_.fewest = 1;
    for (const int node : {node_, other_})
      add_at(Row::loaded, Kind::drain, node).later =
          draw_.time_between(milliseconds(1), milliseconds(100));
  }
  /// A person stops the run as it plays, and submits it again.
  void stop_and_go_on() {
    auto& stop = add_at(Row::loaded, Kind::stop, node_);
    stop.later = draw_.time_between(milliseconds(1), milliseconds(100));
    stop.number = 0;
    stop.times = 2;
    for (int i = 1; i <= 3; ++i) {
      at_ += seconds(1);
      add(Kind::submit, node_);
    }
  }
  /// The disk becomes full before the last step is saved.
  void last_save_fails() {
    auto& full = add_at(Row::loaded, Kind::full_disk, 0, seconds(8));
    full.later = draw_.time_between(milliseconds(1), milliseconds(50));
    full.number = 0;
  }
  void lose_some() {
    const auto when = draw_.one_of(
        std::array{Row::plan_ready, Row::prepared_some, Row::prepared_all, Row::recover_plans});
    add_at(when, Kind::kill, node_).times = 2;
  }

  Drawing& draw_;
  Scenario& scenario_;
  const Duration length_;
  Duration at_{0};
  const int node_;
  int other_;
};

}  // namespace

void draw_stories(Drawing& draw, Scenario& scenario) { Stories(draw, scenario).draw(); }
void draw_no_paths(Drawing& draw, Scenario& scenario) { Stories(draw, scenario).no_paths(); }
void draw_late_steps(Drawing& draw, Scenario& scenario) { Stories(draw, scenario).late_steps(); }
void draw_late_supervisor(Drawing& draw, Scenario& scenario) {
  Stories(draw, scenario).late_supervisor();
}

}  // namespace troupe::simulation
