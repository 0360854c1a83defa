#include "actors/lead/supervisor.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "actors/assembled.h"
#include "actors/caf_shim.h"
#include "actors/checkpoints.h"
#include "actors/end_cause.h"
#include "actors/ending.h"
#include "actors/lead/boundary_changes.h"
#include "actors/lead/local_player_host.h"
#include "actors/lead/loss.h"
#include "actors/lead/run_reporter.h"
#include "actors/lead/saves.h"
#include "actors/lead/step_driver.h"
#include "actors/play/player_table.h"
#include "actors/play/players.h"
#include "actors/standstill.h"

namespace troupe::actors {
namespace {

constexpr auto leave_out_again_after = std::chrono::milliseconds(500);

class Supervisor {
 public:
  static constexpr const char* name = "supervisor";

  Supervisor(caf_shim::Base* self, RunSpecPtr spec, StartPoint start,
             std::shared_ptr<Ending> ending)
      : self_(self),
        spec_(std::move(spec)),
        start_(std::move(start)),
        ending_(std::move(ending)),
        run_reporter_(self, spec_),
        host_(spec_->player_host ? *spec_->player_host : local_),
        players_(self),
        step_driver_({self, run_reporter_, host_, players_, saves_, loss_}, spec_) {
    self_->on_down([this](const caf::actor_addr& who, const caf::error& why) { down(who, why); });
  }

  caf::behavior make_behavior() {
    attempt_ = host_.last_attempt();
    saves_.run_begins(self_->now());
    step_driver_.run_begins(*start_);
    run_reporter_.open();
    self_->tell_self_after(spec_->stall_patience, Look{});
    now_saved(start_->step);
    begin();
    return {
        [this](const MicroBatchLoss& loss) {
          if (is_now(loss) && is_expected(loss) && is_good(step_driver_.heard(loss))) advance();
        },
        [this](const Divergence& divergence) {
          if (is_now(divergence) && is_expected(divergence) &&
              is_good(step_driver_.heard(divergence)))
            advance();
        },
        [this](const StepDone& done) { heard(done); },
        [this](const LateGradients& late) {
          if (is_now(late) && is_expected(late)) step_driver_.heard(late);
        },
        [this](const RoundPlayed& played) { heard(played); },
        [this](const Kept& kept) { heard(kept); },
        [this](Snapshot& snapshot) { heard(std::move(snapshot)); },
        [this](const Saved& saved) { saved_or_not(saved); },
        [this](const Pulse& pulse) {
          if (is_now(pulse)) watch(pulse);
        },
        [this](const Assembled& assembled) {
          if (is_now(assembled)) begun(assembled);
        },
        [this](const Remark& remark) { run_reporter_.warn(remark.text); },
        [this](Recorded) { heard_recorded(); },
        [this](Look) { look(); },
        [this](const decide::HoldRounds& order) {
          step_driver_.hold(order.is_held);
          advance();
        },
        [this](const decide::PlayOn& order) {
          if (phase_ == Phase::playing) step_driver_.play_on(order.step);
        },
        [this](const decide::Collect& order) {
          if (phase_ == Phase::playing) step_driver_.collect(order.step);
        },
        [this](const decide::ApplyChanges& order) { apply_changes(order.step); },
        [this](const decide::SkipStep& order) { leave_out(order.step); },
        [this](const decide::End& order) { conclude(order); },
        [this](Drain) { host_.tell(decide::StopAsked{}); },
        [this](StopNow) { host_.tell(decide::StopAsked{.at_once = true}); },
        [this](Pause) { pause(); },
        [this](Resume) { resume(); },
        [this](BoundaryChange& boundary_change) { add(std::move(boundary_change)); },
    };
  }

 private:
  enum class Phase : std::uint8_t {
    playing,   // An attempt plays.
    clearing,  // The players are told to end; `next_` says what comes then.
    ended,
  };
  enum class Next : std::uint8_t { try_again, begin_anew, finish };

  std::int64_t step() const { return step_driver_.step(); }

  /// Returns whether a report is of the current attempt. Reports of an earlier one may arrive late.
  template <class Report>
  bool is_now(const Report& report) const {
    return report.attempt == attempt_ && phase_ == Phase::playing;
  }

