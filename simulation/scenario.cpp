#include "simulation/scenario.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "simulation/cluster.h"
#include "storage/checkpoint.h"
#include "storage/ledger.h"

namespace troupe::simulation {
namespace {

using recon::Phase;
using recon::Row;

constexpr Duration longest_pause = std::chrono::seconds(4);
constexpr Duration time_to_finish = std::chrono::minutes(20);
constexpr std::uint64_t most_events = 400'000;

/// What may happen, and how often in a second; each is 0 in about half of all scenarios.
struct Faults {
  double kill_process = 0, kill_host = 0, pause_node = 0, slow_node = 0, cut = 0, notice = 0;
  double kill_head = 0, pause_head = 0, crash_disk = 0, full_disk = 0, failing_sync = 0,
         flip_bit = 0;
  double arrival = 0, failing_step = 0, failing_prepare = 0, suspicion = 0, stale = 0, drain = 0;
  double all_at_once = 0;
};

/// One run from its beginning to its end.
class Play {
 public:
  explicit Play(const Scenario& scenario)
      : scenario_(scenario), draw_(scenario.seed * 2 + 1), limits_(draw_limits()) {
    hosts_ = draw(std::int64_t{limits_.fewest}, std::int64_t{7});
    limits_.most = static_cast<int>(hosts_);
    faults_ = draw_faults();
    cluster_ = std::make_unique<Cluster>(scenario.seed, draw_network(), draw_model(), limits_);
    auto& world = cluster_->world();
    world.bug = scenario.bug;
    world.steps = limits_.steps;
    world.save_every = draw(std::int64_t{2}, std::int64_t{9});
    const Duration step = std::chrono::milliseconds(draw(std::int64_t{20}, std::int64_t{200}));
    world.costs.step = Costs::always(step);
    world.costs.save =
        Costs::always(std::chrono::milliseconds(draw(std::int64_t{1}, std::int64_t{400})));
    planner_is_bad_ = chance(0.2);
    planner_is_late_ = chance(0.1);
    cluster_->plan_with([this](const recon::MakePlan& make) { return plan(make); });
    cluster_->ears().answered = [this](const recon::Answer& answer) { answered(answer); };
    cluster_->ears().decided = [this](std::int64_t step) { decided(step); };
    cluster_->ears().changed = [this](const recon::State& state) { look_at(state); };
  }

