#include "tests/sim/scenario.h"

#include <algorithm>
#include <array>

#include "core/json.h"
#include "tests/sim/scenario/drawn_faults.h"
#include "tests/sim/scenario/stories.h"

namespace troupe::simulation {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Duration = Scheduler::Duration;
using Kind = Fault::Kind;

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
    draw_stories(draw, scenario);
  else if (draw.one_in(4))
    draw_no_paths(draw, scenario);
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
  if (scenario.nodes > 1 && draw.one_in(4)) draw_late_steps(draw, scenario);
  if (scenario.nodes > 1 && draw.one_in(4)) draw_late_supervisor(draw, scenario);
  std::ranges::stable_sort(scenario.faults, {}, &Fault::at);
}

}  // namespace

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
      "; jobs up to " + time_text(scenario.slowest_job) +
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
