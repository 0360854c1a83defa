#include "tests/sim/scenario.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <random>
#include <span>

#include "core/json.h"

namespace troupe::simulation {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Duration = Scheduler::Duration;
using Kind = Fault::Kind;
using actors::decide::Row;

/// Draws the scenario of a seed. The scheduler of the seed draws from a generator of its own, so
/// that a scenario with fewer faults can be played with the same seed.
class Drawing {
 public:
  explicit Drawing(std::uint64_t seed) : bits_(seed) {}

  std::uint64_t below(std::uint64_t bound) { return bits_() % bound; }
  int between(int least, int most) {
    return least + static_cast<int>(below(static_cast<std::uint64_t>(most - least + 1)));
  }
  bool one_in(std::uint64_t count) { return below(count) == 0; }
  template <class T, std::size_t N>
  T one_of(const std::array<T, N>& all) {
    return all.at(below(N));
  }
  Duration time_below(Duration bound) {
    return Duration(below(static_cast<std::uint64_t>(bound.count()) + 1));
  }
  /// Returns a time of which each order of magnitude is as likely as the others.
  Duration time_between(Duration least, Duration most) {
    auto range = std::array<std::int64_t, 64>{};
    std::size_t count = 0;
    for (auto t = least.count(); t < most.count(); t *= 2) range.at(count++) = t;
    const auto from = range.at(below(count));
    return std::min(
        Duration(from + static_cast<std::int64_t>(below(static_cast<std::uint64_t>(from)))), most);
  }