  template <class Report>
  void heard(Report report) {
    if (!is_now(report) || !is_expected(report)) return;
    step_driver_.heard(std::move(report));
    advance();
  }
  /// Checks a report. A wrong one of a remote player is refused; otherwise the run fails.
  template <class Report>
  bool is_expected(const Report& report) {
    const auto expected = step_driver_.expects(report);
    if (expected) return true;
    host_.refuse(speaker_of(report), std::string(Report::type) + ": " + expected.error().text);
    return false;
  }
  PlayerId speaker_of(const MicroBatchLoss& loss) const { return device(loss); }
  PlayerId speaker_of(const RoundPlayed& played) const { return device(played); }
  PlayerId speaker_of(const LateGradients& late) const {
    const auto holder = holders_of(*spec_->round(0, 1), late.stage).front();
    return device(holder);
  }
  template <class Report>
  PlayerId speaker_of(const Report& report) const {
    return {PlayerId::Kind::optimizer, report.optimizer};
  }
  template <class Of>
  PlayerId device(const Of& of) const {
    return {PlayerId::Kind::stage, of.replica * spec_->evaluation->devices() + of.device};
  }
  /// Fails the run on an error.
  bool is_good(const Status& heard) {
    if (!heard) fail_run(heard.error().text);
    return bool(heard);
  }

  /// Starts an attempt. Rounds are given out once its players are assembled.
  void begin() {
    step_driver_.attempt_begins();
    phase_ = Phase::playing;
    patience_ = {};
    if (next_ == Next::try_again) loss_.over(self_->now());
    const AttemptContext attempt_context{spec_, caf::actor_cast<caf::actor>(self_), ending_};
    sign("it begins an attempt");
    const auto saved = start_ ? start_->step : saves_.newest();
    auto team = host_.begin(self_->spawner(), attempt_context, ++attempt_,
                            {saved, older_than(saved), step(), loading(spec_, start_)});
    const auto assembled = team.assembled;
    players_.begin(std::move(team));
    if (assembled) begun(*assembled);
  }

  /// Returns the steps of older checkpoints. Only the first attempt asks.
  std::vector<std::int64_t> older_than(std::int64_t saved) {
    if (std::exchange(knows_older_, true)) return {};
    auto steps = spec_->checkpoints->steps();
    std::erase_if(steps, [&](std::int64_t step) { return step >= saved; });
    return steps;
  }

  void begun(const Assembled& assembled) {
    if (next_ == Next::try_again) loss_.assembled(assembled);
    step_driver_.begun(assembled);
    if (!assembled.from_memory) now_saved(step());
    advance();
  }

  void now_saved(std::int64_t step) {
    saves_.found(step);
    ending_->saved(step);
  }

  /// Continues as far as the reports allow.
  void advance() {
    if (phase_ == Phase::playing) step_driver_.advance();
  }

  void saved_or_not(const Saved& saved) {
    if (saves_.heard(saved)) {
      step_driver_.saved();
      host_.tell(decide::Saved{saved.step});
      ending_->saved(saves_.newest());
      start_.reset();  // A newer checkpoint exists now.
    } else {
      run_reporter_.warn(saves_.not_saved(saved.step));
      host_.tell(decide::SaveFailed{saved.step, saves_.problem()});
    }
    if (phase_ == Phase::clearing && players_.have_gone()) cleared();
  }

  /// Ends the run as its machine has decided.
  void conclude(const decide::End& order) {
    if (is_finishing()) return;
    Outcome outcome;
    outcome.how = how_of(order.how);
    outcome.step = saves_.newest();
    outcome.why = order.why;
    const auto& early = step_driver_.early_stop();
    if (outcome.how == Outcome::How::done && early && step() < spec_->steps)
      outcome.why = early->why;
    // A player may have died since.
    if (saves_.is_collected(step())) outcome.weights = saves_.take_weights();
    finish(std::move(outcome));
  }

  // Boundary changes, which happen when nothing is in flight and all steps are saved.

  void add(BoundaryChange boundary_change) {
    if (is_finishing()) return boundary_change.done(Error{"the run is ending"});
    if (boundary_changes_.add(std::move(boundary_change))) host_.tell(decide::ChangeAsked{});
  }

  void apply_changes(std::int64_t at) {
    if (phase_ != Phase::playing || !step_driver_.is_at_boundary(at)) return;
    sign("it changes the run after step " + std::to_string(step()));
    const auto saved =
        saves_.is_saved(step()) ? Status(Done{}) : Status(Error{saves_.not_saved(step())});
    const auto held = boundary_changes_.hold(step(), saved, [this](RunSpecPtr spec) {
      spec_ = std::move(spec);
      step_driver_.change(spec_);
      run_reporter_.change(spec_);
    });
    host_.tell(decide::ChangesMade{0, held.count, held.begins_anew});
    if (held.begins_anew) clear(Next::begin_anew);
  }

