#include "actors/lead/step_driver.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "actors/decide/spikes.h"
#include "actors/lead/step_event.h"
#include "actors/play/not_finite.h"
#include "actors/play/players.h"
#include "core/units.h"

namespace troupe::actors {
namespace {

constexpr std::int64_t most_ahead = 64;  // In rounds.

}  // namespace

StepDriver::StepDriver(const Context& around, RunSpecPtr spec)
    : around_(around), spec_(std::move(spec)) {}

void StepDriver::run_begins(const StartPoint& start) {
  progress_.change(*spec_);
  progress_.run_begins(std::max(start.step, spec_->ledger ? spec_->ledger->steps() : 0));
  history_.run_begins(start.loss_scale.skipped_steps);
  if (spec_->evaluations) evaluation_.run_begins(spec_->evaluations->all());
}

void StepDriver::change(RunSpecPtr spec) {
  spec_ = std::move(spec);
  progress_.change(*spec_);
}

void StepDriver::attempt_begins() {
  phase_ = Phase::assembling;
  progress_.attempt_begins(*spec_);
  history_.attempt_begins();
  for (auto& event : straggler_watch_.attempt_begins(*spec_))
    around_.run_reporter.tell(std::move(event));
  around_.saves.attempt_begins();
  copies_.attempt_begins();
}

void StepDriver::begun(const Assembled& assembled) {
  phase_ = Phase::playing;
  progress_.go_on_after(assembled.step);
  evaluation_.count_from(step());
  look_for_early_stop();
  around_.saves.count_from(step());
  copies_.begun(assembled, around_.self->now());
  history_.begun(step(), around_.self->now());
  straggler_watch_.begun(*spec_);
  spike_.reset();
  if (auto known = spike_watch_.begin(*spec_, step()); !known)
    around_.host.tell(decide::RunFailed{known.error().text});
  around_.run_reporter.enter(AttemptBegun{step()});
}

namespace {

Error not_now(std::int64_t step, const std::string& what) {
  return Error{"found " + what + " of step " + std::to_string(step + 1) +
               ", which is not under way"};
}

Error told_twice(std::int64_t step, const std::string& what) {
  return Error{"found " + what + " of step " + std::to_string(step + 1) + " twice"};
}

}  // namespace

Status StepDriver::expects(const MicroBatchLoss& loss) const {
  const auto what = "the loss of micro-batch " + std::to_string(loss.index);
  if (loss.purpose == Round::Purpose::evaluation) {
    if (phase_ == Phase::evaluating && loss.step == step() && evaluation_.expects(loss))
      return Done{};
    return not_now(loss.step, what + " of an evaluation");
  }
  if (!progress_.is_under_way(loss.step)) return not_now(loss.step, what);
  if (progress_.ledger().has(loss)) return told_twice(loss.step, what);
  return Done{};
}

Status StepDriver::expects(const Divergence& divergence) const {
  if (!progress_.is_under_way(divergence.step)) return not_now(divergence.step, "a divergence");
  return Done{};
}

Status StepDriver::expects(const StepDone& done) const {
  const auto what = "the end in optimizer " + std::to_string(done.optimizer);
  if (!progress_.is_under_way(done.step)) return not_now(done.step, what);
  if (progress_.ledger().has(done)) return told_twice(done.step, what);
  return Done{};
}

Status StepDriver::expects(const LateGradients& late) const {
  if (late.step >= progress_.given_out()) return not_now(late.step, "the lateness of gradients");
  return Done{};
}

Status StepDriver::expects(const Snapshot& snapshot) const {
  const auto what = "a part of the state from optimizer " + std::to_string(snapshot.optimizer);
  if (phase_ != Phase::collecting) return Error{"found " + what + ", which nobody has asked for"};
  if (snapshot.step != step())
    return Error{"found " + what + " after step " + std::to_string(snapshot.step) +
                 ", wanted it after step " + std::to_string(step())};
  if (around_.saves.has_part_of(snapshot.optimizer)) return Error{"found " + what + " twice"};
  return Done{};
}

Status StepDriver::heard(const MicroBatchLoss& loss) {
  const bool is_training = loss.purpose == Round::Purpose::training;
  if (!std::isfinite(loss.mean)) {
    const bool is_left_out = is_training && spec_->leaves_out(loss.step + 1);
    const bool is_watched = is_training && spec_->spikes.action != SpikeRule::Action::none;
    if (!is_left_out && !is_watched) return Error{loss_not_finite(*spec_, loss)};
    if (!is_left_out) spike_watch_.note(*spec_, loss);
  }
  if (is_training) return check_divergence(progress_.ledger().add(loss));
  evaluation_.add(loss);
  if (evaluation_.has_all_losses() && evaluation_.counted() == 0)
    return Error{"the evaluation after step " + std::to_string(loss.step) +
                 " has no loss: none of its targets counts; data.validate must have targets that "
                 "are not " +
                 (spec_->model->ignore ? "model.loss.ignore" : "NaN")};
  return Done{};
}

Status StepDriver::heard(const Divergence& divergence) {
  return check_divergence(progress_.ledger().add(divergence));
}

/// Waits for all losses, since a loss that is not a number is the cause of such gradients.
Status StepDriver::check_divergence(const StepLedger::Entry& entry) {
  if (!entry.divergence || !progress_.ledger().has_all_losses(entry)) return Done{};
  if (spec_->spikes.action == SpikeRule::Action::none)
    return Error{gradient_not_finite(*spec_, *entry.divergence)};
  spike_watch_.note(*spec_, *entry.divergence);
  return Done{};
}

void StepDriver::heard(const RoundPlayed& played) {
  around_.run_reporter.hand_on(played);
  progress_.add(played);
}

void StepDriver::heard(const Kept& kept) {
  if (const auto why_none = copies_.heard(kept))
    around_.run_reporter.warn(title_of(*spec_, {PlayerId::Kind::optimizer, kept.optimizer}) + ": " +
                              *why_none);
}

void StepDriver::heard(Snapshot snapshot) {
  auto& saves = around_.saves;
  if (!saves.add(std::move(snapshot), around_.players.players().optimizers.size())) return;
  if (spec_->alive)
    spec_->alive("it puts the checkpoint of step " + std::to_string(step()) + " together");
  saves.write(*spec_, {step(), evaluation_.loss_after(step())},
              spec_->memory(0, 0, spec_->evaluation->devices()), *around_.self);
  phase_ = Phase::boundary;
  around_.host.tell(decide::Collected{0, step(), saves.is_under_way()});
}

void StepDriver::recorded() {
  if (spec_->ledger) entered(spec_->ledger->steps());
}

void StepDriver::entered(std::int64_t steps) {
  copies_.entered(steps);
  around_.host.tell(decide::StepEntered{0, steps});
}

void StepDriver::advance() {
  if (phase_ == Phase::evaluating) complete_evaluation();
  if (phase_ != Phase::playing) return;
  complete_steps();
  if (phase_ != Phase::playing) return;
  // While devices are missing, the round counts as in flight: giving out rounds now would ask too
  // late for copies of states.
  if (!progress_.waits_for_devices()) go_on();
}

/// Takes the steps that are done, in order.
void StepDriver::complete_steps() {
  auto& run_reporter = around_.run_reporter;
  for (;;) {
    const auto& reports = progress_.ledger();
    if (auto spike = spike_watch_.find(*spec_, step() + 1, reports.loss(step()),
                                       reports.norm(step(), spec_->clip)))
      return stop_at(std::move(*spike));
    const auto done = progress_.take_done();
    if (!done) return;
    const auto& entry = done->entry;
    const auto norm = spike_watch_.done(*spec_, step(), entry);
    run_reporter.enter(StepCommitted{{.step = step(),
                                      .first = (step() - 1) * spec_->samples_in_step,
                                      .samples = spec_->samples_in_step,
                                      .ids = storage::digest_of_step(done->entry.samples),
                                      .content = storage::digest_of_step(done->entry.contents),
                                      .loss = done->entry.losses.mean(),
                                      .is_skipped = done->entry.done->is_skipped,
                                      .of_sources = {},
                                      .norm = norm}});
    around_.host.tell(decide::StepDone{0, step()});
    if (!spec_->ledger) entered(step());
    tell_step(*done);
    if (auto recovered = around_.loss.made_good(run_reporter.event("run.recovered"),
                                                around_.self->now(), step()))
      run_reporter.tell(std::move(*recovered));
  }
}

/// Counts no step any more. The answer is an order of the run's machine.
void StepDriver::stop_at(Spike spike) {
  phase_ = Phase::spike;
  const auto ends = ends_at_spike(spike.step, spec_->left_out, spec_->spikes);
  around_.host.tell(decide::SpikeFound{0, spike.step, spike.why, ends.value_or("")});
  spike_ = std::move(spike);
}

Value StepDriver::spike_event() const {
  const auto first = (spike_->step - 1) * spec_->samples_in_step;
  Value event = around_.run_reporter.event("run.spike");
  event.set("step", spike_->step);
  event.set("why", spike_->why);
  if (spike_->loss) event.set("loss", *spike_->loss);
  event.set("first", first);
  event.set("samples", spec_->samples_in_step);
  Value of_sources = Value::Map{};
  const auto counts = spec_->batches.inputs->of_sources(spike_->step - 1);
  for (std::size_t i = 0; i < counts.size() && i < spec_->sources.size(); ++i)
    if (counts[i] > 0) of_sources.set(spec_->sources[i], counts[i]);
  if (!of_sources.map()->empty()) event.set("of_sources", std::move(of_sources));
  return event;
}

void StepDriver::tell_step(const Progress::Done& done) {
  const auto now = around_.self->now();
  const auto took = history_.done(done.entry, now);
  const auto* round = done.round ? &*done.round : nullptr;
  const auto on_device = round ? history_.time_on_device(*round) : std::nullopt;
  straggler_watch_.step_took(took);
  const auto timed = round ? straggler_watch_.times_of(*round) : std::nullopt;
  around_.run_reporter.tell(step_event(
      *spec_, {step(), &done.entry, round, on_device.value_or(took), history_.goodput(now),
               timed ? straggler_watch_.waits(*timed) : Value::List()}));
  if (!timed) return;
  for (auto& event : straggler_watch_.add(*spec_, *timed, step()))
    around_.run_reporter.tell(std::move(event));
}

/// Gives out rounds, as far ahead as allowed, up to the next boundary.
void StepDriver::go_on() {
  const auto& rounds = progress_.rounds();
  while (!must_drain() && progress_.given_out() < spec_->steps &&
         static_cast<int>(rounds.size()) < rounds_ahead() && around_.run_reporter.has_room()) {
    const auto first = progress_.given_out();
    const auto round = spec_->round(first, spec_->steps - first);
    // If no round in flight is far enough ahead, keep the state after this new one.
    if (rounds.size() <= copies_.rounds_before()) keep(first + round->steps);
    give_out({round, first});
  }
  keep_another();
  const bool is_drained = rounds.empty() && (must_drain() || has_ended());
  if (is_drained) drained();
}

/// Returns how many rounds last for `lead` at the current pace.
int StepDriver::rounds_ahead() const {
  if (spec_->lead.count() == 0 || history_.pace().count() == 0) return spec_->rounds_ahead;
  const auto lasting = spec_->lead / history_.pace() + 1;
  return static_cast<int>(std::clamp<std::int64_t>(lasting, spec_->rounds_ahead, most_ahead));
}

void StepDriver::give_out(const Play& play) {
  around_.saves.go_on();
  progress_.give_out(play);
  around_.players.play(play);
}

/// Returns whether no round may begin before those in flight have ended.
bool StepDriver::must_drain() const {
  const auto step = progress_.given_out();
  return is_held_ || early_stop_ || evaluation_is_due(step) || save_is_due(step);
}

bool StepDriver::save_is_due(std::int64_t step) const {
  return around_.saves.is_due(*spec_, step, around_.self->now());
}

void StepDriver::drained() {
  if (evaluation_is_due(step())) return evaluate();
  // The ledger must contain all steps of a checkpoint. Recorded will arrive.
  if (!around_.run_reporter.is_confirmed()) return;
  phase_ = Phase::boundary;
  around_.host.tell(decide::AtBoundary{0, step(), has_ended(), save_is_due(step())});
}

void StepDriver::play_on(std::int64_t step) {
  if (!is_at_boundary(step)) return;
  go_on_playing();
  advance();
}

void StepDriver::collect(std::int64_t step) {
  if (!is_at_boundary(step)) return;
  phase_ = Phase::collecting;
  around_.players.tell_optimizers(TakeSnapshot{});
}

// Keeps states in nodes' memory, except when an evaluation or a save drains the run anyway.

/// Keeps the state after the first round in flight whose optimizers hear of it in time.
void StepDriver::keep_another() {
  const auto& rounds = progress_.rounds();
  for (std::size_t i = copies_.rounds_before(); i < rounds.size(); ++i) {
    const auto& [round, first] = rounds[i].play;
    if (keep(first + round->steps)) return;
  }
}

bool StepDriver::keep(std::int64_t step) {
  if (evaluation_is_due(step) || save_is_due(step)) return false;
  const auto order = copies_.ask(step, around_.self->now());
  if (order) around_.players.tell_optimizers(*order);
  return order.has_value();
}

/// Training goes on after something else.
void StepDriver::go_on_playing() {
  phase_ = Phase::playing;
  history_.step_begins(around_.self->now());
  straggler_watch_.interrupted();
}

// The functions below are called while nothing else is in flight.

void StepDriver::evaluate() {
  phase_ = Phase::evaluating;
  evaluation_.begin(spec_->evaluation->schedule.micro_batches, around_.self->now());
  give_out({spec_->evaluation, step()});
}

void StepDriver::complete_evaluation() {
  const auto mean = evaluation_.mean();
  if (!mean || !progress_.rounds().front().is_through()) return;
  Value eval = around_.run_reporter.event("eval");
  eval.set("step", step());
  eval.set("loss", *mean);
  eval.set("seconds", in_seconds(evaluation_.takes(around_.self->now())));
  around_.run_reporter.tell(std::move(eval));
  progress_.evaluated();
  evaluation_.complete(step(), *mean);
  around_.run_reporter.enter(EvaluationDone{{step(), *mean}});
  if (newest_is_among_best(evaluation_.all(), spec_->keep_best)) around_.saves.ask(step());
  look_for_early_stop();
  if (early_stop_) tell_early_stop();
  go_on_playing();
}

void StepDriver::tell_early_stop() {
  Value event = around_.run_reporter.event("run.stopped_early");
  event.set("step", step());
  event.set("best_step", early_stop_->best.step);
  event.set("best_loss", early_stop_->best.loss);
  event.set("why", early_stop_->why);
  around_.run_reporter.tell(std::move(event));
}

Wait StepDriver::waits_for(bool is_paused) const {
  const auto done = std::to_string(step());
  switch (phase_) {
    case Phase::assembling:
      return {};
    case Phase::playing:
      if (!progress_.rounds().empty())
        return waits("step " + std::to_string(step() + 1) + " waits for " + progress_.missing());
      return waits("it waits for the recorder to write down what it was told");
    case Phase::boundary:
      if (around_.saves.is_under_way())
        return waits_for_disk("it waits for step " + done + " to be saved");
      if (is_paused) return {};
      return waits("it waits for a decision after step " + done);
    case Phase::evaluating:
      return waits("it waits for the losses of the evaluation after step " + done);
    case Phase::spike:
      return waits("it waits for a decision about the loss of step " + std::to_string(step() + 1));
    case Phase::collecting:
      return waits(
          "it waits for " +
          std::to_string(around_.players.players().optimizers.size() - around_.saves.parts()) +
          " optimizers to give their part of the checkpoint of step " + done);
  }
  return {};
}

}  // namespace troupe::actors