 private:
  std::mt19937_64 bits_;
};

bool is_of_people(Kind kind) { return kind >= Kind::drain && kind <= Kind::submit; }
bool is_of_link(Kind kind) { return kind >= Kind::cut && kind <= Kind::delays; }
/// Whether the fault may stay for ever.
bool may_stay(Kind kind) {
  return kind == Kind::kill || kind == Kind::crash || kind == Kind::freeze || kind == Kind::cut ||
         kind == Kind::cut_one_way || kind == Kind::slow_disk || kind == Kind::full_disk ||
         kind == Kind::cordon;
}

Fault draw_fault(Drawing& draw, Kind kind, const Scenario& scenario) {
  Fault fault;
  fault.kind = kind;
  fault.machine = draw.between(0, scenario.nodes);
  // Most faults are of nodes, because there is one head.
  if (fault.machine != 0 || draw.one_in(2)) fault.machine = draw.between(1, scenario.nodes);
  if (is_of_people(kind)) fault.machine = draw.between(1, scenario.nodes);
  // Nodes save nothing.
  if (kind == Kind::kill_at_call || kind == Kind::crash_at_call || kind == Kind::damage)
    fault.machine = 0;
  fault.other = draw.between(0, scenario.nodes - 1);
  if (fault.other >= fault.machine) ++fault.other;
  fault.number = draw.below(1'000'000);
  fault.lasts = draw.time_between(milliseconds(1), seconds(kind == Kind::freeze ? 60 : 10));
  if (may_stay(kind) && !scenario.stays_healthy.at(static_cast<std::size_t>(fault.machine)) &&
      draw.one_in(4))
    fault.lasts.reset();
  return fault;
}

/// About as long as the run takes if nothing happens.
Duration usual_length(const Scenario& scenario) {
  return scenario.steps * (scenario.micro_batches + 2 * scenario.stages) *
             (scenario.slowest_job + milliseconds(1)) +
         milliseconds(100);
}

std::vector<Fault> draw_faults(Drawing& draw, const Scenario& scenario) {
  std::vector<Kind> on;
  for (std::size_t kind = 0; kind <= static_cast<std::size_t>(Kind::submit); ++kind)
    if (draw.one_in(2)) on.push_back(static_cast<Kind>(kind));
  std::vector<Fault> faults;
  if (on.empty()) return faults;
  const int count = draw.between(1, 14);
  const auto length = usual_length(scenario);
  Duration at{0};
  for (int i = 0; i < count; ++i) {
    auto fault = draw_fault(draw, on.at(draw.below(on.size())), scenario);
    // Half of the faults come soon after another one: while the run recovers from it.
    at = i > 0 && draw.one_in(2) ? at + draw.time_between(milliseconds(1), seconds(1))
                                 : draw.time_below(length);
    fault.at = at;
    faults.push_back(fault);
  }
  std::ranges::stable_sort(faults, {}, &Fault::at);
  return faults;
}

/// Draws faults that come together, or when a head decides by a certain row. Such a story leads to
/// a decision that faults by chance seldom lead to.
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

/// The run ends as a drain comes.
void make_asynchronous(Drawing& draw, Scenario& scenario) {
  scenario.schedule = "pipedream";
  scenario.remedies = draw.one_of(std::array<const char*, 4>{"stale", "ws", "msnag", "ws_ga"});
  // The schedule chooses the weights itself, and steps seldom.
  if (scenario.remedies == "stale" &&
      scenario.micro_batches / scenario.replicas >= std::max(2, scenario.stages))
    scenario.schedule = "pipedream-2bw";
  scenario.steps -= scenario.steps % Scenario::steps_between_drains;
}

/// Control sockets take nothing now and then, most often those of the head.
void fill_queues(Drawing& draw, Scenario& scenario) {
  for (int count = draw.between(1, 6); count > 0; --count) {
    Fault fault;
    fault.kind = Kind::full_queues;
    fault.at = draw.time_below(usual_length(scenario));
    fault.lasts = draw.time_between(milliseconds(1), milliseconds(300));
    fault.machine = draw.one_in(2) ? 0 : draw.between(1, scenario.nodes);
    scenario.faults.push_back(fault);
  }
}

/// A loop or an actor is stuck now and then, most often of the head. In half of the cases a node
/// goes meanwhile: some parts of the head know it before others do.
void get_stuck(Drawing& draw, Scenario& scenario) {
  for (int count = draw.between(1, 6); count > 0; --count) {
    Fault fault;
    fault.kind = Kind::stuck;
    fault.at = draw.time_below(usual_length(scenario));
    fault.lasts = draw.time_between(milliseconds(1), seconds(1));
    fault.machine = draw.one_in(4) ? draw.between(1, scenario.nodes) : 0;
    fault.number = draw.below(1'000'000);
    scenario.faults.push_back(fault);
    if (draw.one_in(2)) continue;
    fault.kind = Kind::kill;
    fault.at += draw.time_below(milliseconds(20));
    fault.lasts = milliseconds(1);
    fault.machine = draw.between(1, scenario.nodes);
    scenario.faults.push_back(fault);
  }
}

/// The head hears a node late, while the others go on without it: its replica hands its gradients
/// to the other one, whose optimizers report steps whose losses are still on their way.
void delay_reports(Drawing& draw, Scenario& scenario) {
  scenario.at_server = true;
  for (int count = draw.between(1, 6); count > 0; --count) {
    Fault fault;
    fault.kind = Kind::delays;
    fault.at = draw.time_below(usual_length(scenario));
    fault.lasts = draw.time_between(milliseconds(10), seconds(1));
    fault.machine = draw.between(1, scenario.nodes);
    fault.number = draw.below(100'000);
    scenario.faults.push_back(fault);
  }
}

/// The run reads a file, which some machines lack or have changed. Enough of those that stay
/// healthy have it.
void use_data_file(Drawing& draw, Scenario& scenario) {
  const auto& healthy = scenario.stays_healthy;
  scenario.data.assign(healthy.size(), DataThere::whole);
  auto spare = std::count(healthy.begin() + 1, healthy.end(), true) - scenario.fewest;
  for (std::size_t i = 1; i < scenario.data.size(); ++i) {
    if ((healthy[i] && spare == 0) || draw.one_in(2)) continue;
    scenario.data[i] = draw.one_in(2) ? DataThere::none : DataThere::changed;
    spare -= healthy[i] ? 1 : 0;
  }
}

/// Draws the faults that were added last, from a generator of their own: the other draws of a seed
/// stay as they were.
void draw_more(Scenario& scenario) {
  Drawing draw(~scenario.seed);
  scenario.is_impatient = draw.one_in(3);
  for (const Kind kind : {Kind::failing_jobs, Kind::kill_again}) {
    if (!draw.one_in(3)) continue;
    auto fault = draw_fault(draw, kind, scenario);
    if (fault.machine == 0) fault.machine = 1;
    fault.at = draw.time_below(seconds(1));
    scenario.faults.push_back(fault);
    // The same on another machine.
    if (kind == Kind::failing_jobs && fault.other > 0 && draw.one_in(2)) {
      fault.machine = fault.other;
      scenario.faults.push_back(fault);
    }
  }
  if (!draw.one_in(16))
    Stories(draw, scenario).draw();
  else if (draw.one_in(4))
    Stories(draw, scenario).no_paths();
  if (draw.one_in(5)) make_asynchronous(draw, scenario);
  if (draw.one_in(6)) scenario.evaluate_every = draw.between(3, 10);
  scenario.at_server = draw.one_in(2);
  // Clipping waits for all stages in each step.
  if (scenario.remedies.empty() && draw.one_in(3))
    scenario.optimizer.insert(scenario.optimizer.size() - 1, R"(, "clip_norm": 0.7)");
  if (draw.one_in(8)) {
    Fault fault;
    fault.kind = Kind::second_head;
    fault.at = draw.time_below(usual_length(scenario));
    fault.lasts = milliseconds(1);
    scenario.faults.push_back(fault);
  }
  if (draw.one_in(4)) fill_queues(draw, scenario);
  if (draw.one_in(3)) get_stuck(draw, scenario);
  if (!scenario.remedies.empty() && scenario.replicas == 2) delay_reports(draw, scenario);
  if (draw.one_in(6) && scenario.remedies.empty()) use_data_file(draw, scenario);
  scenario.has_two_runs = draw.one_in(8);
  if (scenario.nodes > 1 && draw.one_in(4)) Stories(draw, scenario).late_steps();
  if (scenario.nodes > 1 && draw.one_in(4)) Stories(draw, scenario).late_supervisor();
  std::ranges::stable_sort(scenario.faults, {}, &Fault::at);
}

std::string in_seconds(Duration time) {
  std::array<char, 32> text{};
  (void)std::snprintf(text.data(), text.size(), "%.3f s",
                      std::chrono::duration<double>(time).count());
  return text.data();
}

}  // namespace

std::string_view name_of(Kind kind) {
  constexpr std::array<std::string_view, Fault::kinds> names = {
      "kill",         "crash",         "freeze",        "cut",           "cut one way",
      "links end",    "delays",        "old message",   "slow disk",     "full disk",
      "failing call", "kill at call",  "crash at call", "kill at point", "damage",
      "slow jobs",    "drain",         "cordon",        "pause",         "stop",
      "save",         "submit",        "failing jobs",  "kill again",    "torn decision",
      "refusals",     "program fault", "second head",   "full queues",   "stuck"};
  return names.at(static_cast<std::size_t>(kind));
}

std::string to_text(const Fault& fault) {
  std::string text = in_seconds(fault.at) + " " + std::string(name_of(fault.kind));
  if (fault.when)
    text += " at " + std::string(actors::decide::to_string(*fault.when)) + " and " +
            in_seconds(fault.later) +
            (fault.times > 1 ? ", " + std::to_string(fault.times) + " times," : "");
  text += " machine " + std::to_string(fault.machine);
  if (is_of_link(fault.kind) || fault.kind == Kind::old_message)
    text += " and " + std::to_string(fault.other);
  if (!fault.part.empty()) text += ", its " + std::string(fault.part);
  text += fault.lasts ? " for " + in_seconds(*fault.lasts) : " for ever";
  return text + ", number " + std::to_string(fault.number);
}

constexpr auto patient = R"({"strikes": 20, "load_patience": "20s", "head_patience": "30s"})";
constexpr auto impatient = R"({"strikes": 1, "futile_epochs": 1, "start_patience": "2s",
  "prepare_patience": "60ms", "load_patience": "20ms", "suspend_patience": "4s",
  "head_patience": "3s"})";