  // Spikes.

  /// Writes down that the samples of a step are left out. Then the attempt ends, and the next one
  /// begins at or before the state that the step began with.
  void leave_out(std::int64_t at) {
    if (phase_ != Phase::playing || !step_driver_.has_spike_at(at)) return;
    const std::string what = "step " + std::to_string(at) + ": " + step_driver_.spike()->why;
    sign("it leaves out the samples of step " + std::to_string(at));
    if (!spec_->leave_out) return fail_run(what + "; this run cannot leave out its samples");
    auto changed = spec_->leave_out(at);
    if (!changed) return leave_out_later(at, changed.error().text);
    run_reporter_.tell(step_driver_.spike_event());
    spec_ = std::move(*changed);
    step_driver_.change(spec_);
    run_reporter_.change(spec_);
    host_.tell(decide::StepSkipped{0, at});
    last_failure_ = what;
    loss_.notice(self_->now(), step(), what);
    clear(Next::try_again);
  }

  /// Waits for a disk that takes nothing.
  void leave_out_later(std::int64_t at, const std::string& why) {
    if (std::exchange(last_failure_, why) != why)
      run_reporter_.warn("the samples of step " + std::to_string(at) +
                         " are to be left out, but that cannot be written down: " + why);
    self_->tell_self_after(leave_out_again_after, decide::SkipStep{at});
  }

  // Failures.

  void down(const caf::actor_addr& who, const caf::error& why) {
    if (run_reporter_.forget_recorder(who)) return recorder_down(why);
    const Player* player = players_.ended(who);
    if (!player) return;
    if (phase_ != Phase::clearing)
      return fail_attempt(player->standing.who, reason_of(why),
                          caf_shim::is_lost(why) ? EndCause::lost : EndCause::failed);
    if (have_all_gone()) cleared();
  }

  /// Adds the place if the actor could not report it.
  std::string reason_of(const caf::error& why) const {
    const auto text = caf_shim::to_text(why);
    return caf_shim::is_told(why) ? text : text + " after step " + std::to_string(step());
  }

  /// Handles the end of a player: all others of the attempt end, and the run continues from the
  /// newest state, unless the run's machine has given up.
  void fail_attempt(const std::string& who, const std::string& why, EndCause cause) {
    const std::string text = who + ": " + why;
    last_failure_ = text;
    if (cause == EndCause::lost)
      run_reporter_.warn(text + "; " + going_on());
    else
      host_.failed(players_.find(who), text);
    step_driver_.lost();
    loss_.notice(self_->now(), step(), text);
    clear(Next::try_again);
  }
  std::string going_on() const {
    const bool is_kept = spec_->player_host && spec_->copies > 1;
    return is_kept ? "recovering from the newest state in memory"
                   : "recovering from the newest checkpoint";
  }

  /// Ends the run at once, since no attempt can mend it, and tells the run's machine.
  void fail_run(const std::string& why) {
    if (phase_ != Phase::playing) return;
    finish(failed(why));
    host_.tell(decide::RunFailed{why});
  }
  Outcome failed(const std::string& why) const {
    Outcome outcome;
    outcome.how = Outcome::How::failed;
    outcome.step = saves_.newest();
    outcome.why = why;
    return outcome;
  }

  bool is_finishing() const {
    return phase_ == Phase::ended || (phase_ == Phase::clearing && next_ == Next::finish);
  }

  void finish(Outcome outcome) {
    outcome_ = std::move(outcome);
    outcome_.skipped_steps = step_driver_.history().skipped_steps();
    outcome_.recent_loss = step_driver_.history().recent_loss();
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
    if (next_ == Next::finish) return run_reporter_.is_open() ? run_reporter_.close() : end();
    if (next_ == Next::begin_anew) last_failure_ = "the run was to restart";
    begin();
    boundary_changes_.play_from(step());
  }

  /// Ends the run: without events it cannot be told from one that stands still.
  void recorder_down(const caf::error& why) {
    if (is_finishing()) {
      if (have_all_gone()) end();
      return;
    }
    finish(failed("recorder: " + reason_of(why)));
  }

