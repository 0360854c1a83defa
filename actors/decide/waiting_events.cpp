#include "actors/decide/waiting_events.h"

#include <algorithm>
#include <cassert>
#include <type_traits>
#include <utility>
#include <variant>

namespace troupe::actors::decide {
namespace {

/// Returns the place of an event's type among all kinds of events.
template <class Kind, std::size_t at = 0>
constexpr std::size_t place_of() {
  if constexpr (std::is_same_v<std::variant_alternative_t<at, Event>, Kind>)
    return at;
  else
    return place_of<Kind, at + 1>();
}

/// Whether the last one of several events with one subject counts, not the first one.
bool is_replaced(const Event& event) {
  return std::holds_alternative<NodeHeard>(event) || std::holds_alternative<NodeCordoned>(event) ||
         std::holds_alternative<KeptBy>(event) || std::holds_alternative<SavesRead>(event);
}

}  // namespace

WaitingEvents::Subject WaitingEvents::subject_of(const Event& event) {
  Subject subject{.kind = event.index()};
  if (const auto* came = std::get_if<NodeCame>(&event)) {
    subject.life = came->life;
  } else if (const auto* lost = std::get_if<NodeLost>(&event)) {
    subject.life = lost->life;
    // A process may be known to have ended only after it fell silent.
    subject.detail = lost->is_silent ? 1 : 0;
  } else if (const auto* heard = std::get_if<NodeHeard>(&event)) {
    subject.life = heard->life;
  } else if (const auto* cordoned = std::get_if<NodeCordoned>(&event)) {
    subject.life = cordoned->life;
  } else if (const auto* prepared = std::get_if<Prepared>(&event)) {
    subject.life = prepared->life;
    subject.number = prepared->attempt;
  } else if (const auto* not_prepared = std::get_if<PrepareFailed>(&event)) {
    subject.life = not_prepared->life;
    subject.number = not_prepared->attempt;
  } else if (const auto* failed = std::get_if<PlayerFailed>(&event)) {
    subject.life = failed->life;
    subject.number = failed->attempt;
  } else if (const auto* not_loaded = std::get_if<LoadFailed>(&event)) {
    subject.life = not_loaded->life;
    subject.number = not_loaded->attempt;
    subject.detail = not_loaded->step;
  } else if (const auto* pair = std::get_if<PairLost>(&event)) {
    subject.life = std::min(pair->one, pair->other);
    subject.other = std::max(pair->one, pair->other);
    subject.number = pair->attempt;
  } else if (const auto* loaded = std::get_if<Loaded>(&event)) {
    subject.number = loaded->attempt;
    subject.detail = loaded->step;
  } else if (const auto* ended = std::get_if<AttemptEnded>(&event)) {
    subject.number = ended->attempt;
  } else if (const auto* kept = std::get_if<KeptBy>(&event)) {
    subject.number = kept->attempt;
  } else if (const auto* plan = std::get_if<PlanMade>(&event)) {
    subject.number = plan->number;
  } else if (const auto* timeout = std::get_if<Timeout>(&event)) {
    subject.number = timeout->timer;
  }
  return subject;
}

void WaitingEvents::add(Event event) {
  assert(!is_of_steps(event));
  if (const auto* came = std::get_if<NodeCame>(&event)) {
    const auto [earlier, is_first] = came_.try_emplace(came->name, came->life);
    // The process that comes now says as well that the ones before are gone.
    if (!is_first && earlier->second != came->life)
      forget(std::exchange(earlier->second, came->life));
  }
  const auto [known, is_new] = by_subject_.try_emplace(subject_of(event), last_ + 1);
  if (is_new)
    events_.emplace(++last_, std::move(event));
  else if (is_replaced(event))
    events_.at(known->second) = std::move(event);
}

void WaitingEvents::pop_front() {
  const auto first = events_.begin();
  by_subject_.erase(subject_of(first->second));
  if (const auto* came = std::get_if<NodeCame>(&first->second))
    if (const auto found = came_.find(came->name);
        found != came_.end() && found->second == came->life)
      came_.erase(found);
  events_.erase(first);
}

/// Drops the events about a process whose NodeCame waits.
void WaitingEvents::forget(Life life) {
  erase({.kind = place_of<NodeCame>(), .life = life});
  erase({.kind = place_of<NodeLost>(), .life = life, .detail = 0});
  erase({.kind = place_of<NodeLost>(), .life = life, .detail = 1});
  erase({.kind = place_of<NodeHeard>(), .life = life});
  erase({.kind = place_of<NodeCordoned>(), .life = life});
}

void WaitingEvents::erase(const Subject& subject) {
  if (const auto found = by_subject_.extract(subject)) events_.erase(found.mapped());
}

}  // namespace troupe::actors::decide
