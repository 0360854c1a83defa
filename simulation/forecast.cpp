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
    if (is_member(found->second)) ask_for_change();
  }

  bool is_member(Life life) const { return std::ranges::count(state_.plan.members, life) > 0; }

  bool a_member_leaves() const {
    return std::ranges::any_of(state_.plan.members, [this](Life life) {
      const auto found = state_.nodes.find(life);
      return found != state_.nodes.end() && found->second.is_cordoned;
    });
  }

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
    if (a_member_leaves()) ask_for_change();
    if (all_live()) next_step(order.step);
    consider_switch();
  }

  void on(const decide::EndAttempt& order) {
    ++work_;
    clock_.after(end_time, [this, order] { take(decide::AttemptEnded{order.attempt}); });
  }

  void on(const decide::HoldRounds& order) { is_held_ = order.is_held; }

  void on(const decide::PlayOn& order) {
    consider_switch();
    next_step(order.step);
  }

  void on(const decide::Collect& order) {
    take(decide::Collected{state_.attempt, order.step, true});
    clock_.after(save_time + plan_in_force().store, [this, step = order.step, work = work_] {
      if (work != work_) return take(decide::SaveFailed{step, "a node is gone"});
      ++saves_since_switch_;
      take(decide::Saved{step});
    });
  }

  void on(const decide::ApplyChanges&) {
    // The nodes that had come may be gone, and so may those that were to leave.
    const bool switches = std::exchange(is_switching_, false) && switch_pays();
    const bool begins_anew = switches || a_member_leaves();
    take(decide::ChangesMade{state_.attempt, std::exchange(changes_asked_, 0), begins_anew});
    if (!begins_anew) return;
    if (switches) saves_since_switch_ = 0;
    ++work_;
    clock_.after(end_time,
                 [this, attempt = state_.attempt] { take(decide::AttemptEnded{attempt}); });
  }

  void on(const decide::SkipStep&) {}  // A forecast has no losses.
  void on(const decide::Warn&) {}

  void on(const decide::End& order) {
    end_ = order.how == decide::End::How::done ? "all steps are done" : order.why;
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
    if (state_.phase != Phase::run || changes_asked_ > 0 || !switch_pays()) return;
    is_switching_ = true;
    ask_for_change();
  }

  bool switch_pays() const {
    const auto nodes = decide::usable(state_, clock_.now(), limits_);
    if (std::ranges::all_of(nodes, [this](Life life) { return is_member(life); })) return false;
    if (static_cast<int>(nodes.size()) < limits_.fewest) return false;
    const auto better = plan_for(nodes);
    if (better.hosts.empty()) return false;
    return decide::pays({.rate = plan_in_force().rate,
                         .better_rate = better.rate,
                         .steps_left = options_.steps - state_.decided,
                         .time_to_next_change = changes_.time_to_next(clock_.now()),
                         .saves_since_last = saves_since_switch_},
                        options_.switches);
  }

  /// The attempt ends at the next boundary, for a better plan or without nodes that leave.
  void ask_for_change() {
    if (changes_asked_ > 0) return;
    ++changes_asked_;
    take(decide::ChangeAsked{});
  }

  // Steps, as a supervisor leads them.

  void next_step(std::int64_t done) {
    later(step_time(), [this, step = done + 1] { finish_step(step); });
  }

  Duration step_time() const { return from_seconds(1 / plan_in_force().rate); }

  void finish_step(std::int64_t step) {
    account_.step(step, in_seconds(step_time()));
    take(decide::StepDone{state_.attempt, step});
    take(decide::StepEntered{state_.attempt, step});
    copies_.keep(
        {state_.attempt, step, state_.plan.members, plan_in_force().fetch, plan_in_force().copy});
    copies_.entered(step);
    const bool is_last = step >= options_.steps;
    const bool is_save_due = step % options_.save_every == 0 && !state_.saving;
    if (is_last || is_save_due || is_held_)
      return take(decide::AtBoundary{state_.attempt, step, is_last, is_save_due});
    consider_switch();
    next_step(step);
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
  bool is_held_ = false;                   // The next step is followed by a boundary.
  bool is_switching_ = false;              // A change is for the sake of a better plan.
  int changes_asked_ = 0;
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
