#include "simulation/machine/caf_scheduler.h"

#include <algorithm>
#include <cassert>
#include <deque>
#include <memory>
#include <utility>

namespace troupe::simulation {
namespace {

caf::actor_system_config& with_testing_policy(caf::actor_system_config& config) {
  config.set("scheduler.policy", caf::atom("testing"));
  return config;
}

/// Returns the actor that has mail. All jobs of CAF are actors.
caf::scheduled_actor& actor_of(caf::resumable& job) {
  assert(job.subtype() == caf::resumable::scheduled_actor);
  return static_cast<caf::scheduled_actor&>(job);
}

bool has_ended(const caf::scheduled_actor& actor) {
  return actor.getf(caf::abstract_actor::is_terminated_flag) ||
         actor.getf(caf::abstract_actor::is_cleaned_up_flag);
}

/// Returns null if the actor was freed.
caf::scheduled_actor* actor_of(const caf::strong_actor_ptr& actor) {
  return actor ? dynamic_cast<caf::scheduled_actor*>(caf::actor_cast<caf::abstract_actor*>(actor))
               : nullptr;
}

/// Lets an actor that was ended leave its groups, as it does when it has run for the last time: its
/// group may wait for it, while somebody still refers to it.
void leave_groups(caf::scheduled_actor& actor) {
  // With these an actor does nothing when it runs, even if it has never run.
  actor.quit(caf::exit_reason::kill);
  actor.setf(caf::abstract_actor::is_initialized_flag);
  actor.resume(nullptr, 0);
}

}  // namespace

CafScheduler::TestingSystem::TestingSystem() : system_(with_testing_policy(config_)) {}

CafScheduler::CafScheduler(Scheduler& scheduler, ProcessId process)
    : scheduler_(scheduler),
      coordinator_(dynamic_cast<caf::scheduler::test_coordinator&>(caf().scheduler())) {
  // Without this the destructor would wait for actors that nobody runs.
  caf().await_actors_before_shutdown(false);
  source_ = scheduler.add_source(process, "actor", *this);
}

CafScheduler::~CafScheduler() {
  kill_all();
  scheduler_.remove(source_);
}

std::size_t CafScheduler::ready() {
  const auto& jobs = coordinator_.jobs;
  if (frozen_.empty() && stalled_.empty()) return jobs.size();
  return static_cast<std::size_t>(
      std::count_if(jobs.begin(), jobs.end(), [&](auto* job) { return !is_held(*job); }));
}

/// Returns whether the actor is frozen or stalled.
bool CafScheduler::is_held(caf::resumable& job) const {
  const auto id = actor_of(job).id();
  return frozen_.contains(id) || stalled_.contains(id);
}

/// Returns where a ready actor is among all jobs, held ones included.
std::size_t CafScheduler::place(std::size_t which) const {
  if (frozen_.empty() && stalled_.empty()) return which;
  const auto& jobs = coordinator_.jobs;
  std::size_t at = 0;
  for (;; ++at)
    if (!is_held(*jobs[at]) && which-- == 0) return at;
}

std::uint64_t CafScheduler::identity(std::size_t which) {
  return actor_of(*coordinator_.jobs[place(which)]).id();
}

std::string CafScheduler::name(std::size_t which) const {
  return actor_of(*coordinator_.jobs[place(which)]).name();
}

void CafScheduler::run(std::size_t which) {
  auto& jobs = coordinator_.jobs;
  const auto drawn = jobs.begin() + static_cast<std::ptrdiff_t>(place(which));
  std::rotate(jobs.begin(), drawn, drawn + 1);
  auto* const job = jobs.front();
  note(*job);
  struct Running {
    explicit Running(bool& is_running) : is_running(is_running) { is_running = true; }
    ~Running() { is_running = false; }
    bool& is_running;
  } running(is_running_);
  coordinator_.try_run_once();
  // CAF puts an actor with more mail first, and the scheduler expects it last.
  if (!jobs.empty() && jobs.front() == job) std::rotate(jobs.begin(), jobs.begin() + 1, jobs.end());
}

std::optional<Source::Time> CafScheduler::next_timeout() {
  const auto& timeouts = coordinator_.clock().schedule();
  std::optional<Time> first;
  if (!timeouts.empty()) first = timeouts.begin()->first;
  for (const auto& [actor, until] : stalled_) first = std::min(first.value_or(until), until);
  return first;
}

void CafScheduler::stall(std::uint64_t identity, std::chrono::nanoseconds time) {
  auto& until = stalled_[identity];
  until = std::max(until, scheduler_.now()) + time;
}

void CafScheduler::advance(Time now) {
  auto& clock = coordinator_.clock();
  clock.current_time = std::max(clock.current_time, now);
  clock.trigger_expired_timeouts();
  std::erase_if(stalled_, [now](const auto& stalled) { return stalled.second <= now; });
}

/// Remembers an actor. Each actor runs once when it begins.
void CafScheduler::note(caf::resumable& job) {
  auto& actor = actor_of(job);
  if (!actors_.try_emplace(actor.id(), caf::weak_actor_ptr(actor.ctrl())).second) return;
  if (actors_.size() < actors_to_clean_) return;
  std::erase_if(actors_, [](const auto& noted) {
    return !caf::actor_cast<caf::strong_actor_ptr>(noted.second);
  });
  actors_to_clean_ = 2 * actors_.size() + 64;
}

std::vector<CafScheduler::Living> CafScheduler::living() const {
  std::vector<Living> living;
  for (const auto& [id, weak] : actors_)
    if (auto strong = caf::actor_cast<caf::strong_actor_ptr>(weak))
      if (const auto* actor = actor_of(strong); actor && !has_ended(*actor))
        living.push_back({actor->name(), caf::actor_cast<caf::actor>(std::move(strong))});
  return living;
}

/// Ends all actors as if each had handled a kill, but without running them: an actor that runs
/// could handle its first message before. Returns whether there was anything to end.
bool CafScheduler::end_actors() {
  const auto jobs = std::exchange(coordinator_.jobs, {});
  for (auto* job : jobs) note(*job);
  bool found = !jobs.empty();
  for (const auto& [id, weak] : std::map(actors_)) {
    const auto strong = caf::actor_cast<caf::strong_actor_ptr>(weak);
    auto* actor = actor_of(strong);
    if (!actor || actor->getf(caf::abstract_actor::is_cleaned_up_flag)) continue;
    found = true;
    actor->on_exit();
    actor->cleanup(caf::exit_reason::kill, nullptr);
    leave_groups(*actor);
  }
  for (auto* job : jobs) caf::intrusive_ptr_release(job);
  return found;
}

void CafScheduler::kill_all() {
  assert(!is_running_);
  // Objects in an actor's state may spawn and send while they are destroyed.
  while (end_actors()) {
  }
  coordinator_.clock().cancel_all();
  while (end_actors()) {
  }
}

}  // namespace troupe::simulation
