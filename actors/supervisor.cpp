#include "actors/supervisor.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <deque>
#include <numeric>
#include <utility>

#include "actors/assembled.h"
#include "actors/cast.h"
#include "actors/cause.h"
#include "actors/chronicle.h"
#include "actors/ending.h"
#include "actors/envoy.h"
#include "actors/evaluation.h"
#include "actors/exchange.h"
#include "actors/goodput.h"
#include "actors/interludes.h"
#include "actors/lines.h"
#include "actors/loss.h"
#include "actors/players.h"
#include "actors/recovery.h"
#include "actors/round_under_way.h"
#include "actors/rt.h"
#include "actors/saves.h"
#include "actors/step_event.h"
#include "actors/step_ledger.h"

namespace troupe::actors {
namespace {

constexpr std::size_t recent_steps = 20;
constexpr int steps_in_pace = 8;
constexpr std::int64_t most_ahead = 64;  // Rounds.
// Losses one after the other without a step between them; further ones are strikes.
constexpr int most_futile = 5;
constexpr std::size_t most_rounds_off = 64;

class Supervisor {
 public:
  static constexpr const char* name = "supervisor";

  Supervisor(rt::Base* self, RunSpecPtr spec, StartPoint start, std::shared_ptr<Ending> ending)
      : self_(self),
        spec_(std::move(spec)),
        start_(std::move(start)),
        ending_(std::move(ending)),
        chronicle_(self, spec_),
        players_(self) {
    self_->on_down([this](const caf::actor_addr& who, const caf::error& why) { down(who, why); });
  }

  caf::behavior make_behavior() {
    saves_.run_begins(self_->now());
    learn_plan();
    chronicle_.open();
    self_->tell_self_after(spec_->stall_patience, Look{});
    step_ = std::max(start_->step, spec_->ledger ? spec_->ledger->steps() : 0);
    skipped_steps_ = start_->loss_scale.skipped_steps;
    now_saved(start_->step);
    begin();
    return {
        [this](const MicroBatchLoss& loss) {
          if (is_now(loss)) heard(loss);
        },
        [this](const Divergence& divergence) {
          if (is_now(divergence)) check_divergence(ledger_->add(divergence));
        },
        [this](const StepDone& done) {
          if (is_now(done)) heard(done);
        },
        [this](const LateGradients& late) {
          if (is_now(late)) ledger_->add(late);
        },
        [this](const RoundPlayed& played) {
          if (is_now(played)) heard(played);
        },
        [this](Snapshot& snapshot) {
          if (is_now(snapshot)) heard(std::move(snapshot));
        },
        [this](const Saved& saved) { heard(saved); },
        [this](const Pulse& pulse) {
          if (is_now(pulse)) heard(pulse);
        },
        [this](const Assembled& assembled) {
          if (is_now(assembled)) begun(assembled);
        },
        [this](const Remark& remark) {
          if (is_now(remark)) chronicle_.warn(remark.text);
        },
        [this](const GivenUp& given_up) {
          if (is_now(given_up)) fail_run(given_up.why);
        },
        [this](const Kept& kept) {
          if (is_now(kept)) heard(kept);
        },
        [this](Recorded) { heard_recorded(); },
        [this](Look) { look(); },
        [this](Drain) { drain(); },
        [this](StopNow) { stop_now(); },
        [this](Pause) { pause(); },
        [this](Resume) { resume(); },
        [this](Interlude& interlude) { heard(std::move(interlude)); },
    };
  }

 private:
  /// What the run is about.
  enum class Phase : std::uint8_t {
    playing,     // Rounds are out, or may be given out.
    evaluating,  // Nothing is in flight but an evaluation.
    collecting,  // Nothing is in flight; the optimizers are asked for a snapshot.
    clearing,    // The cast is asked to go; what comes next is in `next_`.
    ended,
  };
  enum class Next : std::uint8_t { try_again, begin_anew, finish };

  void learn_plan() {
    usual_ = spec_->round(0, 1);
    most_parcels_.assign(static_cast<std::size_t>(spec_->devices()), 0);
  }

