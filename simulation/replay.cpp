#include "simulation/replay.h"

#include <algorithm>
#include <deque>
#include <map>
#include <utility>

#include "core/units.h"

namespace troupe::simulation {
namespace {

using recon::Phase;
using recon::Row;

bool has(const recon::Answer& answer, Row row) { return std::ranges::count(answer.rows, row) > 0; }

class Replay {
 public:
  explicit Replay(const ReplayOptions& options)
      : options_(options), cluster_(options.seed, {}, model(), options.limits) {
    auto& world = cluster_.world();
    world.beats = false;
    world.copies.keep_of_each(options.copies);
    const auto of_plan = [this](Duration fixed, Duration HostPlan::*what) {
      return [this, fixed, what](const recon::PlanChoice& plan) {
        const auto found = plans_.find(plan.text);
        return fixed + (found == plans_.end() ? Duration(0) : found->second.*what);
      };
    };
    world.costs.load = of_plan(std::chrono::milliseconds(30), &HostPlan::store);
    world.costs.fetch = of_plan(std::chrono::milliseconds(30), &HostPlan::fetch);
    world.costs.save = of_plan(std::chrono::milliseconds(100), &HostPlan::store);
    world.costs.copy = of_plan(Duration(0), &HostPlan::copy);
    world.costs.step = [](const recon::PlanChoice& plan) { return from_seconds(1 / plan.rate); };
    world.steps = options.limits.steps;
    world.save_every = options.save_every;
    for (std::size_t host = 0; host < options.hosts.size(); ++host)
      number_of_[options.hosts[host]] = static_cast<int>(host);
    cluster_.notice_silence_after(silence_until_dead(static_cast<int>(options.hosts.size())));
    cluster_.plan_with([this](const recon::MakePlan& make) { return plan(make); });
    cluster_.hooks().answered = [this](const recon::Answer& answer) { answered(answer); };
    cluster_.hooks().decided = [this](std::int64_t step) { decided(step); };
    begun_ = phase_since_ = nodes_since_ = now();
  }

  ReplayReport run() {
    cluster_.start_head();
    schedule_trace();
    const Time end = begun_ + options_.length;
    auto& monitor = cluster_.world().monitor;
    while (now() < end && !cluster_.ended() && monitor.violation().empty())
      if (!cluster_.clock().step()) break;
    count_phase();
    count_nodes();
    report_.length = now() - begun_;
    report_.flaw = monitor.violation();
    const double all = in_seconds(report_.length);
    report_.mean_nodes /= std::max(all, 1e-9);
    report_.rest = all - report_.useful - report_.again - report_.starting - report_.waiting -
                   report_.recovering;
    return std::move(report_);
  }

 private:
  TinyModel model() const {
    // One unit per host, so that every host has a part.
    return {static_cast<int>(options_.hosts.size()), storage::LedgerTerms{}};
  }
  Time now() { return cluster_.clock().now(); }
  Duration since_begin() { return now() - begun_; }

  void schedule_trace() {
    std::map<std::string, std::string> host_of;
    auto& clock = cluster_.clock();
    if (options_.trace.empty())
      for (const auto& host : options_.hosts) come(host);
    for (const auto& change : options_.trace) {
      const auto known = host_of.find(change.node);
      if (known == host_of.end() && host_of.size() == options_.hosts.size()) continue;
      const std::string host =
          known != host_of.end() ? known->second : options_.hosts[host_of.size()];
      host_of.emplace(change.node, host);
      switch (change.what) {
        case Change::What::comes:
          clock.at(begun_ + change.at, [this, host] { come(host); });
          break;
        case Change::What::goes:
          if (options_.notice > Duration(0) && change.at > options_.notice)
            clock.at(begun_ + change.at - options_.notice, [this, host] {
              if (auto* node = cluster_.node(host)) node->give_notice(options_.notice);
            });
          clock.at(begun_ + change.at, [this, host] { go(host); });
          break;
      }
    }
  }

  void come(const std::string& host) {
    if (cluster_.node(host)) return;
    count_nodes();
    cluster_.start_node(host);
    ++report_.arrivals;
    tell("node.joined").set("node", host);
  }

  void go(const std::string& host) {
    if (!cluster_.node(host)) return;
    count_nodes();
    cluster_.kill_node(host, Death::host);
    ++report_.losses;
    tell("node.lost").set("node", host);
    gone_[host] = now();
  }

  void count_nodes() {
    report_.mean_nodes +=
        in_seconds(now() - nodes_since_) * static_cast<double>(cluster_.alive().size());
    nodes_since_ = now();
  }

  recon::PlanMade plan(const recon::MakePlan& make) {
    const auto& nodes = cluster_.head()->state().nodes;
    std::map<int, Life> lives;
    std::vector<int> hosts;
    for (const Life life : make.nodes)
      if (const auto found = nodes.find(life); found != nodes.end()) {
        const int host = number_of_.at(found->second.name);
        lives[host] = life;
        hosts.push_back(host);
      }
    std::ranges::sort(hosts);
    const HostPlan made = options_.plan(hosts);
    if (made.hosts.empty()) return {make.number, {}, made.text};
    plans_[made.text] = made;
    recon::PlanChoice choice{{}, made.rate, made.text};
    for (const int host : made.hosts) choice.members.push_back(lives.at(host));
    return {make.number, choice, {}};
  }

