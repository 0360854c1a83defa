#include "simulation/forecast.h"

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <variant>

#include "core/units.h"
#include "simulation/clock.h"
#include "simulation/copies.h"
#include "simulation/time_account.h"

namespace troupe::simulation {
namespace {

using actors::StateSource;
using namespace std::chrono_literals;
namespace decide = actors::decide;
using decide::Life;
using decide::Phase;

// The durations of what does not depend on a plan.
constexpr Duration journal_time = 4ms;  // Until a record is on disk.
constexpr Duration planning_time = 1ms;
constexpr Duration prepare_time = 20ms;
constexpr Duration load_time = 30ms;  // Besides the transfer.
constexpr Duration save_time = 100ms;
constexpr Duration end_time = 5ms;  // Until nothing of an attempt is left.

/// A run on simulated hosts. Everything around its machine is simulated: hosts, and the head that
/// carries out orders and leads steps.
class SimulatedRun {
 public:
  explicit SimulatedRun(const ForecastOptions& options)
      : options_(options),
        limits_(options.limits),
        silence_(silence_until_dead(static_cast<int>(options.hosts.size()))),
        copies_(clock_, static_cast<int>(options.hosts.size()), options.copies),
        changes_(clock_.now()),
        account_(clock_) {
    for (std::size_t host = 0; host < options.hosts.size(); ++host)
      number_of_[options.hosts[host]] = static_cast<int>(host);
  }

  ForecastReport run() {
    const Time end = clock_.now() + options_.length;
    clock_.at(end, [this] { is_over_ = true; });
    take(decide::JournalRead{});
    schedule_trace();
    while (!is_over_ && clock_.step()) {
    }
    return account_.close(alive_.size(), end_);
  }

 private:
  // Hosts.

  void schedule_trace() {
    const Time begun = clock_.now();
    if (options_.trace.empty())
      for (const auto& host : options_.hosts) come(host);
    std::map<std::string, std::string> host_of;
    for (const auto& change : options_.trace) {
      const auto known = host_of.find(change.node);
      if (known == host_of.end() && host_of.size() == options_.hosts.size()) continue;
      const std::string host =
          known != host_of.end() ? known->second : options_.hosts[host_of.size()];
      host_of.emplace(change.node, host);
      switch (change.what) {
        case Change::What::comes:
          clock_.at(begun + change.at, [this, host] { come(host); });
          break;
        case Change::What::goes:
          if (options_.notice > Duration(0) && change.at > options_.notice)
            clock_.at(begun + change.at - options_.notice, [this, host] { give_notice(host); });
          clock_.at(begun + change.at, [this, host] { go(host); });
          break;
      }
    }
  }

  void come(const std::string& host) {
    if (alive_.contains(host)) return;
    account_.come(host, alive_.size());
    alive_[host] = ++last_life_;
    changes_.add(clock_.now());
    take(decide::NodeCame{last_life_, host});
  }

  void go(const std::string& host) {
    const auto found = alive_.find(host);
    if (found == alive_.end()) return;
    account_.go(host, alive_.size());
    const Life life = found->second;
    alive_.erase(found);
    copies_.lose(life);
    changes_.add(clock_.now());
    // Without its part nothing of the attempt goes on.
    if (is_member(life)) ++work_;
    clock_.after(silence_, [this, life] {
      take(decide::NodeLost{life, "silent for too long", true});
    });
  }

  void give_notice(const std::string& host) {
    const auto found = alive_.find(host);
    if (found == alive_.end()) return;
    take(decide::NodeCordoned{found->second, true});
    wants_boundary_ |= is_member(found->second);
  }

  bool is_member(Life life) const { return std::ranges::count(state_.plan.members, life) > 0; }

  bool all_live() const {
    return std::ranges::all_of(state_.plan.members, [this](Life life) {
      return std::ranges::any_of(alive_, [life](const auto& one) { return one.second == life; });
    });
  }

  // The driver of the machine.

  void take(decide::Event event) {
    events_.push_back(std::move(event));
    answer_all();
  }