  // An attempt.

  /// What an attempt tells may come once it is over, and is for nobody then.
  template <class Report>
  bool is_now(const Report& report) const {
    return report.attempt == attempt_ && phase_ != Phase::clearing && phase_ != Phase::ended;
  }

  /// Brings players together; rounds are given out once they are.
  void begin() {
    ledger_.emplace(static_cast<int>(spec_->stages.size()), optimizers_of(*spec_),
                    usual_->micro_batches_in_step());
    rounds_.clear();
    saves_.attempt_begins();
    lines_ = {};
    phase_ = Phase::playing;
    is_assembled_ = false;
    patience_ = {};
    pace_ = {};
    attempt_from_ = step_;
    if (next_ == Next::try_again) loss_.over(self_->now());
    const Backstage backstage{spec_, caf::actor_cast<caf::actor>(self_), ending_};
    auto& system = self_->home_system();
    ++attempt_;
    Assembled here{.attempt = attempt_};
    if (spec_->casting) {
      const auto saved = start_ ? start_->step : saves_.newest();
      players_.begin(spec_->casting->begin(system, backstage, attempt_,
                                           {saved, step_, loading(spec_, start_)}));
    } else {
      sign("it reads the newest checkpoint");
      const auto start = loading(spec_, start_)();
      if (!start) return finish(failed(last_failure_ + " (and " + start.error().text + ")"));
      players_.begin(spawn_company(system, backstage, attempt_, *start));
      here.step = start->step;
    }
    if (!spec_->casting) return begun(here);
    if (drain_asked_) drain();
  }

  /// The state to go on from: the first one, until there is a newer one on the disk.
  static std::function<Result<StartPoint>()> loading(const RunSpecPtr& spec,
                                                     const std::optional<StartPoint>& first) {
    return [spec, first]() -> Result<StartPoint> {
      if (first) return *first;
      const int devices = spec->evaluation->devices();
      auto newest = spec->checkpoints->newest(spec->memory(0, 0, devices));
      if (!newest) return Error{"the newest checkpoint cannot be read: " + newest.error().text};
      if (!*newest) return Error{"the checkpoints of this run are gone"};
      return std::move(**newest);
    };
  }

  void begun(const Assembled& assembled) {
    is_assembled_ = true;
    if (next_ == Next::try_again) loss_.assembled(assembled);
    step_ = given_out_ = attempt_from_ = assembled.step;
    evaluation_.count_from(step_);
    saves_.count_from(step_);
    if (!assembled.from_memory) now_saved(step_);
    lines_ = Lines(step_, assembled.copies, assembled.nodes_here,
                   losses_.between(self_->now().time_since_epoch()));
    step_began_ = self_->now();
    goodput_.begun(step_, step_began_);
    chronicle_.enter(AttemptBegun{step_});
    go_on();
  }

  void now_saved(std::int64_t step) {
    saves_.found(step);
    ending_->saved(step);
  }

  /// Gives out rounds, as far ahead as is allowed, up to the next moment at which the run must be
  /// drained.
  void go_on() {
    if (phase_ != Phase::playing || !is_assembled_) return;
    while (!must_drain() && given_out_ < spec_->steps &&
           static_cast<int>(rounds_.size()) < rounds_ahead() && chronicle_.has_room()) {
      const auto round = spec_->round(given_out_, spec_->steps - given_out_);
      const auto first = std::exchange(given_out_, given_out_ + round->steps);
      // Where no other is far enough off, one that has not begun.
      if (rounds_.size() <= rounds_off_) keep(given_out_);
      give_out({round, first});
    }
    keep_another();
    if (rounds_.empty() && (must_drain() || step_ >= spec_->steps)) drained();
  }

  /// As many as last for the lead, at the pace of the last steps.
  int rounds_ahead() const {
    if (spec_->lead.count() == 0 || pace_.count() == 0) return spec_->rounds_ahead;
    const auto lasting = spec_->lead / pace_ + 1;
    return static_cast<int>(std::clamp<std::int64_t>(lasting, spec_->rounds_ahead, most_ahead));
  }