constexpr auto skips = R"(, "on_spike": "skip", "spike_window": 5, "spike_most": 5)";
constexpr auto made_data = "made:gaussians?dims=4&classes=3";
constexpr auto validation = R"(, "validate": "made:gaussians?dims=4&classes=3&stream=1")";

Value Scenario::config() const {
  std::string evaluations;
  if (evaluate_every > 0)
    evaluations = R"(, "eval_batches": 1, "eval_every": )" + std::to_string(evaluate_every);
  auto tree = parse_json(R"({
    "name": "tiny", "seed": 3,
    "model": {"kind": "mlp", "dims": [4, 8, 8, 8, 3]},
    "data": {"train": ")" +
                         std::string(data.empty() ? made_data : data_path) + R"(")" +
                         std::string(evaluate_every == 0 ? "" : validation) + R"(},
    "batch": {"global": )" +
                         std::to_string(2 * micro_batches) + R"(, "micro": 2},
    "optimizer": )" + optimizer +
                         R"(,
    "precision": {"compute": "fp32"},
    "pipeline": {"schedule": ")" +
                         schedule + R"(", "stages": )" + std::to_string(stages) +
                         R"(, "replicas": )" + std::to_string(replicas) + R"(},
    "parallel": {"exchange": ")" +
                         (at_server ? "server" : "all_to_all") + R"("},
    "elastic": {"nodes": ")" +
                         std::to_string(fewest) + ":" + std::to_string(nodes) + R"(", "copies": )" +
                         std::to_string(copies) + R"(},
    "checkpoint": {"every": ")" +
                         std::to_string(save_every) + R"( steps"},
    "limits": )" + std::string(is_impatient ? impatient : patient) +
                         R"(,
    "train": {"steps": )" +
                         std::to_string(steps) + evaluations +
                         std::string(has_spikes() ? skips : "") + "}}");
  if (!tree) return {};
  if (!remedies.empty())
    tree->set(
        "staleness",
        Value::Map{
            {"preset", remedies, {}},
            {"flush_every", std::int64_t{steps_between_drains * micro_batches / replicas}, {}}});
  return *tree;
}