  void end() {
    phase_ = Phase::ended;
    boundary_changes_.run_has_ended();
    host_.over(outcome_.how);
    outcome_.most_parcels = step_driver_.progress().most_parcels();
    ending_->tell(std::move(outcome_));
    self_->quit();
  }

  // The functions below watch the waits of players and the supervisor's own.

  void watch(const Pulse& pulse) {
    const Standing* standing = players_.heard(pulse);
    if (standing && pulse.patiences > 0) run_reporter_.tell_stalled(*standing);
  }

  void look() {
    self_->tell_self_after(spec_->stall_patience, Look{});
    Standing own{.who = name, .wait = waits_for()};
    own.patiences = patience_.look(own.wait);
    // No player is to blame for a decision that does not come. The watchdog ends the process.
    const bool is_undecided =
        phase_ == Phase::playing && step_driver_.waits_for_decision() && !is_paused_;
    if (!is_undecided) sign(own.wait ? own.wait.what : "it waits for nothing");
    if (phase_ == Phase::clearing) {
      if (own.patiences > 0) run_reporter_.tell_stalled(own);
      if (own.patiences >= spec_->stalls.of(own.wait)) end_anyway(own.wait.what);
      return;
    }
    auto all = players_.look();
    // Players at work are no stall: an evaluation takes as long as it takes.
    const bool awaits_players = own.wait.on == Wait::On::message && has_progress(all);
    if (own.patiences > 0 && !awaits_players) run_reporter_.tell_stalled(own);
    all.push_back(std::move(own));
    if (is_undecided) return;
    if (const auto found = find_standstill(all, spec_->stalls))
      fail_attempt(found->who, found->what, EndCause::failed);
  }

  Wait waits_for() const {
    switch (phase_) {
      case Phase::playing:
        return step_driver_.waits_for(is_paused_);
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

  /// Ends the run although some players do not end.
  void end_anyway(const std::string& what) {
    if (next_ == Next::try_again) outcome_ = failed(last_failure_);
    if (next_ == Next::begin_anew) outcome_ = failed("the run was to restart");
    outcome_.why += (outcome_.why.empty() ? "" : "; then ") + what + ", for too long";
    outcome_.all_gone = false;
    end();
  }

  void heard_recorded() {
    const bool had_room = run_reporter_.has_room();
    run_reporter_.confirmed();
    step_driver_.recorded();
    if (run_reporter_.is_confirmed() || !had_room) advance();
  }

  // Orders of a person.

  void pause() {
    if (std::exchange(is_paused_, true)) return;
    step_driver_.paused();
    run_reporter_.tell_state("paused");
    host_.tell(decide::PauseAsked{.is_paused = true});
  }
  void resume() {
    if (!std::exchange(is_paused_, false)) return;
    run_reporter_.tell_state("running");
    step_driver_.resumed();
    host_.tell(decide::PauseAsked{.is_paused = false});
  }

  // Telling.

  void sign(const std::string& doing) const {
    if (spec_->alive) spec_->alive(doing);
  }

  caf_shim::Base* self_;
  RunSpecPtr spec_;
  std::optional<StartPoint> start_;  // Used until there is a newer checkpoint.
  std::shared_ptr<Ending> ending_;
  RunReporter run_reporter_;

  LocalPlayerHost local_;  // Used if the run has no other host.
  PlayerHost& host_;
  PlayerTable players_;
  Saves saves_;
  Loss loss_;
  StepDriver step_driver_;
  int attempt_ = 0;
  Phase phase_ = Phase::playing;
  Next next_ = Next::finish;  // The step after clearing; then the reason of the attempt.
  std::string last_failure_;
  Outcome outcome_;
  Patience patience_;
  BoundaryChanges boundary_changes_;
  bool is_paused_ = false;  // For the event `run.state` and for waits.
  bool knows_older_ = false;
};

}  // namespace

caf::actor spawn_supervisor(const caf_shim::Spawner& spawner, RunSpecPtr spec, StartPoint start,
                            std::function<void(Outcome)> ended) {
  const auto ending = std::make_shared<Ending>(std::move(ended));
  auto supervisor = caf_shim::spawn<Supervisor>(spawner, std::move(spec), std::move(start), ending);
  supervisor->attach_functor([ending](const caf::error& why) { ending->supervisor_died(why); });
  return supervisor;
}

}  // namespace troupe::actors