  void give_out(const Play& play) {
    saves_.go_on();
    rounds_.emplace_back(play);
    const auto& cast = players_.cast();
    const int devices = play.round->devices();
    const auto tell_to = [&](const std::vector<caf::actor>& group, int which) {
      self_->tell(group[static_cast<std::size_t>(which)], play);
    };
    for (int replica = 0; replica < play.round->replicas; ++replica) {
      for (int device = 0; device < devices; ++device)
        tell_to(cast.stages, replica * devices + device);
      tell_to(cast.inputs, replica);
      tell_to(cast.targets, replica);
    }
  }

  /// Whether the rounds that are out reach a moment for which nothing may be in flight.
  bool must_drain() const {
    return drain_asked_ || paused_ || interludes_.wait() || evaluation_is_due(given_out_) ||
           save_is_due(given_out_);
  }
  bool evaluation_is_due(std::int64_t step) const { return evaluation_.is_due(*spec_, step); }
  bool save_is_due(std::int64_t step) const { return saves_.is_due(*spec_, step, self_->now()); }

  void drained() {
    if (evaluation_is_due(step_)) return evaluate();
    const bool is_end = step_ >= spec_->steps || drain_asked_;
    const bool is_asked = interludes_.wait();
    const bool is_collected = saves_.is_collected(step_);
    const bool has_state = saves_.is_saved(step_) || is_collected;
    const bool must_save =
        save_is_due(step_) || (is_end && !is_collected) || (is_asked && !has_state);
    // One at a time: a slow disk holds the run up, and does not fill its memory. Saved comes.
    if ((must_save || is_end || is_asked) && saves_.is_under_way()) return;
    // The ledger has what is saved, or more. Recorded comes.
    if (must_save && !chronicle_.is_confirmed()) return;
    if (must_save) return collect();
    if (is_asked) return hold_interludes();
    if (is_end) return conclude();
    if (!must_drain()) go_on();
  }

  // Steps.

  void heard(const MicroBatchLoss& loss) {
    if (loss.purpose == Round::Purpose::evaluation) return heard_evaluation(loss);
    if (!std::isfinite(loss.mean))
      return fail_run(place_of(loss) + ": the loss is not a number any more");
    check_divergence(ledger_->add(loss));
    complete_steps();
  }

  std::string place_of(const MicroBatchLoss& loss) const {
    const bool training = loss.purpose == Round::Purpose::training;
    return device_title(*spec_, loss.replica, loss.device) + ": " +
           (training ? "step " + std::to_string(loss.step + 1)
                     : "evaluation after step " + std::to_string(loss.step)) +
           ", micro-batch " + std::to_string(loss.index);
  }

  /// A loss that is not a number comes before the gradients that it makes.
  void check_divergence(const StepLedger::Entry& entry) {
    if (!entry.divergence || !ledger_->has_all_losses(entry)) return;
    const auto& [attempt, optimizer, step, parameter] = *entry.divergence;
    fail_run(title_of(*spec_, {PlayerId::Kind::optimizer, optimizer}) + ": step " +
             std::to_string(step + 1) + ": the gradient of " + parameter +
             " is not finite any more" +
             (spec_->loss_scaling.is_on() ? ", at a loss scale of 1" : ""));
  }

  void heard(const StepDone& done) {
    ledger_->add(done);
    complete_steps();
  }

  void heard(const RoundPlayed& played) {
    chronicle_.hand_on(played);
    const int device = played.replica * usual_->devices() + played.device;
    auto& most = most_parcels_[static_cast<std::size_t>(device)];
    most = std::max(most, played.most_parcels);
    const auto found = std::ranges::find_if(rounds_, [&](const RoundUnderWay& round) {
      return round.play.first_step == played.first_step &&
             round.play.round->purpose == played.purpose;
    });
    assert(found != rounds_.end());
    found->add(played);
    complete_steps();
  }