bool Scenario::lacks_data() const {
  return std::ranges::any_of(
      data, [](DataThere here) { return here == DataThere::none || here == DataThere::changed; });
}

std::string Scenario::recipe() const {
  std::string text = std::to_string(micro_batches) + optimizer +
                     (data.empty() ? "" : " of a file") + (has_spikes() ? " with spikes" : "");
  if (!remedies.empty())
    text += schedule + remedies + std::to_string(stages) + "x" + std::to_string(replicas);
  return text;
}

Scheduler::Options Scenario::options() const {
  return {.seed = seed, .manner = Scheduler::manner_of(seed)};
}

Scenario draw_scenario(std::uint64_t seed) {
  Drawing draw(seed);
  Scenario scenario;
  scenario.seed = seed;
  scenario.has_daemons = draw.one_in(2);
  scenario.nodes = draw.between(1, 4);
  scenario.fewest = draw.between(1, scenario.nodes);
  const int devices = draw.between(1, 4);
  scenario.replicas = devices % 2 == 0 && draw.one_in(2) ? 2 : 1;
  scenario.stages = devices / scenario.replicas;
  scenario.schedule = draw.one_of(std::array<const char*, 3>{"1f1b", "gpipe", "zb-h1"});
  scenario.copies = draw.between(1, 3);
  scenario.steps = draw.between(12, Scenario::most_steps);
  scenario.save_every = draw.between(2, 20);
  scenario.micro_batches = draw.one_of(std::array{2, 4, 8});
  scenario.optimizer = draw.one_of(std::array<const char*, 2>{
      R"({"kind": "sgd", "lr": 0.05, "momentum": 0.9})", R"({"kind": "adamw", "lr": 0.01})"});
  scenario.slowest_job = draw.one_of(
      std::array<Duration, 3>{std::chrono::microseconds(500), milliseconds(3), milliseconds(20)});
  scenario.stays_healthy.assign(static_cast<std::size_t>(scenario.nodes) + 1, false);
  scenario.stays_healthy[0] = true;
  for (int healthy = 0; healthy < scenario.fewest;) {
    auto&& stays = scenario.stays_healthy.at(draw.below(scenario.stays_healthy.size()));
    if (!stays) ++healthy;
    stays = true;
  }
  scenario.faults = draw_faults(draw, scenario);
  draw_more(scenario);
  return scenario;
}

std::string to_text(const Scenario& scenario) {
  std::string text =
      "seed " + std::to_string(scenario.seed) + ": " + std::to_string(scenario.nodes) +
      (scenario.has_daemons ? " nodes with daemons, at least " : " nodes, at least ") +
      std::to_string(scenario.fewest) + "; " + std::to_string(scenario.stages) + " stages, " +
      std::to_string(scenario.replicas) + " replicas, " + scenario.schedule +
      (scenario.remedies.empty() ? "" : " with " + scenario.remedies) + ", " +
      std::to_string(scenario.copies) + " copies; " + std::to_string(scenario.steps) +
      " steps of " + std::to_string(scenario.micro_batches) + " micro-batches, saved every " +
      std::to_string(scenario.save_every) +
      (scenario.evaluate_every == 0
           ? ""
           : ", evaluated every " + std::to_string(scenario.evaluate_every)) +
      "; jobs up to " + in_seconds(scenario.slowest_job) +
      (scenario.is_impatient ? "; short limits" : "") +
      (scenario.has_two_runs ? "; two such runs" : "");
  for (std::size_t i = 0; i < scenario.data.size(); ++i)
    if (scenario.data[i] != DataThere::whole)
      text += "; machine " + std::to_string(i) +
              (scenario.data[i] == DataThere::none ? " lacks the data" : " has other data");
  text += "; healthy in the end:";
  for (std::size_t i = 0; i < scenario.stays_healthy.size(); ++i)
    if (scenario.stays_healthy[i]) text += " " + std::to_string(i);
  for (const auto& fault : scenario.faults) text += "\n  " + to_text(fault);
  return text;
}

}  // namespace troupe::simulation
