#include "actors/decide/reaction.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <set>
#include <utility>

#include "core/units.h"

namespace troupe::actors::reconciler {
namespace {

constexpr int exit_deposed = 76;

std::string seconds(Duration time) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.3g s", in_seconds(time));
  return text.data();
}

}  // namespace

Answer Reaction::to(const Event& event) {
  if (!std::holds_alternative<JournalFailed>(event)) state_.journal_failed.reset();
  const bool is_over = state_.phase == Phase::done || state_.phase == Phase::halted;
  if (const auto* attached = std::get_if<Attached>(&event); attached && is_over) {
    row(Row::of_the_past, "the run has ended");
    order(Reject{attached->life, "the run has ended"});
  } else if (!is_over) {
    std::visit([this](const auto& one) { on(one); }, event);
  }
  answer_.state = std::move(state_);
  return std::move(answer_);
}

void Reaction::on(const JournalRead& read) {
  if (state_.phase != Phase::boot) return;
  state_.strikes = transport::Strikes(limits_.strikes);
  state_.begun = now_;
  if (read.health == JournalRead::Health::damaged) {
    row(Row::boot_damaged, "the journal is damaged: what was decided cannot be known");
    return end(exit_failed, Phase::halted, answer_.reason);
  }
  const auto found = remember(read.records);
  state_.term = found.term + 1;
  state_.epoch = std::max(found.epoch, read.earlier_attempts);
  // Saves of earlier heads that were given up have lower numbers, which nodes may remember.
  state_.last_save = state_.term << 32;
  state_.saved = read.saved;
  state_.was_ever_saved = !read.saved.empty();
  state_.decided = read.committed;
  if (found.has_ended) {
    row(Row::boot_again, "the run has ended: " + found.why);
    return end(0, Phase::done, found.why);
  }
  record(Record::Kind::term);
  if (read.health == JournalRead::Health::torn)
    row(Row::boot_torn, "the last record of the journal was torn, and nobody was told of it");
  state_.phase = Phase::gather;
  if (!found.has_begun) {
    row(Row::boot_fresh, "a new run");
    return set_phase_timer(limits_.start_patience);
  }
  row(Row::boot_again, "term " + std::to_string(state_.term) + " of a run whose newest epoch is " +
                           std::to_string(state_.epoch));
  if (found.is_in_force) {
    state_.plan.members = found.members;
    for (std::size_t i = 0; i < found.members.size(); ++i)
      state_.led_before.emplace(found.members[i], found.names[i]);
    state_.line = found.line;
  }
  set_phase_timer(limits_.gather_patience);
}

void Reaction::on(const StopAsked&) {
  state_.is_stopping = true;
  row(Row::stop_asked, "somebody asked the run to stop");
  switch (state_.phase) {
    case Phase::run:
      return ask_save_point();
    case Phase::boot:
    case Phase::gather:
    case Phase::suspend:
      row(Row::stop_done, "it stops after step " + std::to_string(state_.decided));
      return end(exit_preempted, Phase::done, answer_.reason);
    case Phase::plan:
    case Phase::prepare:
    case Phase::load:
    case Phase::recover:
    case Phase::halted:
    case Phase::done:
      return;
  }
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
  order(Abort{state_.epoch, everybody()});
  end(exit_failed, Phase::halted, answer_.reason);
}

void Reaction::on(const Deposed& deposed) {
  if (deposed.term <= state_.term) return;
  row(Row::deposed, "a head of term " + std::to_string(deposed.term) + " leads the run");
  end(exit_deposed, Phase::done, answer_.reason);
}

void Reaction::on(const Timeout& timeout) {
  if (state_.saving && timeout.timer == state_.save_timer)
    return save_failed("it was not written in time");
  if (timeout.timer != state_.timer || timeout.timer == 0) return;
  switch (state_.phase) {
    case Phase::gather:
      row(Row::gather_over, "those who have not come are not waited for any longer");
      return recover();
    case Phase::plan:
      row(Row::plan_late, "the planner is late: all nodes that are there get a part");
      ++state_.plan_number;
      return prepare({usable(), 0, "all nodes that are there"});
    case Phase::prepare:
      row(Row::prepare_failed, "not all nodes have prepared in time");
      return pass_over({state_.waits_for.begin(), state_.waits_for.end()},
                       "it has not prepared within " + seconds(limits_.prepare_patience));
    case Phase::load:
      row(Row::load_failed_node, "not all nodes have loaded in time");
      return pass_over({state_.waits_for.begin(), state_.waits_for.end()},
                       "it has not loaded within " + seconds(limits_.load_patience));
    case Phase::recover:
      if (state_.waits_for.empty()) return plan_or_suspend();
      row(Row::recover_waits, "who has not stopped by now is dead");
      for (const Life life : std::set<Life>(state_.waits_for)) {
        lose(life, "it did not say in time that it has stopped");
        order(Reject{life, "it did not say in time that it has stopped: it is another life now"});
      }
      return go_on_if_all_frozen();
    case Phase::suspend:
      return suspend_over_or_try();
    case Phase::boot:
    case Phase::run:
    case Phase::halted:
    case Phase::done:
      return;
  }
}

void Reaction::end(int code, Phase phase, const std::string& why) {
  state_.phase = phase;
  state_.timer = 0;
  order(End{code, why});
}

void Reaction::row(Row row, const std::string& reason) {
  answer_.rows.push_back(row);
  answer_.reason += (answer_.reason.empty() ? "" : "; ") + reason;
}

Record& Reaction::record(Record::Kind kind, const std::string& why) {
  answer_.records.push_back({kind, state_.term, state_.epoch, 0, {}, {}, why});
  return answer_.records.back();
}

void Reaction::set_phase_timer(Duration after) {
  state_.timer = ++state_.last_timer;
  order(SetTimer{state_.timer, after});
}

}  // namespace troupe::actors::reconciler