  void answer_all() {
    while (!is_writing_ && !events_.empty() && !is_over_) {
      const auto event = std::move(events_.front());
      events_.pop_front();
      auto answer = decide::react(state_, event, clock_.now(), limits_);
      if (answer.records.empty()) {
        accept(std::move(answer));
        continue;
      }
      is_writing_ = true;
      const auto written = std::make_shared<decide::Answer>(std::move(answer));
      clock_.after(journal_time, [this, written] {
        is_writing_ = false;
        accept(std::move(*written));
        answer_all();
      });
    }
  }

  void accept(decide::Answer answer) {
    account_.answered(answer, plan_in_force().rate);
    state_ = std::move(answer.state);
    for (const auto& order : answer.orders) std::visit([this](const auto& one) { on(one); }, order);
  }

  /// Does something later, unless the work of the attempt ends before.
  void later(Duration time, std::function<void()> what) {
    clock_.after(time, [this, work = work_, what = std::move(what)] {
      if (work == work_) what();
    });
  }

  void on(const decide::SetTimer& set) {
    clock_.after(set.after, [this, timer = set.timer] { take(decide::Timeout{timer}); });
  }

  void on(const decide::MakePlan& order) {
    clock_.after(planning_time, [this, order] {
      const auto made = plan_for(order.nodes);
      if (made.hosts.empty()) return take(decide::PlanMade{order.number, {}, made.text});
      plans_[made.text] = made;
      decide::PlanChoice choice{{}, made.text};
      std::map<int, Life> lives;
      for (const Life life : order.nodes)
        if (const auto host = host_of(life)) lives[*host] = life;
      for (const int host : made.hosts) choice.members.push_back(lives.at(host));
      const auto nodes = static_cast<int>(choice.members.size());
      for (int part = 0; part < std::ssize(options_.hosts); ++part)
        choice.owners.push_back(part % nodes);
      take(decide::PlanMade{order.number, std::move(choice)});
    });
  }

  void on(const decide::Prepare& order) {
    ++work_;
    later(prepare_time, [this, order] {
      for (const Life life : order.plan.members)
        if (host_of_living(life)) take(decide::Prepared{life, order.attempt, copies_.of(life)});
    });
  }

  void on(const decide::Load& order) {
    const bool is_in_memory = order.source.from == StateSource::From::memory;
    const auto& plan = plan_in_force();
    const Duration transfer = is_in_memory                                   ? plan.fetch
                              : order.source.from == StateSource::From::seed ? Duration(0)
                                                                             : plan.store;
    later(load_time + transfer, [this, order] {
      if (!all_live()) return;
      copies_.begin(order.attempt, order.source.step);
      take(decide::Loaded{order.attempt, order.source.step});
      if (options_.copies > 1)
        take(decide::KeptBy{order.attempt, copies_.keepers(state_.plan.members)});
    });
  }

  void on(const decide::Begin& order) {
    wants_boundary_ = std::ranges::any_of(state_.plan.members, [this](Life life) {
      const auto found = state_.nodes.find(life);
      return found != state_.nodes.end() && found->second.is_cordoned;
    });
    is_saving_ = false;
    if (all_live()) next_step(order.step);
    consider_switch();
  }

  void on(const decide::EndAttempt& order) {
    ++work_;
    clock_.after(end_time, [this, order] { take(decide::AttemptEnded{order.attempt}); });
  }

  void on(const decide::Warn&) {}

  void on(const decide::End& order) {
    end_ = order.why;
    is_over_ = true;
  }

  // Plans.

  std::optional<int> host_of(Life life) const {
    const auto found = state_.nodes.find(life);
    if (found == state_.nodes.end()) return {};
    return number_of_.at(found->second.name);
  }
  bool host_of_living(Life life) const {
    const auto found = state_.nodes.find(life);
    if (found == state_.nodes.end()) return false;
    const auto alive = alive_.find(found->second.name);
    return alive != alive_.end() && alive->second == life;
  }