  /// Steps end in order; the last one of a round with what its devices did.
  void complete_steps() {
    if (phase_ == Phase::evaluating) return complete_evaluation();
    while (!rounds_.empty() && ledger_->complete(step_)) {
      const auto& round = rounds_.front();
      const bool is_last = step_ + 1 == round.play.first_step + round.play.round->steps;
      if (is_last && !round.is_through()) return;
      const auto entry = ledger_->take(step_);
      const auto first = step_++ * spec_->samples_in_step;
      chronicle_.enter(StepCommitted{{.step = step_,
                                      .first = first,
                                      .samples = spec_->samples_in_step,
                                      .ids = storage::ids_of(entry.samples),
                                      .loss = entry.mean_loss(),
                                      .is_skipped = entry.done->is_skipped}});
      if (!spec_->ledger) lines_.entered(step_);
      if (spec_->casting) spec_->casting->committed(step_);
      tell_step(entry, is_last ? &round : nullptr);
      if (auto recovered = loss_.made_good(chronicle_.event("run.recovered"), self_->now(), step_))
        chronicle_.tell(std::move(*recovered));
      if (is_last) rounds_.pop_front();
    }
    go_on();
  }

  void tell_step(const StepLedger::Entry& entry, const RoundUnderWay* round) {
    const auto now = self_->now();
    const auto took = now - std::exchange(step_began_, now);
    goodput_.done(took);
    pace_ += (took - pace_) / steps_in_pace;
    skipped_steps_ = entry.done->skipped_steps;
    recent_losses_.push_back(entry.mean_loss());
    if (recent_losses_.size() > recent_steps) recent_losses_.pop_front();

    chronicle_.tell(step_event(*spec_, {step_, &entry, round, took, goodput_.at(now)}));
  }

  // Lines: states in the memory of nodes (lines.h). Evaluations and saves have their own.

  /// Of the rounds that are out, the first whose optimizers hear of it in time.
  void keep_another() {
    for (std::size_t i = rounds_off_; i < rounds_.size(); ++i) {
      const auto& [round, first] = rounds_[i].play;
      if (keep(first + round->steps)) return;
    }
  }
  bool keep(std::int64_t step) {
    const auto now = self_->now().time_since_epoch();
    if (!lines_.may_ask(now) || evaluation_is_due(step) || save_is_due(step)) return false;
    for (const auto& optimizer : players_.cast().optimizers)
      self_->tell(optimizer, KeepStep{step, lines_.line()});
    lines_.ask(step, now);
    return true;
  }
  void heard(const Kept& kept) {
    if (kept.is_late) {
      if (lines_.missed(kept.step)) rounds_off_ = std::min(2 * rounds_off_, most_rounds_off);
    } else if (kept.why_not.empty()) {
      lines_.kept(kept.step, kept.took);
    } else if (lines_.missed(kept.step)) {
      lines_ = {};  // Until the next attempt.
      chronicle_.warn(title_of(*spec_, {PlayerId::Kind::optimizer, kept.optimizer}) +
                      ": no copies of its state are kept in memory: " + kept.why_not);
    }
    go_on();
  }

  // Evaluation, while nothing else is in flight.

  void evaluate() {
    phase_ = Phase::evaluating;
    evaluation_.begin(spec_->evaluation->schedule.micro_batches);
    give_out({spec_->evaluation, step_});
  }

  void heard_evaluation(const MicroBatchLoss& loss) {
    if (!std::isfinite(loss.mean))
      return fail_run(place_of(loss) + ": the loss is not a number any more");
    evaluation_.add(loss);
    complete_evaluation();
  }

  void complete_evaluation() {
    const auto mean = evaluation_.mean();
    if (!mean || !rounds_.front().is_through()) return;
    Value eval = chronicle_.event("eval");
    eval.set("step", step_);
    eval.set("loss", *mean);
    chronicle_.tell(std::move(eval));
    rounds_.clear();
    evaluation_.count_from(step_);
    phase_ = Phase::playing;
    step_began_ = self_->now();
    go_on();
  }

  // Saving.

  void collect() {
    phase_ = Phase::collecting;
    for (const auto& optimizer : players_.cast().optimizers) self_->tell(optimizer, TakeSnapshot{});
  }

