#include "tests/sim/scenario.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <random>

#include "core/json.h"

namespace troupe::simulation {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Duration = Scheduler::Duration;
using Kind = Fault::Kind;

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

std::vector<Fault> draw_faults(Drawing& draw, const Scenario& scenario) {
  std::vector<Kind> on;
  for (std::size_t kind = 0; kind <= static_cast<std::size_t>(Kind::submit); ++kind)
    if (draw.one_in(2)) on.push_back(static_cast<Kind>(kind));
  std::vector<Fault> faults;
  if (on.empty()) return faults;
  const int count = draw.between(1, 14);
  // About as long as the run takes if nothing happens.
  const auto length = scenario.steps * (scenario.micro_batches + 2 * scenario.stages) *
                          (scenario.slowest_job + milliseconds(1)) +
                      milliseconds(100);
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
  // For longer than a head goes on without writing down what it decides.
  if (draw.one_in(10)) {
    auto fault = draw_fault(draw, Kind::full_disk, scenario);
    fault.machine = 0;
    fault.at = draw.time_below(seconds(1));
    fault.lasts = seconds(70);
    scenario.faults.push_back(fault);
  }
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
      "kill",          "crash",         "freeze",    "cut",       "cut one way",  "links end",
      "delays",        "old message",   "slow disk", "full disk", "failing call", "kill at call",
      "crash at call", "kill at point", "damage",    "slow jobs", "drain",        "cordon",
      "pause",         "stop",          "save",      "submit",    "failing jobs", "kill again"};
  return names.at(static_cast<std::size_t>(kind));
}

std::string to_text(const Fault& fault) {
  std::string text = in_seconds(fault.at) + " " + std::string(name_of(fault.kind));
  text += " machine " + std::to_string(fault.machine);
  if (is_of_link(fault.kind) || fault.kind == Kind::old_message)
    text += " and " + std::to_string(fault.other);
  text += fault.lasts ? " for " + in_seconds(*fault.lasts) : " for ever";
  return text + ", number " + std::to_string(fault.number);
}

constexpr auto patient = R"({"strikes": 20, "load_patience": "20s", "head_patience": "30s"})";
constexpr auto impatient = R"({"strikes": 1, "futile_epochs": 1, "start_patience": "2s",
  "prepare_patience": "60ms", "load_patience": "20ms", "suspend_patience": "4s",
  "head_patience": "3s"})";

Value Scenario::config() const {
  auto tree = parse_json(R"({
    "name": "tiny", "seed": 3,
    "model": {"kind": "mlp", "dims": [4, 8, 8, 8, 3]},
    "data": {"train": "made:gaussians?dims=4&classes=3"},
    "batch": {"global": )" +
                         std::to_string(2 * micro_batches) + R"(, "micro": 2},
    "optimizer": )" + optimizer +
                         R"(,
    "precision": {"compute": "fp32"},
    "pipeline": {"schedule": ")" +
                         schedule + R"(", "stages": )" + std::to_string(stages) +
                         R"(, "replicas": )" + std::to_string(replicas) + R"(},
    "elastic": {"nodes": ")" +
                         std::to_string(fewest) + ":" + std::to_string(nodes) + R"(", "copies": )" +
                         std::to_string(copies) + R"(},
    "checkpoint": {"every": ")" +
                         std::to_string(save_every) + R"( steps"},
    "limits": )" + std::string(is_impatient ? impatient : patient) +
                         R"(,
    "train": {"steps": )" +
                         std::to_string(steps) + R"(}})");
  return tree ? *tree : Value();
}

std::string Scenario::recipe() const { return std::to_string(micro_batches) + optimizer; }

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
      std::to_string(scenario.replicas) + " replicas, " + scenario.schedule + ", " +
      std::to_string(scenario.copies) + " copies; " + std::to_string(scenario.steps) +
      " steps of " + std::to_string(scenario.micro_batches) + " micro-batches, saved every " +
      std::to_string(scenario.save_every) + "; jobs up to " + in_seconds(scenario.slowest_job) +
      (scenario.is_impatient ? "; short limits" : "") + "; healthy in the end:";
  for (std::size_t i = 0; i < scenario.stays_healthy.size(); ++i)
    if (scenario.stays_healthy[i]) text += " " + std::to_string(i);
  for (const auto& fault : scenario.faults) text += "\n  " + to_text(fault);
  return text;
}

}  // namespace troupe::simulation
