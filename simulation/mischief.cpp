#include "simulation/mischief.h"

#include <random>
#include <utility>

#include "core/units.h"
#include "simulation/played_message.h"
#include "storage/checkpoint/checkpoint.h"
#include "storage/files/records.h"

namespace troupe::simulation {
namespace {

using Contents = storage::Survival::Contents;
using Entries = storage::Survival::Entries;

constexpr Duration longest_while = std::chrono::seconds(4);
const std::string spoilt_path = std::string(folder) + "/journal";

}  // namespace

std::string host_name(std::int64_t host) { return "host" + std::to_string(host); }

Mischief::Mischief(Cluster& cluster, std::int64_t hosts, std::function<std::int64_t()> newest)
    : cluster_(cluster), hosts_(hosts), newest_(std::move(newest)) {
  // The crash falls between the write of the record and its sync.
  cluster_.hooks().writes = [this] {
    if (std::exchange(tears_journal_, false)) crash_disk(1, Contents::torn);
  };
}

void Mischief::plan(Time until) {
  until_ = until;
  plan_deaths();
  plan_delays();
  plan_failures();
  plan_disk();
  plan_orders();
}

void Mischief::stop() {
  is_stopped_ = true;
  tears_journal_ = false;
  go_down({});
  disk_ = {};
  files().set_faults(disk_);
  mend_journal();
  cluster_.kill_rivals();
  for (const auto& name : cluster_.alive()) {
    auto& node = *cluster_.node(name);
    node.slow_down(1);
    node.poison(0);
    node.fail_prepares(0);
    node.fail_saves(0);
  }
}

/// Schedules an event at random times: never, or at a drawn rate of up to `most` per second.
template <class Happens>
void Mischief::often(double most, Happens happens) {
  const double rate = clock().chance(0.5) ? clock().uniform() * most : 0;
  if (rate <= 0) return;
  std::exponential_distribution<double> gap(rate);
  for (Time at = clock().now();;) {
    at += from_seconds(gap(clock().random()));
    if (at >= until_) return;
    clock().at(at, happens);
  }
}

Duration Mischief::a_while() { return clock().between(Duration(0), longest_while); }

/// Returns a random live node, or null if there is none.
Node* Mischief::any() {
  const auto names = cluster_.alive();
  if (names.empty()) return nullptr;
  return cluster_.node(names[static_cast<std::size_t>(clock().between(0, std::ssize(names) - 1))]);
}

// Process faults.

void Mischief::plan_deaths() {
  const auto kill_any = [this](Death death) {
    if (const auto* node = any()) kill(node->name(), death);
  };
  often(0.5, [kill_any] { kill_any(Death::process); });
  often(0.3, [kill_any] { kill_any(Death::host); });
  often(0.2, [this] {
    for (const auto& name : cluster_.alive()) kill(name, Death::host);
  });
  often(2.5, [this] { notice(); });
  often(1.0, [this] { cluster_.start_node(host_name(clock().between(0, hosts_ - 1))); });
  often(0.3, [this] { kill_head(); });
  often(0.2, [this] {
    if (cluster_.head() && !cluster_.ended()) cluster_.start_rival();
  });
}

void Mischief::kill(const std::string& which, Death death) {
  if (is_stopped_) return;
  const std::string name = which;
  cluster_.kill_node(name, death);
  // A killed node may come back.
  if (clock().chance(0.7)) clock().after(a_while(), [this, name] { cluster_.start_node(name); });
}

void Mischief::notice() {
  auto* node = any();
  if (!node) return;
  const bool is_short = clock().chance(0.3);
  const Duration left =
      clock().between(Duration(0), is_short ? std::chrono::milliseconds(50) : longest_while);
  node->give_notice(left);
  // A node may end before its notice expires, at once, or never.
  const Duration latest = clock().chance(0.25) ? std::chrono::milliseconds(100) : 2 * left;
  if (clock().chance(0.8)) kill_within(latest, node->name());
}

void Mischief::kill_within(Duration latest, const std::string& name) {
  clock().after(clock().between(Duration(0), latest), [this, name] { kill(name, Death::process); });
}

void Mischief::kill_head() {
  cluster_.kill_head();
  clock().after(a_while(), [this] { cluster_.start_head(); });
}

void Mischief::plan_delays() {
  often(0.4, [this] {
    if (auto* node = any()) node->pause(a_while());
  });
  often(0.2, [this] {
    if (auto* node = any()) node->slow_down(static_cast<double>(clock().between(1, 5)));
  });
  often(0.2, [this] {
    if (cluster_.head()) cluster_.head()->pause(a_while());
  });
  often(0.5, [this] { cut(); });
}

void Mischief::cut() {
  const auto* node = any();
  const auto* other = any();
  if (!node || !other) return;
  auto& network = cluster_.world().network;
  const Duration time = a_while();
  const bool from_head = clock().chance(0.6) && cluster_.head();
  const auto far = from_head ? cluster_.head()->address() : other->life();
  if (clock().chance(0.7)) network.cut(node->life(), far, time);
  if (clock().chance(0.7)) network.cut(far, node->life(), time);
  if (from_head && clock().chance(0.5)) cluster_.head()->closed(node->life());
}

// Faults of nodes.

void Mischief::plan_failures() {
  often(0.3, [this] {
    may_halt_ = true;
    if (auto* node = any()) node->fail_next_step();
  });
  often(0.3, [this] {
    if (auto* node = any()) node->fail_prepares(1);
  });
  often(0.5, [this] {
    if (auto* node = any()) node->fail_next_load();
  });
  often(0.5, [this] {
    may_halt_ = true;
    if (auto* node = any()) node->misread_next();
  });
  // Often enough that every attempt to save may fail.
  often(0.4, [this] {
    may_halt_ = true;
    if (auto* node = any()) node->fail_saves(static_cast<int>(clock().between(1, 5)));
  });
  // Every node that plays this step fails.
  often(0.6, [this] {
    may_halt_ = true;
    for (const auto& name : cluster_.alive()) cluster_.node(name)->poison(newest_() + 2);
  });
  // Several attempts in a row fail.
  often(0.3, [this] {
    may_halt_ = true;
    for (const auto& name : cluster_.alive()) {
      cluster_.node(name)->fail_prepares(static_cast<int>(clock().between(3, 8)));
      cluster_.node(name)->fail_next_step();
    }
  });
}

// Disk faults.

void Mischief::plan_disk() {
  often(0.2, [this] {
    crash_disk(clock().between(0, 12), static_cast<Contents>(clock().between(0, 3)));
  });
  often(0.3, [this] { tears_journal_ = true; });
  often(0.9, [this] { fill_disk(); });
  often(0.15, [this] {
    may_halt_ = true;
    disk_.failing_call = files().calls() + clock().between(0, 20);
    files().set_faults(disk_);
  });
  often(0.3, [this] { flip_bit(); });
  often(0.2, [this] { spoil_journal(); });
}

/// Crashes the machine with the disk during a write; the head dies with it.
void Mischief::crash_disk(std::int64_t calls, Contents contents) {
  if (spoiled_ || disk_.crash_at) return;
  may_halt_ = true;
  disk_.crash_at = files().calls() + calls;
  files().set_faults(disk_);
  clock().after(clock().between(Duration(0), std::chrono::milliseconds(500)), [this, contents] {
    go_down({static_cast<Entries>(clock().between(0, 2)), contents, clock().random()()});
  });
}

/// Ends the heads, restarts the crashed disk, and starts a head later. The nodes survive.
void Mischief::go_down(const storage::Survival& survival) {
  if (!disk_.crash_at) return;
  cluster_.kill_head();
  cluster_.kill_rivals();
  files().restart(survival);
  disk_ = {};
  clock().after(a_while(), [this] { cluster_.start_head(); });
}

void Mischief::fill_disk() {
  may_halt_ = true;
  disk_.capacity = 0;
  files().set_faults(disk_);
  clock().after(clock().between(Duration(0), 2 * longest_while), [this] {
    disk_.capacity.reset();
    files().set_faults(disk_);
  });
}

/// Flips a bit of the journal while no head runs; the user restores it after a while.
void Mischief::spoil_journal() {
  if (spoiled_ || disk_.crash_at || !files().is_durable(spoilt_path)) return;
  const auto journal = files().read(spoilt_path);
  // A torn record is ignored, so a flipped bit in it would have no effect.
  if (!journal || journal->text().empty() || storage::read_records(journal->text()).is_torn) return;
  may_halt_ = true;
  cluster_.kill_head();
  cluster_.kill_rivals();
  spoiled_ = static_cast<std::uint64_t>(clock().between(0, std::ssize(journal->text()) - 1));
  files().flip_bit(spoilt_path, *spoiled_);
  clock().after(clock().between(Duration(0), std::chrono::seconds(1)),
                [this] { cluster_.start_head(); });
  clock().after(longest_while, [this] { mend_journal(); });
}

void Mischief::mend_journal() {
  if (!spoiled_) return;
  cluster_.kill_head();
  files().flip_bit(spoilt_path, *std::exchange(spoiled_, std::nullopt));
  cluster_.start_head();
}

/// Flips a bit in a file of the newest checkpoint.
void Mischief::flip_bit() {
  if (cluster_.ended()) return;
  const auto listed = storage::list_checkpoints(files(), std::string(folder) + "/checkpoints");
  if (!listed || listed->empty()) return;
  const auto& directory = listed->front().directory;
  const auto inside = files().list(directory);
  if (!inside || inside->empty()) return;
  const auto& file =
      (*inside)[static_cast<std::size_t>(clock().between(0, std::ssize(*inside) - 1))];
  if (file.bytes == 0) return;
  files().flip_bit(directory + "/" + file.name, static_cast<std::uint64_t>(clock().between(
                                                    0, static_cast<std::int64_t>(file.bytes) - 1)));
  has_damaged_ = may_halt_ = true;
}

// Requests of users and detectors.

void Mischief::plan_orders() {
  const auto hear = [this](const recon::Event& event) {
    if (cluster_.head()) cluster_.head()->hear(event);
  };
  often(0.3, [this, hear] {
    if (const auto* node = any()) {
      hear(recon::Suspected{node->life(), "drawn"});
      hear(recon::Slow{node->life(), "drawn"});
    }
  });
  often(0.5, [this, hear] {
    const auto* node = any();
    if (!node) return;
    hear(recon::DrainAsked{node->name()});
    // The node may end before it is drained.
    if (clock().chance(0.25)) kill_within(std::chrono::milliseconds(100), node->name());
  });
  often(0.2, [hear] { hear(recon::StopAsked{}); });
  often(0.5, [this] { say_something_stale(); });
}

/// Sends a node an order of an earlier attempt, from no particular sender.
void Mischief::say_something_stale() {
  auto* node = any();
  if (!node || node->member().epoch == 0) return;
  const auto before = node->member().epoch - 1;
  const auto say = [&](auto order) {
    auto message = to_played(order);
    message.term = node->member().term;
    cluster_.world().network.send(0, node->life(), message);
  };
  switch (clock().between(0, 4)) {
    case 0:
      return say(recon::Activate{before, {}, 0});
    case 1:
      return say(recon::Freeze{before, {}});
    case 2:
      return say(recon::Abort{before, {}});
    case 3:
      return say(recon::Load{before, {}, {}});
    default:
      return say(recon::Save{1, before, 1, recon::Meanwhile::hold});
  }
}

}  // namespace troupe::simulation