  void heard(Snapshot snapshot) {
    if (phase_ != Phase::collecting) return;
    if (!saves_.add(std::move(snapshot), players_.cast().optimizers.size())) return;
    sign("it puts the checkpoint of step " + std::to_string(step_) + " together");
    saves_.write(*spec_, step_, spec_->memory(0, 0, usual_->devices()), *self_);
    phase_ = Phase::playing;
    step_began_ = self_->now();
    go_on();
  }

  void heard(const Saved& saved) {
    if (saves_.heard(saved)) {
      goodput_.settled(saves_.newest());
      ending_->saved(saves_.newest());
      start_.reset();  // From now on there is a newer one.
    } else {
      chronicle_.warn(saves_.not_saved(saved.step));
    }
    if (phase_ == Phase::clearing && players_.have_gone()) return cleared();
    if (phase_ == Phase::playing) go_on();
  }

  void conclude() {
    Outcome outcome;
    if (saves_.has_failed(step_)) {
      outcome = failed(saves_.not_saved(step_));
    } else {
      outcome.how = step_ >= spec_->steps ? Outcome::How::done : Outcome::How::stopped;
      outcome.step = step_;
    }
    outcome.weights = saves_.take_weights();
    finish(std::move(outcome));
  }

  // Interludes: nothing is in flight, and all that was done is saved.

  void heard(Interlude interlude) {
    if (phase_ == Phase::ended || (phase_ == Phase::clearing && next_ == Next::finish))
      return interlude.done(Error{"the run is ending"});
    interludes_.add(std::move(interlude));
    go_on();
  }

  void hold_interludes() {
    sign("it changes the run after step " + std::to_string(step_));
    const auto saved =
        saves_.is_saved(step_) ? Status(Done{}) : Status(Error{saves_.not_saved(step_)});
    const bool is_another = interludes_.hold(step_, saved, [this](RunSpecPtr spec) {
      spec_ = std::move(spec);
      learn_plan();
      chronicle_.change(spec_);
    });
    is_another ? clear(Next::begin_anew) : go_on();
  }

  // Failures.

  void down(const caf::actor_addr& who, const caf::error& why) {
    if (chronicle_.forget_recorder(who)) return recorder_down(why);
    const Player* player = players_.ended(who);
    if (!player) return;
    if (phase_ != Phase::clearing)
      return fail_attempt(player->standing.who, reason_of(why),
                          is_lost(why) ? Cause::lost : Cause::failed);
    if (have_all_gone()) cleared();
  }

  /// With the place, where an actor had no chance to tell it.
  std::string reason_of(const caf::error& why) const {
    const auto text = rt::to_text(why);
    return rt::is_told(why) ? text : text + " after step " + std::to_string(step_);
  }

  /// An actor has failed: all others of its attempt go, and the run goes on from the newest
  /// checkpoint, unless there is no hope.
  void fail_attempt(const std::string& who, const std::string& why, Cause cause) {
    const std::string text = who + ": " + why;
    // Losses may come as often as they like, as long as something is done between them.
    futile_ = step_ > attempt_from_ ? 0 : futile_ + 1;
    last_failure_ = text;
    const bool is_hopeful = futile_ < most_futile;
    if (cause == Cause::lost && is_hopeful) {
      chronicle_.warn(text + "; " + going_on());
    } else {
      failures_.push_back({self_->now().time_since_epoch(), text});
      if (cause == Cause::failed && is_hopeful) failures_.back().node = set_aside(who, why);
      const auto verdict = judge(failures_, {spec_->strikes, spec_->strike_window});
      if (verdict.what == Verdict::What::give_up) {
        const bool repeated = failures_.size() > 1;
        return fail_run(repeated ? text + " (given up: " + verdict.reason + ")" : text);
      }
      chronicle_.warn(text + "; " + going_on() + ": " + verdict.reason);
    }
    losses_.lost(self_->now().time_since_epoch());
    loss_.notice(self_->now(), step_, text);
    clear(Next::try_again);
  }
  /// The node that the run does without from now on; empty where it is none.
  std::string set_aside(const std::string& who, const std::string& why) const {
    if (!spec_->casting) return {};
    const auto player = players_.find(who);
    return player ? spec_->casting->set_aside(*player, why).value_or("") : std::string();
  }
  std::string going_on() const {
    const bool is_kept = spec_->casting && spec_->copies > 1;
    return is_kept ? "going on from the newest state that is left"
                   : "going on from the newest checkpoint";
  }