  void decided(std::int64_t step) {
    const double time = 1 / cluster_.head()->state().plan.rate;
    if (step <= report_.steps) {
      ++report_.steps_again;
      report_.again += time;
      if (open_) ++open_->steps_again;
      return;
    }
    report_.steps = step;
    report_.useful += time;
    if (open_ && phase_ == Phase::run) {
      open_->again += part();
      close();
    }
  }

  void count_phase() {
    const double time = in_seconds(now() - phase_since_);
    phase_since_ = now();
    switch (phase_) {
      case Phase::boot:
      case Phase::gather:
        report_.starting += time;
        break;
      case Phase::plan:
      case Phase::prepare:
      case Phase::load:
      case Phase::recover:
        (report_.plans.empty() ? report_.starting : report_.recovering) += time;
        break;
      case Phase::suspend:
        report_.waiting += time;
        break;
      case Phase::run:
      case Phase::halted:
      case Phase::done:
        break;
    }
  }

  /// Measures the parts of a recovery, which end one after another.
  void answered(const recon::Answer& answer) {
    const auto& state = answer.state;
    if (state.phase != phase_) count_phase();
    const bool is_loss = has(answer, Row::run_loss) || has(answer, Row::drain_lost) ||
                         has(answer, Row::loss_under_way) ||
                         (has(answer, Row::switch_dropped) && state.phase != Phase::run);
    if (is_loss) lost(answer);
    if (has(answer, Row::recover_merges) && open_) ++open_->lost;
    if (open_) {
      if (has(answer, Row::recover_plans)) open_->freeze += part();
      if (has(answer, Row::plan_ready)) open_->plan += part();
      if (has(answer, Row::prepared_all)) open_->prepare += part();
      if (has(answer, Row::loaded_all)) {
        open_->load += part();
        open_->from_memory = std::ranges::count(state.saved, state.line) == 0 && state.line > 0;
      }
      if (state.phase == Phase::suspend) close();
    }
    if (has(answer, Row::loaded_all)) {
      report_.plans.push_back({since_begin(), static_cast<int>(state.plan.members.size()),
                               state.plan.rate, state.plan.text});
      auto& changed = tell("plan.changed");
      changed.set("why", state.plan.text);
      changed.set("nodes", static_cast<std::int64_t>(state.plan.members.size()));
      changed.set("rate", state.plan.rate);
      changed.set("step", state.line);
    }
    phase_ = state.phase;
  }

  Duration part() {
    const Duration time = now() - mark_;
    mark_ = now();
    return time;
  }

  void lost(const recon::Answer& answer) {
    if (open_) {
      ++open_->lost;
      // The repeated steps must be repeated once more.
      if (phase_ == Phase::run) open_->again += part();
      return;
    }
    open_ = Recovery{since_begin(), 1, false, answer.reason, {}, {}, {}, {}, {}, {}, 0};
    for (const auto& record : answer.records) {
      if (record.kind != recon::Record::Kind::dead) continue;
      const auto gone = gone_.find(record.names.front());
      if (gone != gone_.end()) open_->detect = now() - gone->second;
    }
    open_->at -= open_->detect;
    mark_ = now();
  }

  void close() {
    auto& told = tell("recovered");
    told.set("why", open_->why);
    told.set("seconds", in_seconds(open_->total()));
    told.set("steps_again", open_->steps_again);
    report_.recoveries.push_back(*std::exchange(open_, std::nullopt));
  }

  Value& tell(const std::string& type) {
    Value event;
    event.set("time", in_seconds(since_begin()));
    event.set("type", type);
    report_.timeline.push_back(std::move(event));
    return report_.timeline.back();
  }

  const ReplayOptions& options_;
  Cluster cluster_;
  std::map<std::string, int> number_of_;
  Time begun_{}, phase_since_{}, nodes_since_{};
  Phase phase_ = Phase::boot;
  std::map<std::string, Time> gone_;       // The time at which each host last went.
  std::map<std::string, HostPlan> plans_;  // Keyed by text.
  std::optional<Recovery> open_;
  Time mark_{};
  ReplayReport report_;
};

}  // namespace

double ReplayReport::goodput() const {
  return length > Duration(0) ? useful / in_seconds(length) : 0;
}

ReplayReport replay(const ReplayOptions& options) { return Replay(options).run(); }

Duration silence_until_dead(int nodes) {
  actors::DetectorLimits limits;
  limits.nodes = nodes;
  Time now{std::chrono::hours(1)};
  actors::Pulses pulses(now);
  for (int beat = 0; beat < 200; ++beat) pulses.heard(now += limits.heartbeat_every);
  const actors::Evidence evidence{pulses, {}, {}, 0};
  while (actors::judge(evidence, now, limits).is != actors::Presence::Is::dead)
    now += std::chrono::milliseconds(1);
  return now - pulses.last();
}

}  // namespace troupe::simulation