  /// Prefers hosts that have a part: they have its state.
  HostPlan plan_for(const std::vector<Life>& lives) const {
    std::vector<int> hosts, others;
    for (const Life life : lives)
      if (const auto host = host_of(life)) (is_member(life) ? hosts : others).push_back(*host);
    std::ranges::sort(others);
    hosts.insert(hosts.end(), others.begin(), others.end());
    return options_.plan(hosts);
  }

  const HostPlan& plan_in_force() const {
    static const HostPlan none;
    const auto found = plans_.find(state_.plan.text);
    return found == plans_.end() ? none : found->second;
  }

  /// Switches at the next boundary if more nodes would make up for the cost.
  void consider_switch() {
    if (state_.phase != Phase::run || wants_boundary_) return;
    const auto nodes = decide::usable(state_, clock_.now(), limits_);
    if (std::ranges::all_of(nodes, [this](Life life) { return is_member(life); })) return;
    if (static_cast<int>(nodes.size()) < limits_.fewest) return;
    const auto better = plan_for(nodes);
    if (better.hosts.empty()) return;
    wants_boundary_ = is_switching_ =
        decide::pays({.rate = plan_in_force().rate,
                      .better_rate = better.rate,
                      .steps_left = options_.steps - state_.decided,
                      .time_to_next_change = changes_.time_to_next(clock_.now()),
                      .saves_since_last = saves_since_switch_},
                     options_.switches);
  }

  // Steps and saves, as a supervisor leads them.

  void next_step(std::int64_t done) {
    later(step_time(), [this, step = done + 1] { finish_step(step); });
  }

  Duration step_time() const { return from_seconds(1 / plan_in_force().rate); }

  void finish_step(std::int64_t step) {
    account_.step(step, in_seconds(step_time()));
    take(decide::StepDone{state_.attempt, step});
    copies_.keep(
        {state_.attempt, step, state_.plan.members, plan_in_force().fetch, plan_in_force().copy});
    copies_.entered(step);
    if (step >= options_.steps)
      return save(step, [this] {
        end_ = "all steps are done";
        is_over_ = true;
      });
    if (wants_boundary_) return save(step, [this] { end_at_boundary(); });
    if (step % options_.save_every == 0 && !is_saving_)
      save(step, [this] { consider_switch(); });
    else
      consider_switch();
    next_step(step);
  }

  void save(std::int64_t step, std::function<void()> then) {
    is_saving_ = true;
    later(save_time + plan_in_force().store, [this, step, then = std::move(then)] {
      is_saving_ = false;
      ++saves_since_switch_;
      take(decide::Saved{step});
      then();
    });
  }

  void end_at_boundary() {
    if (std::exchange(is_switching_, false)) saves_since_switch_ = 0;
    ++work_;
    clock_.after(end_time,
                 [this, attempt = state_.attempt] { take(decide::AttemptEnded{attempt}); });
  }

  const ForecastOptions& options_;
  const decide::Limits limits_;
  const Duration silence_;
  Clock clock_;
  Copies copies_;
  decide::NodeChanges changes_;
  TimeAccount account_;
  std::map<std::string, int> number_of_;
  std::map<std::string, Life> alive_;  // The life of each host that is there.
  Life last_life_ = 0;

  decide::State state_;
  std::deque<decide::Event> events_;  // They wait while records are written.
  bool is_writing_ = false;
  std::map<std::string, HostPlan> plans_;  // Keyed by text.
  std::uint64_t work_ = 0;                 // The work of an attempt. Another number ends it.
  bool wants_boundary_ = false;            // The attempt ends after its next step.
  bool is_switching_ = false;              // For the sake of a better plan.
  bool is_saving_ = false;
  int saves_since_switch_ = 1 << 20;
  bool is_over_ = false;
  std::string end_;
};

}  // namespace

double ForecastReport::goodput() const {
  return length > Duration(0) ? useful / in_seconds(length) : 0;
}

ForecastReport forecast(const ForecastOptions& options) { return SimulatedRun(options).run(); }

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