  Story play() {
    auto& world = cluster_->world();
    cluster_->start_head();
    for (std::int64_t host = 0; host < hosts_; ++host)
      if (host < limits_.fewest || chance(0.8)) cluster_->start_node(name(host));
    const Time calm =
        clock().now() + std::chrono::milliseconds(draw(std::int64_t{0}, std::int64_t{15'000}));
    plan_faults(calm);
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
  static std::string name(std::int64_t host) { return "host" + std::to_string(host); }
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
  bool is_over() { return cluster_->ended() && is_calm_; }

  // What is drawn before the run begins has a source of its own.
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

  Faults draw_faults() {
    const auto rate = [this](double most) {
      const double drawn = draw_.uniform() * most;
      return chance(0.5) ? drawn : 0;
    };
    Faults faults;
    faults.kill_process = rate(0.5);
    faults.kill_host = rate(0.3);
    faults.pause_node = rate(0.4);
    faults.slow_node = rate(0.2);
    faults.cut = rate(0.5);
    faults.notice = rate(0.3);
    faults.kill_head = rate(0.3);
    faults.pause_head = rate(0.2);
    faults.crash_disk = rate(0.1);
    faults.full_disk = rate(0.15);
    faults.failing_sync = rate(0.15);
    faults.flip_bit = rate(0.1);
    faults.arrival = rate(1.0);
    faults.failing_step = rate(0.3);
    faults.failing_prepare = rate(0.3);
    faults.suspicion = rate(0.3);
    faults.stale = rate(0.5);
    faults.drain = rate(0.2);
    faults.all_at_once = rate(0.1);
    return faults;
  }

  void plan_faults(Time calm) {
    const auto often = [&](double rate, auto happens) {
      if (rate <= 0) return;
      std::exponential_distribution<double> gap(rate);
      for (Time at = clock().now();;) {
        at += std::chrono::duration_cast<Duration>(
            std::chrono::duration<double>(gap(clock().random())));
        if (at >= calm) return;
        clock().at(at, happens);
      }
    };
    auto& world = cluster_->world();
    often(faults_.kill_process, [this] { kill(any(), Death::process); });
    often(faults_.kill_host, [this] { kill(any(), Death::host); });
    often(faults_.all_at_once, [this] {
      for (const auto& one : cluster_->alive()) kill(one, Death::host);
    });
    often(faults_.pause_node, [this] {
      if (auto* node = cluster_->node(any()))
        node->pause(clock().between(Duration(0), longest_pause));
    });
    often(faults_.slow_node, [this] {
      if (auto* node = cluster_->node(any()))
        node->slow_down(static_cast<double>(clock().between(1, 5)));
    });
    often(faults_.cut, [this] { cut(); });
    often(faults_.notice, [this] { notice(); });
    often(faults_.kill_head, [this] { kill_head(); });
    often(faults_.pause_head, [this] {
      if (cluster_->head()) cluster_->head()->pause(clock().between(Duration(0), longest_pause));
    });
    often(faults_.crash_disk, [this] { crash_disk(); });
    often(faults_.full_disk, [this, &world] {
      disk_.capacity = 0;
      set_disk(world);
      clock().after(clock().between(Duration(0), longest_pause), [this, &world] {
        disk_.capacity.reset();
        set_disk(world);
      });
    });
    often(faults_.failing_sync, [this, &world] {
      disk_.failing_call = world.files.calls() + clock().between(0, 20);
      set_disk(world);
      had_disk_faults_ = true;
    });
    often(faults_.flip_bit, [this] { flip_bit(); });
    often(faults_.arrival, [this] { cluster_->start_node(name(clock().between(0, hosts_ - 1))); });
    often(faults_.failing_step, [this] {
      if (auto* node = cluster_->node(any())) node->fail_next_step();
    });
    often(faults_.failing_prepare, [this] {
      if (auto* node = cluster_->node(any())) node->fail_next_prepare();
    });
    often(faults_.suspicion, [this] {
      auto* node = cluster_->node(any());
      if (node && cluster_->head()) cluster_->head()->hear(recon::Suspected{node->life(), "drawn"});
      if (node && cluster_->head()) cluster_->head()->hear(recon::Slow{node->life(), "drawn"});
    });
    often(faults_.stale, [this] { say_something_stale(); });
    often(faults_.drain, [this] {
      if (cluster_->head()) cluster_->head()->hear(recon::DrainAsked{any()});
    });
  }

  void set_disk(World& world) { world.files.set_faults(disk_); }

  std::string any() {
    const auto names = cluster_->alive();
    if (names.empty()) return {};
    return names[static_cast<std::size_t>(clock().between(0, std::ssize(names) - 1))];
  }

  void kill(const std::string& which, Death death) {
    if (is_calm_) return;
    cluster_->kill_node(which, death);
    // Who is gone may come back.
    if (clock().chance(0.7))
      clock().after(clock().between(Duration(0), longest_pause), [this, which] {
        if (!which.empty()) cluster_->start_node(which);
      });
  }

  void notice() {
    const auto which = any();
    auto* node = cluster_->node(which);
    if (!node) return;
    const Duration left = clock().between(Duration(0), longest_pause);
    node->give_notice(left);
    // Some go earlier than they say, and some never.
    if (clock().chance(0.8))
      clock().after(clock().between(Duration(0), 2 * left),
                    [this, which] { kill(which, Death::process); });
  }

  void cut() {
    auto* node = cluster_->node(any());
    auto* other = cluster_->node(any());
    if (!node || !other) return;
    auto& network = cluster_->world().network;
    const Duration time = clock().between(Duration(0), longest_pause);
    const bool from_head = clock().chance(0.6) && cluster_->head();
    const auto far = from_head ? cluster_->head()->address() : other->life();
    if (clock().chance(0.7)) network.cut(node->life(), far, time);
    if (clock().chance(0.7)) network.cut(far, node->life(), time);
    if (from_head && clock().chance(0.5)) cluster_->head()->closed(node->life());
  }

  void kill_head() {
    cluster_->kill_head();
    clock().after(clock().between(Duration(0), longest_pause), [this] { cluster_->start_head(); });
  }

  /// The machine with the disk goes down, and the head with it.
  void crash_disk() {
    using S = storage::Survival;
    auto& world = cluster_->world();
    cluster_->kill_head();
    const auto entries = clock().chance(0.5) ? S::Entries::kept : S::Entries::lost;
    const auto contents = static_cast<S::Contents>(clock().between(0, 2));
    world.files.restart({entries, contents});
    disk_ = {};
    // Whoever was saving was not: their writers are gone, but nobody else is.
    clock().after(clock().between(Duration(0), longest_pause), [this] { cluster_->start_head(); });
  }

  /// In a file of the newest checkpoint.
  void flip_bit() {
    if (cluster_->ended()) return;
    auto& files = cluster_->world().files;
    const auto listed = storage::list_checkpoints(files, std::string(folder) + "/checkpoints");
    if (!listed || listed->empty()) return;
    const auto& directory = listed->front().directory;
    const auto inside = files.list(directory);
    if (!inside || inside->empty()) return;
    const auto& file =
        (*inside)[static_cast<std::size_t>(clock().between(0, std::ssize(*inside) - 1))];
    if (file.bytes == 0) return;
    files.flip_bit(directory + "/" + file.name, static_cast<std::uint64_t>(clock().between(
                                                    0, static_cast<std::int64_t>(file.bytes) - 1)));
    had_damage_ = true;
  }

  /// What was true once, said again by nobody in particular.
  void say_something_stale() {
    auto* node = cluster_->node(any());
    if (!node || node->member().epoch == 0) return;
    const auto before = node->member().epoch - 1;
    const auto say = [&](auto order) {
      auto message = transport::to_message(order);
      message.term = node->member().term;
      cluster_->world().network.send(0, node->life(), message);
    };
    switch (clock().between(0, 4)) {
      case 0:
        return say(recon::Activate{before, {}, 0});
      case 1:
        return say(recon::Freeze{before, {}});
      case 2:
        return say(recon::Abort{before, {}});
      case 3:
        return say(recon::Load{before, {}, 0});
      default:
        return say(recon::Save{1, before, 1, recon::Meanwhile::hold});
    }
  }

  /// From now on nothing happens that should not, and all hosts are there.
  void calm_down() {
    is_calm_ = true;
    disk_ = {};
    set_disk(cluster_->world());
    for (std::int64_t host = 0; host < hosts_; ++host) cluster_->start_node(name(host));
    for (const auto& one : cluster_->alive()) cluster_->node(one)->slow_down(1);
    if (!cluster_->head() || cluster_->ended()) cluster_->kill_head();
    cluster_->start_head();
    keep_alive();
  }

  /// Who was sent away comes back as another life, as its daemon would see to it.
  void keep_alive() {
    clock().after(std::chrono::seconds(1), [this] {
      for (const auto& one : cluster_->alive())
        if (cluster_->node(one)->has_left()) {
          cluster_->kill_node(one, Death::process);
          cluster_->start_node(one);
        }
      // A head that was halted by a full disk is begun again by a person.
      if (cluster_->head() && cluster_->ended() && cluster_->ended()->code != 0 && may_halt()) {
        cluster_->kill_head();
        cluster_->start_head();
      }
      keep_alive();
    });
  }

  recon::PlanMade plan(const recon::MakePlan& make) {
    recon::PlanMade made;
    made.number = planner_is_late_ && clock().chance(0.5) ? 0 : make.number;
    auto members = make.nodes;
    if (std::ssize(members) < limits_.fewest) {
      made.why = "no plan is for fewer nodes than the fewest";
      return made;
    }
    if (planner_is_bad_) {
      // The worst that is legal.
      std::ranges::shuffle(members, clock().random());
      const auto fewest = static_cast<std::int64_t>(limits_.fewest);
      members.resize(static_cast<std::size_t>(clock().between(fewest, std::ssize(members))));
    }
    made.choice = recon::PlanChoice{members, static_cast<double>(members.size()), "drawn"};
    return made;
  }

  // What must be.

  void note(std::uint64_t what) { trace_ = trace_ * 1099511628211ull + what; }

  void answered(const recon::Answer& answer) {
    if (answer.rows.empty()) ++story_.rows[Row::of_the_past];
    for (const Row row : answer.rows) {
      ++story_.rows[row];
      note(static_cast<std::uint64_t>(row));
    }
    note(static_cast<std::uint64_t>(clock().now().time_since_epoch().count()));
    last_reason_ = answer.reason;
  }

  void decided(std::int64_t step) {
    if (step <= newest_) ++story_.steps_again;
    newest_ = std::max(newest_, step);
    note(static_cast<std::uint64_t>(step));
  }

  void look_at(const recon::State& state) {
    if (state.phase == Phase::boot || !cluster_->head()) return;
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
    if (state.phase == Phase::halted && !may_halt())
      violated("it halted without a reason that a person must look at: " + last_reason_);
  }

  bool may_halt() const {
    return had_damage_ || had_disk_faults_ || faults_.full_disk > 0 || faults_.crash_disk > 0 ||
           faults_.failing_step > 0;
  }

  /// An epoch begins where the newest good checkpoint ends: no step is done again that need not be.
  void look_at_line(std::int64_t line) {
    const auto found = storage::open_newest_checkpoint(cluster_->world().files,
                                                       std::string(folder) + "/checkpoints");
    if (!found) return;  // All are damaged: the nodes will say so.
    const std::int64_t newest = *found ? (*found)->checkpoint.manifest().step : 0;
    if (line < newest)
      violated("an epoch begins after step " + std::to_string(line) + ", but step " +
               std::to_string(newest) + " is saved");
    if (saved_once_ > 0 && !*found && !had_damage_)
      violated("there was a checkpoint, and now there is none");
    saved_once_ = std::max(saved_once_, newest);
  }

  void look_at_end() {
    auto& world = cluster_->world();
    const auto end = *cluster_->ended();
    if (end.code != 0) {
      if (!may_halt()) violated("it ended with code " + std::to_string(end.code) + ": " + end.why);
      return;
    }
    const auto found = storage::Checkpoint::open(world.files, checkpoint_folder(limits_.steps));
    // What is damaged after it was written is found by whoever reads it.
    if (!found && had_damage_) return;
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
  Faults faults_;
  storage::FileFaults disk_;
  bool planner_is_bad_ = false;
  bool planner_is_late_ = false;
  bool is_calm_ = false;
  bool had_damage_ = false;
  bool had_disk_faults_ = false;
  std::int64_t newest_ = 0;
  std::int64_t saved_once_ = 0;
  std::uint64_t term_ = 0;
  Network::Address last_head_ = 0;
  std::uint64_t epoch_ = 0;
  std::pair<std::uint64_t, std::int64_t> loading_;
  std::uint64_t trace_ = 14695981039346656037ull;
  std::string last_reason_;
  Story story_;
  std::unique_ptr<Cluster> cluster_;
};

}  // namespace

Story play(const Scenario& scenario) { return Play(scenario).play(); }

}  // namespace troupe::simulation
