#include "simulation/scenario.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>

#include "simulation/cluster.h"
#include "simulation/mischief.h"
#include "storage/checkpoint/checkpoint.h"
#include "storage/checkpoint/ledger.h"

namespace troupe::simulation {
namespace {

using recon::Phase;
using recon::Row;

constexpr Duration time_to_finish = std::chrono::minutes(20);
constexpr std::uint64_t most_copies = 3;  // Limit of copies of a unit in memory; 1: disk only.
constexpr std::uint64_t most_events = 400'000;
constexpr int most_restarts = 5;  // The limit of head restarts after the faults have stopped.

/// Plays one scenario from beginning to end.
class Play {
 public:
  explicit Play(const Scenario& scenario)
      : scenario_(scenario), draw_(scenario.seed * 2 + 1), limits_(draw_limits()) {
    hosts_ = draw(std::int64_t{limits_.fewest}, std::int64_t{7});
    limits_.most = static_cast<int>(hosts_);
    cluster_ = std::make_unique<Cluster>(scenario.seed, draw_network(), draw_model(), limits_);
    auto& world = cluster_->world();
    world.bug = scenario.bug;
    world.steps = limits_.steps;
    world.copies.keep_of_each(1 + static_cast<int>(scenario.seed % most_copies));
    world.save_every = draw(std::int64_t{2}, std::int64_t{9});
    world.costs.step =
        Costs::always(std::chrono::milliseconds(draw(std::int64_t{20}, std::int64_t{200})));
    world.costs.save =
        Costs::always(std::chrono::milliseconds(draw(std::int64_t{1}, std::int64_t{400})));
    planner_is_bad_ = chance(0.2);
    plan_needs_ = chance(0.25) ? draw(std::int64_t{limits_.fewest}, hosts_) : limits_.fewest;
    planner_is_late_ = chance(0.1);
    cluster_->plan_with([this](const recon::MakePlan& make) { return plan(make); });
    cluster_->hooks().answered = [this](const recon::Answer& answer) { answered(answer); };
    cluster_->hooks().decided = [this](std::int64_t step) { decided(step); };
    cluster_->hooks().changed = [this](const recon::State& state) { look_at(state); };
    mischief_ = std::make_unique<Mischief>(*cluster_, hosts_, [this] { return newest_; });
  }

