#include "actors/decide/reaction.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <utility>

#include "core/units.h"

namespace troupe::actors::decide {
namespace {

std::string seconds(Duration time) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.3g s", in_seconds(time));
  return text.data();
}

template <class... Some>
bool is_one_of(const Event& event) {
  return (std::holds_alternative<Some>(event) || ...);
}

}  // namespace

bool is_of_steps(const Event& event) {
  return is_one_of<StepDone, StepEntered, AtBoundary, Collected, Saved, SaveFailed, ChangeAsked,
                   ChangesMade, SpikeFound, StepSkipped, StopAsked, PauseAsked, RunFailed>(event);
}

Answer Reaction::to(const Event& event) {
  if (!std::holds_alternative<JournalFailed>(event) && !is_of_steps(event))
    state_.journal_failed.reset();
  if (state_.phase != Phase::ended) std::visit([this](const auto& one) { on(one); }, event);
  answer_.state = std::move(state_);
  return std::move(answer_);
}

void Reaction::on(const JournalRead& read) {
  if (state_.phase != Phase::boot) return;
  state_.strikes = transport::Strikes(limits_.strikes);
  auto found = remember(read.records);
  state_.term = found.term + 1;
  state_.attempt = std::max(found.attempt, read.earlier_attempts);
  record(Record::Kind::term);
  if (read.is_torn)
    row(Row::boot_torn, "the last record of the journal was torn, and nobody was told of it");
  state_.phase = Phase::gather;
  if (!found.has_planned) {
    row(Row::boot_fresh, "a new run");
    return set_phase_timer(limits_.start_patience);
  }
  row(Row::boot_again, "term " + std::to_string(state_.term) +
                           " of a run whose newest attempt is " + std::to_string(state_.attempt));
  state_.led_before = {found.led.begin(), found.led.end()};
  set_phase_timer(limits_.gather_patience);
}

void Reaction::on(const SavesRead& read) {
  if (state_.phase == Phase::boot || state_.plan.members.size() > 0) return;
  state_.saved = read.saved;
  state_.was_ever_saved = !read.saved.empty();
  state_.decided = state_.entered = read.committed;
}

void Reaction::on(const JournalFailed& failed) {
  if (!state_.journal_failed) {
    state_.journal_failed = now_;
    order(Warn{"the journal cannot be written: " + failed.why +
               "; training goes on, and nothing is decided"});
  }
  if (now_ - *state_.journal_failed < limits_.journal_patience)
    return row(Row::journal_failed, failed.why);
  row(Row::journal_over, "the journal could not be written for too long: " + failed.why);
  if (state_.is_in_head) order(EndAttempt{state_.attempt});
  end_failed(answer_.reason);
}

void Reaction::on(const Timeout& timeout) {
  if (timeout.timer != state_.timer || timeout.timer == 0) return;
  switch (state_.phase) {
    case Phase::gather:
      row(Row::gather_over, "those who have not come are not waited for any longer");
      return recover();
    case Phase::prepare:
      return fail(Row::prepare_failed, {state_.waits_for.begin(), state_.waits_for.end()},
                  not_prepared() + " within " + seconds(limits_.prepare_patience));
    case Phase::load:
      row(Row::load_late, "the states were not loaded within " + seconds(limits_.load_patience));
      return give_up_attempt(answer_.reason);
    case Phase::recover:
      return plan_or_suspend();
    case Phase::suspend:
      return suspend_over_or_try();
    case Phase::boot:
    case Phase::plan:
    case Phase::run:
    case Phase::ended:
      return;
  }
}

/// Returns who has not prepared, as the beginning of a sentence.
std::string Reaction::not_prepared() const {
  std::string names;
  for (const Life life : state_.waits_for) names += (names.empty() ? "" : ", ") + name_of(life);
  return state_.waits_for.size() == 1 ? "node " + names + ": it has not prepared"
                                      : "nodes " + names + ": they have not prepared";
}

void Reaction::end(End end) {
  state_.phase = Phase::ended;
  state_.timer = 0;
  order(std::move(end));
}

void Reaction::row(Row row, const std::string& reason) {
  answer_.rows.push_back(row);
  answer_.reason += (answer_.reason.empty() ? "" : "; ") + reason;
}

Record& Reaction::record(Record::Kind kind, const std::string& why) {
  answer_.records.push_back(
      {.kind = kind, .term = state_.term, .attempt = state_.attempt, .why = why});
  return answer_.records.back();
}

void Reaction::set_phase_timer(Duration after) {
  state_.timer = ++state_.last_timer;
  order(SetTimer{state_.timer, after});
}

}  // namespace troupe::actors::decide