  void fail_run(const std::string& why) {
    if (phase_ == Phase::clearing || phase_ == Phase::ended) return;
    finish(failed(why));
  }
  Outcome failed(const std::string& why) const {
    Outcome outcome;
    outcome.how = Outcome::How::failed;
    outcome.step = saves_.newest();
    outcome.why = why;
    return outcome;
  }

  void finish(Outcome outcome) {
    outcome_ = std::move(outcome);
    outcome_.skipped_steps = skipped_steps_;
    if (!recent_losses_.empty())
      outcome_.recent_loss = std::accumulate(recent_losses_.begin(), recent_losses_.end(), 0.0) /
                             static_cast<double>(recent_losses_.size());
    clear(Next::finish);
  }

  void clear(Next next) {
    phase_ = Phase::clearing;
    next_ = next;
    patience_ = {};
    players_.dismiss();
    if (have_all_gone()) cleared();
  }

  bool have_all_gone() const { return players_.have_gone() && !saves_.is_under_way(); }

  void cleared() {
    players_.forget();
    if (next_ == Next::finish) return chronicle_.is_open() ? chronicle_.close() : end();
    if (next_ == Next::begin_anew) last_failure_ = "the run was to begin anew";
    begin();
    interludes_.play_from(step_);
  }

  /// Without its events a run cannot be told from one that stands still; so it ends.
  void recorder_down(const caf::error& why) {
    if (phase_ == Phase::clearing && next_ == Next::finish) {
      if (have_all_gone()) end();
      return;
    }
    finish(failed("recorder: " + reason_of(why)));
  }

  void end() {
    phase_ = Phase::ended;
    interludes_.run_has_ended();
    if (spec_->casting) spec_->casting->over(outcome_.how);
    outcome_.most_parcels = most_parcels_;
    ending_->tell(std::move(outcome_));
    self_->quit();
  }

  // Waits, those of others and its own.

  void heard(const Pulse& pulse) {
    const Standing* standing = players_.heard(pulse);
    if (standing && pulse.patiences > 0) chronicle_.tell_stalled(*standing);
  }

  void look() {
    self_->tell_self_after(spec_->stall_patience, Look{});
    Standing own{.who = name, .wait = waits_for()};
    own.patiences = patience_.look(own.wait);
    sign(own.wait ? own.wait.what : "it waits for nobody");
    if (own.patiences > 0) chronicle_.tell_stalled(own);
    if (phase_ == Phase::clearing) {
      if (own.patiences >= spec_->stalls.of(own.wait)) end_anyway(own.wait.what);
      return;
    }
    auto all = players_.look();
    all.push_back(std::move(own));
    if (const auto found = find_standstill(all, spec_->stalls))
      fail_attempt(found->who, found->what, Cause::failed);
  }

  Wait waits_for() const {
    const auto step = std::to_string(step_);
    switch (phase_) {
      case Phase::playing:
        if (!is_assembled_) return {};
        if (!rounds_.empty())
          return waits("step " + std::to_string(step_ + 1) + " waits for " +
                       ledger_->missing(step_));
        if (!chronicle_.is_confirmed() && !paused_)
          return waits("it waits for the recorder to write down what it was told");
        return paused_ ? Wait{} : waits_for_disk("it waits for step " + step + " to be saved");
      case Phase::evaluating:
        return waits("it waits for the losses of the evaluation after step " + step);
      case Phase::collecting:
        return waits("it waits for " +
                     std::to_string(players_.cast().optimizers.size() - saves_.parts()) +
                     " optimizers to give their part of the checkpoint of step " + step);
      case Phase::clearing:
        if (const Player* player = players_.some_left())
          return waits("it waits for " + player->standing.who + " to end");
        if (saves_.is_under_way()) return waits_for_disk("it waits for a checkpoint to be written");
        return waits("it waits for the recorder to end");
      case Phase::ended:
        return {};
    }
    return {};
  }