  Story play() {
    auto& world = cluster_->world();
    cluster_->start_head();
    keep_head();
    for (std::int64_t host = 0; host < hosts_; ++host)
      if (host < limits_.fewest || chance(0.8)) cluster_->start_node(host_name(host));
    keep_daemons();
    const Time calm =
        clock().now() + std::chrono::milliseconds(draw(std::int64_t{0}, std::int64_t{10'000}));
    mischief_->plan(calm);
    clock().at(calm, [this] { calm_down(); });
    const Time end = calm + time_to_finish;
    while (!is_over() && violation().empty()) {
      if (!clock().step()) world.monitor.violated("nothing happens any more");
      if (clock().now() > end)
        world.monitor.violated(
            "20 minutes after the last failure the run is still at step " +
            std::to_string(newest_) + ", in phase " +
            std::to_string(cluster_->head() ? static_cast<int>(cluster_->head()->state().phase)
                                            : -1) +
            standing());
      if (clock().events() > most_events) world.monitor.violated("it does not come to its end");
      if (!world.network.flaw().empty()) world.monitor.violated(world.network.flaw());
    }
    if (violation().empty()) look_at_end();
    story_.violation = violation();
    story_.events = clock().events();
    story_.trace = trace_;
    return std::move(story_);
  }

 private:
  Clock& clock() { return cluster_->clock(); }
  const std::string& violation() { return cluster_->world().monitor.violation(); }
  void violated(const std::string& what) { cluster_->world().monitor.violated(what); }
  std::string standing() {
    std::string text;
    for (const auto& one : cluster_->alive()) {
      const auto* node = cluster_->node(one);
      text += " " + one + "#" + std::to_string(node->life()) + ":doing" +
              std::to_string(static_cast<int>(node->member().doing)) + ":epoch" +
              std::to_string(node->member().epoch) + ":step" +
              std::to_string(node->member().decided) + (node->has_left() ? ":left" : "");
    }
    if (cluster_->head())
      for (const auto& [life, node] : cluster_->head()->state().nodes)
        text +=
            " known" + std::to_string(life) + ":use" + std::to_string(static_cast<int>(node.use));
    return text;
  }
  bool is_over() {
    if (!is_calm_ || !cluster_->ended()) return false;
    return cluster_->ended()->code == 0 || restarts_ > most_restarts;
  }

  // Draws before the run use a separate random source.
  std::int64_t draw(std::int64_t least, std::int64_t most) { return draw_.between(least, most); }
  bool chance(double probability) { return draw_.chance(probability); }

  recon::Limits draw_limits() {
    recon::Limits limits;
    limits.fewest = static_cast<int>(draw(1, 3));
    limits.steps = draw(10, 60);
    limits.keep = static_cast<int>(draw(1, 3));
    limits.strikes.quarantine = std::chrono::seconds(5);
    limits.strikes.longest = std::chrono::seconds(30);
    limits.save_patience = std::chrono::seconds(2);
    limits.start_patience = std::chrono::seconds(draw(1, 5));
    limits.hold_time = std::chrono::milliseconds(draw(1, 500));
    limits.saves_between_switches = static_cast<int>(draw(0, 2));
    if (chance(0.6)) limits.suspend_patience = std::chrono::milliseconds(draw(500, 3'000));
    if (chance(0.8)) limits.journal_patience = std::chrono::milliseconds(draw(500, 3'000));
    if (chance(0.1)) limits.inventory_patience = limits.inventory_patience / 100;
    if (chance(0.1)) limits.prepare_patience = limits.prepare_patience / 100;
    if (chance(0.1)) limits.load_patience = limits.load_patience / 50;
    return limits;
  }

  NetworkFaults draw_network() {
    NetworkFaults faults;
    faults.delay = std::chrono::microseconds(draw(20, 5'000));
    if (chance(0.5)) faults.tail = 0.01 * static_cast<double>(draw(0, 5));
    if (chance(0.5)) faults.duplicates = 0.01 * static_cast<double>(draw(0, 5));
    return faults;
  }

  TinyModel draw_model() {
    storage::LedgerTerms terms;
    terms.seed = scenario_.seed;
    terms.count = draw(7, 100);
    terms.micro = draw(1, 2);
    terms.global = terms.micro * draw(1, 3);
    return {static_cast<int>(draw(1, 6)), terms};
  }

  /// Stops all faults and starts as many hosts as the plan needs.
  void calm_down() {
    is_calm_ = true;
    mischief_->stop();
    for (std::int64_t host = 0; host < hosts_; ++host)
      if (host < plan_needs_ || clock().chance(0.5)) cluster_->start_node(host_name(host));
    // Limits shorter than an answer would block the run forever, so the user corrects them.
    const recon::Limits patient;
    const bool is_impatient = limits_.suspend_patience < patient.suspend_patience ||
                              limits_.inventory_patience < patient.inventory_patience ||
                              limits_.prepare_patience < patient.prepare_patience ||
                              limits_.load_patience < patient.load_patience;
    limits_.suspend_patience = patient.suspend_patience;
    limits_.inventory_patience = patient.inventory_patience;
    limits_.prepare_patience = patient.prepare_patience;
    limits_.load_patience = patient.load_patience;
    cluster_->set_limits(limits_);
    if (is_impatient || cluster_->ended()) cluster_->kill_head();
    cluster_->start_head();
  }

  /// Restarts a head that ended early, as a user would.
  void keep_head() {
    clock().after(std::chrono::seconds(1), [this] {
      keep_head();
      if (!cluster_->ended() || cluster_->ended()->code == 0) return;
      if (is_calm_ && ++restarts_ > most_restarts) return;
      cluster_->kill_head();
      cluster_->start_head();
    });
  }

  /// Restarts rejected nodes with a new life, as their daemon would.
  void keep_daemons() {
    clock().after(std::chrono::seconds(1), [this] {
      for (const auto& one : cluster_->alive())
        if (cluster_->node(one)->has_left()) {
          cluster_->kill_node(one, Death::process);
          cluster_->start_node(one);
        }
      keep_daemons();
    });
  }

  recon::PlanMade plan(const recon::MakePlan& make) {
    recon::PlanMade made;
    made.number = planner_is_late_ && clock().chance(0.5) ? 0 : make.number;
    auto members = make.nodes;
    if (std::ssize(members) < plan_needs_) {
      made.why = "no plan is for fewer nodes than " + std::to_string(plan_needs_);
      return made;
    }
    if (planner_is_bad_) {
      // Choose the worst valid plan.
      std::ranges::shuffle(members, clock().random());
      members.resize(static_cast<std::size_t>(clock().between(plan_needs_, std::ssize(members))));
    }
    made.choice = recon::PlanChoice{members, static_cast<double>(members.size()), "drawn"};
    return made;
  }

  // Invariants.

  void note(std::uint64_t what) { trace_ = trace_ * 1099511628211ull + what; }

  void answered(const recon::Answer& answer) {
    if (answer.rows.empty()) ++story_.rows[Row::of_the_past];
    for (const Row row : answer.rows) {
      // If two values have equally many votes, it is unknown what is saved.
      if (row == Row::load_differs && answer.state.phase == Phase::load)
        told_saved_ = answer.state.line;
      ++story_.rows[row];
      note(static_cast<std::uint64_t>(row));
    }
    for (const auto& record : answer.records)
      if (record.kind == recon::Record::Kind::saved)
        told_saved_ = std::max(told_saved_, record.step);
    note(static_cast<std::uint64_t>(clock().now().time_since_epoch().count()));
    last_reason_ = answer.reason;
  }

  void decided(std::int64_t step) {
    if (step <= newest_) ++story_.steps_again;
    newest_ = std::max(newest_, step);
    note(static_cast<std::uint64_t>(step));
  }

  void look_at(const recon::State& state) {
    // A head that cannot read its journal has no term.
    if (state.phase == Phase::boot || state.term == 0 || !cluster_->head()) return;
    const auto head = cluster_->head()->address();
    if (state.term < term_ ||
        (head != last_head_ && state.term == term_ && state.phase != Phase::done))
      violated("a head has no later term than the one before it");
    last_head_ = head;
    if (state.epoch < epoch_) violated("a head has an earlier epoch than one before it");
    story_.epochs = static_cast<std::int64_t>(state.epoch);
    term_ = state.term;
    epoch_ = state.epoch;
    if (std::ssize(state.nodes) > 3 * hosts_)
      violated("a head remembers more nodes than there are");
    if (state.phase == Phase::load && loading_ != std::pair(state.epoch, state.line)) {
      loading_ = {state.epoch, state.line};
      look_at_line(state.line);
    }
    if (state.phase == Phase::halted && !mischief_->may_halt())
      violated("it halted without a reason that a person must look at: " + last_reason_);
  }

  /// Checks that an attempt begins at the newest good checkpoint and repeats no step needlessly.
  void look_at_line(std::int64_t line) {
    const auto found = storage::open_newest_checkpoint(cluster_->world().files,
                                                       std::string(folder) + "/checkpoints");
    if (!found) return;  // All checkpoints are damaged; the nodes will report it.
    const std::int64_t newest = *found ? (*found)->checkpoint.manifest().step : 0;
    // The last sync may fail after all data is written; the reconciler does not count such a save.
    const auto promised = std::min(newest, told_saved_);
    if (line < promised)
      violated("an epoch begins after step " + std::to_string(line) + ", but step " +
               std::to_string(promised) + " is saved");
    if (saved_once_ > 0 && !*found && !mischief_->has_damaged())
      violated("there was a checkpoint, and now there is none");
    saved_once_ = std::max(saved_once_, newest);
  }

  void look_at_end() {
    auto& world = cluster_->world();
    const auto end = *cluster_->ended();
    if (end.code != 0) {
      // If all checkpoints are damaged, the run cannot continue.
      if (!mischief_->has_damaged())
        violated("it ended with code " + std::to_string(end.code) + ": " + end.why + standing() +
                 "; " + last_reason_);
      return;
    }
    const auto found = storage::Checkpoint::open(world.files, checkpoint_folder(limits_.steps));
    // Damage after the write is detected only when the file is read.
    if (!found && mischief_->has_damaged()) return;
    if (!found)
      return violated("it ended well, but the last step cannot be read: " + found.error().text);
    MemoryPool memory;
    for (int unit = 0; unit < world.model.units(); ++unit) {
      const auto tensor = found->load_weight("unit." + std::to_string(unit), memory);
      if (!tensor) return violated("it ended well, but " + tensor.error().text);
      std::uint64_t weight = 0;
      std::memcpy(&weight, tensor->raw(), sizeof weight);
      world.monitor.has(0, unit, limits_.steps, weight);
    }
    const auto bytes = world.files.read(std::string(folder) + "/ledger");
    const auto audited = storage::audit(bytes->text());
    if (!audited.flaw.empty()) return violated("the ledger: " + audited.flaw);
    if (audited.steps != limits_.steps)
      violated("the ledger has " + std::to_string(audited.steps) + " steps of " +
               std::to_string(limits_.steps));
    const auto journal =
        storage::read_records(world.files.read(std::string(folder) + "/journal")->text());
    if (journal.good.empty() || *journal.good.back().value.find("kind")->text() != "ended")
      violated("it ended, but the journal does not say so");
  }

  Scenario scenario_;
  Clock draw_;
  recon::Limits limits_;
  std::int64_t hosts_ = 0;
  bool planner_is_bad_ = false;
  bool planner_is_late_ = false;
  bool is_calm_ = false;
  int restarts_ = 0;
  std::int64_t plan_needs_ = 0;
  std::int64_t newest_ = 0;
  std::int64_t saved_once_ = 0;
  std::int64_t told_saved_ = 0;
  std::uint64_t term_ = 0;
  Network::Address last_head_ = 0;
  std::uint64_t epoch_ = 0;
  std::pair<std::uint64_t, std::int64_t> loading_;
  std::uint64_t trace_ = 14695981039346656037ull;
  std::string last_reason_;
  Story story_;
  std::unique_ptr<Cluster> cluster_;
  std::unique_ptr<Mischief> mischief_;
};

}  // namespace

Story play(const Scenario& scenario) { return Play(scenario).play(); }

}  // namespace troupe::simulation