  /// Without those who do not go.
  void end_anyway(const std::string& what) {
    if (next_ == Next::try_again) outcome_ = failed(last_failure_);
    if (next_ == Next::begin_anew) outcome_ = failed("the run was to begin anew");
    outcome_.why += (outcome_.why.empty() ? "" : "; then ") + what + ", for too long";
    outcome_.all_gone = false;
    end();
  }

  void heard_recorded() {
    const bool had_room = chronicle_.has_room();
    chronicle_.confirmed();
    if (spec_->ledger) lines_.entered(spec_->ledger->steps());
    if (chronicle_.is_confirmed() || !had_room) go_on();
  }

  // Orders.

  void drain() {
    drain_asked_ = true;
    paused_ = false;
    // Nobody who could finish anything is there, or has begun to: the newest checkpoint is all.
    if (phase_ == Phase::playing && !is_assembled_) return stop({});
    go_on();
  }
  void stop_now() {
    if (phase_ == Phase::clearing && next_ == Next::finish) return;
    stop("it was told to stop at once");
  }
  void stop(const std::string& why) {
    Outcome outcome;
    outcome.how = Outcome::How::stopped;
    outcome.step = saves_.newest();
    outcome.why = why;
    finish(std::move(outcome));
  }
  void pause() {
    if (paused_) return;
    paused_ = true;
    paused_at_ = self_->now();
    chronicle_.tell_state("paused");
  }
  void resume() {
    if (!paused_) return;
    paused_ = false;
    chronicle_.tell_state("running");
    step_began_ = self_->now();
    goodput_.paused(step_began_ - paused_at_);
    go_on();
  }

  // Telling.

  void sign(const std::string& doing) const {
    if (spec_->alive) spec_->alive(doing);
  }

  rt::Base* self_;
  RunSpecPtr spec_;
  RoundPtr usual_;
  std::optional<StartPoint> start_;  // Until there is a newer one.
  std::shared_ptr<Ending> ending_;
  Chronicle chronicle_;

  Players players_;
  int attempt_ = 0;
  std::int64_t attempt_from_ = 0;  // Steps that were done when it began.
  bool is_assembled_ = false;      // Its players are there, and play.
  Phase phase_ = Phase::playing;
  Next next_ = Next::finish;  // Once all are gone; then why an attempt began.
  std::optional<StepLedger> ledger_;
  std::deque<RoundUnderWay> rounds_;
  std::int64_t step_ = 0;       // Steps done; before an attempt has begun those of the one before.
  std::int64_t given_out_ = 0;  // Steps that are done or in rounds that are out.
  Lines lines_;
  LossRate losses_;
  std::size_t rounds_off_ = 1;  // What is asked for now is heard before so many rounds are through.
  Evaluation evaluation_;
  Saves saves_;
  rt::TimePoint step_began_;
  rt::Duration pace_{};  // Of a step, as the last ones were.
  std::deque<double> recent_losses_;
  std::int64_t skipped_steps_ = 0;  // Of those that are done.
  std::vector<Failure> failures_;
  std::string last_failure_;
  int futile_ = 0;  // Attempts without a step, one after the other.
  Loss loss_;
  Outcome outcome_;
  std::vector<std::size_t> most_parcels_;
  Patience patience_;
  Interludes interludes_;
  bool drain_asked_ = false;
  bool paused_ = false;
  rt::TimePoint paused_at_;
  Goodput goodput_;
};

}  // namespace

caf::actor spawn_supervisor(caf::actor_system& system, RunSpecPtr spec, StartPoint start,
                            std::function<void(Outcome)> ended) {
  const auto ending = std::make_shared<Ending>(std::move(ended));
  auto supervisor = rt::spawn<Supervisor>(system, std::move(spec), std::move(start), ending);
  supervisor->attach_functor([ending](const caf::error& why) { ending->supervisor_died(why); });
  return supervisor;
}

}  // namespace troupe::actors
