#include "actors/lead/supervisor.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "actors/assembled.h"
#include "actors/cause.h"
#include "actors/checkpoints.h"
#include "actors/decide/crashes.h"
#include "actors/ending.h"
#include "actors/lead/chronicle.h"
#include "actors/lead/course.h"
#include "actors/lead/interludes.h"
#include "actors/lead/loss.h"
#include "actors/lead/saves.h"
#include "actors/play/cast.h"
#include "actors/play/players.h"
#include "actors/recovery.h"
#include "actors/rt.h"

namespace troupe::actors {
namespace {

class Supervisor {
 public:
  static constexpr const char* name = "supervisor";

  Supervisor(rt::Base* self, RunSpecPtr spec, StartPoint start, std::shared_ptr<Ending> ending)
      : self_(self),
        spec_(std::move(spec)),
        start_(std::move(start)),
        ending_(std::move(ending)),
        chronicle_(self, spec_),
        players_(self),
        course_({self, chronicle_, players_, saves_, loss_}, spec_) {
    self_->on_down([this](const caf::actor_addr& who, const caf::error& why) { down(who, why); });
  }

  caf::behavior make_behavior() {
    saves_.run_begins(self_->now());
    course_.run_begins(*start_);
    chronicle_.open();
    self_->tell_self_after(spec_->stall_patience, Look{});
    now_saved(start_->step);
    begin();
    return {
        [this](const MicroBatchLoss& loss) {
          if (is_now(loss) && is_expected(loss) && is_good(course_.heard(loss))) advance();
        },
        [this](const Divergence& divergence) {
          if (is_now(divergence) && is_expected(divergence)) is_good(course_.heard(divergence));
        },
        [this](const StepDone& done) { heard(done); },
        [this](const LateGradients& late) {
          if (is_now(late) && is_expected(late)) course_.heard(late);
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
        [this](const Remark& remark) {
          if (is_now(remark)) chronicle_.warn(remark.text);
        },
        [this](const ProcessEnded& ended) { process_ended(ended); },
        [this](const GivenUp& given_up) {
          if (is_now(given_up)) fail_run(given_up.why);
        },
        [this](Recorded) { heard_recorded(); },
        [this](Look) { look(); },
        [this](Drain) { drain(); },
        [this](StopNow) { stop_now(); },
        [this](Pause) { pause(); },
        [this](Resume) { resume(); },
        [this](Interlude& interlude) { add(std::move(interlude)); },
    };
  }

 private:
  enum class Phase : std::uint8_t {
    playing,   // An attempt is under way.
    clearing,  // The cast is asked to go; what comes next is in `next_`.
    ended,
  };
  enum class Next : std::uint8_t { try_again, begin_anew, finish };

  std::int64_t step() const { return course_.step(); }

  // An attempt.

  /// What an attempt tells may come once it is over, and is for nobody then.
  template <class Report>
  bool is_now(const Report& report) const {
    return report.attempt == attempt_ && phase_ == Phase::playing;
  }

  template <class Report>
  void heard(Report report) {
    if (!is_now(report) || !is_expected(report)) return;
    course_.heard(std::move(report));
    advance();
  }
  /// A player of another process may say anything at any time; one of ours has a defect.
  template <class Report>
  bool is_expected(const Report& report) {
    const auto expected = course_.expects(report);
    if (expected) return true;
    const std::string why = std::string(Report::type) + ": " + expected.error().text;
    spec_->casting ? spec_->casting->refuse(speaker_of(report), why) : fail_run(why);
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
  /// Else the run has failed.
  bool is_good(const Status& heard) {
    if (!heard) fail_run(heard.error().text);
    return bool(heard);
  }

  /// Brings players together; rounds are given out once they are.
  void begin() {
    course_.attempt_begins();
    phase_ = Phase::playing;
    patience_ = {};
    if (next_ == Next::try_again) loss_.over(self_->now());
    const Backstage backstage{spec_, caf::actor_cast<caf::actor>(self_), ending_};
    auto& system = self_->home_system();
    ++attempt_;
    Assembled here{.attempt = attempt_};
    if (spec_->casting) {
      const auto saved = start_ ? start_->step : saves_.newest();
      players_.begin(spec_->casting->begin(system, backstage, attempt_,
                                           {saved, step(), loading(spec_, start_)}));
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

  void begun(const Assembled& assembled) {
    if (next_ == Next::try_again) loss_.assembled(assembled);
    course_.begun(assembled);
    if (!assembled.from_memory) now_saved(step());
    advance();
  }

  void now_saved(std::int64_t step) {
    saves_.found(step);
    ending_->saved(step);
  }

  Course::Wishes wishes() const {
    return {.end = drain_asked_, .pause = paused_, .interlude = interludes_.wait()};
  }

  /// Goes on as far as what has come allows.
  void advance() {
    if (phase_ != Phase::playing) return;
    switch (course_.advance(wishes())) {
      case Course::Moment::none:
        return;
      case Course::Moment::interlude:
        return hold_interludes();
      case Course::Moment::end:
        return conclude();
    }
  }

  void saved_or_not(const Saved& saved) {
    if (saves_.heard(saved)) {
      course_.saved();
      ending_->saved(saves_.newest());
      start_.reset();  // From now on there is a newer one.
    } else {
      chronicle_.warn(saves_.not_saved(saved.step));
    }
    if (phase_ == Phase::clearing && players_.have_gone()) return cleared();
    advance();
  }

  void conclude() {
    Outcome outcome;
    if (saves_.has_failed(step())) {
      outcome = failed(saves_.not_saved(step()));
    } else {
      outcome.how = step() >= spec_->steps ? Outcome::How::done : Outcome::How::stopped;
      outcome.step = step();
    }
    outcome.weights = saves_.take_weights();
    finish(std::move(outcome));
  }

  // Interludes: nothing is in flight, and all that was done is saved.

  void add(Interlude interlude) {
    if (phase_ == Phase::ended || (phase_ == Phase::clearing && next_ == Next::finish))
      return interlude.done(Error{"the run is ending"});
    interludes_.add(std::move(interlude));
    advance();
  }

  void hold_interludes() {
    sign("it changes the run after step " + std::to_string(step()));
    const auto saved =
        saves_.is_saved(step()) ? Status(Done{}) : Status(Error{saves_.not_saved(step())});
    const bool is_another = interludes_.hold(step(), saved, [this](RunSpecPtr spec) {
      spec_ = std::move(spec);
      course_.change(spec_);
      chronicle_.change(spec_);
    });
    is_another ? clear(Next::begin_anew) : advance();
  }

  // Failures.

  void down(const caf::actor_addr& who, const caf::error& why) {
    if (chronicle_.forget_recorder(who)) return recorder_down(why);
    const Player* player = players_.ended(who);
    if (!player) return;
    if (phase_ != Phase::clearing)
      return fail_attempt(player->standing.who, reason_of(why),
                          rt::is_lost(why) ? Cause::lost : Cause::failed);
    if (have_all_gone()) cleared();
  }

  /// With the place, where an actor had no chance to tell it.
  std::string reason_of(const caf::error& why) const {
    const auto text = rt::to_text(why);
    return rt::is_told(why) ? text : text + " after step " + std::to_string(step());
  }

  /// An actor has failed: all others of its attempt go, and the run goes on from the newest
  /// checkpoint, unless there is no hope.
  void fail_attempt(const std::string& who, const std::string& why, Cause cause) {
    const std::string text = who + ": " + why;
    fell_at_ = place();
    last_failure_ = text;
    // The reconciler counts losses, and ends the run if no attempt comes further any more.
    if (cause == Cause::lost) {
      chronicle_.warn(text + "; " + going_on());
    } else {
      failures_.push_back({self_->now().time_since_epoch(), text, set_aside(who, why)});
      const auto verdict = judge(failures_, {spec_->strikes, spec_->strike_window});
      if (verdict.what == Verdict::What::give_up) {
        const bool repeated = failures_.size() > 1;
        return fail_run(repeated ? text + " (given up: " + verdict.reason + ")" : text);
      }
      chronicle_.warn(text + "; " + going_on() + ": " + verdict.reason);
    }
    course_.lost();
    loss_.notice(self_->now(), step(), text);
    clear(Next::try_again);
  }
  /// Where an attempt is. `is_new`: at a step that no attempt has done.
  struct Place {
    std::int64_t step = 0;
    bool is_new = false;
  };
  Place place() const {
    return {step(), course_.is_assembled() && step() == course_.progress().furthest()};
  }

  /// The channels of the process may have told its end before, so that the next attempt is under
  /// way already.
  void process_ended(const ProcessEnded& ended) {
    const bool is_ending = phase_ == Phase::clearing && next_ == Next::finish;
    if (phase_ == Phase::ended || is_ending) return;
    const bool is_now = phase_ == Phase::playing && ended.attempt == attempt_;
    const Place at = is_now ? place() : fell_at_;
    const auto verdict = crashes_.judge(
        {self_->now().time_since_epoch(), at.is_new ? std::optional(at.step) : std::nullopt,
         ended.node, ended.signal, ended.how},
        {spec_->strikes, spec_->strike_window});
    using What = Crashes::What;
    if (verdict.what == What::go_on) return;
    if (verdict.what == What::without_node && spec_->casting &&
        spec_->casting->strike_node(ended.node, verdict.reason))
      return chronicle_.warn("node " + ended.node + " is not used for a while: " + verdict.reason);
    if (verdict.is_fault)
      finish(failed(verdict.reason +
                    " (given up: the same failure occurred twice at the same place)"));
  }

  /// The node that the run does without from now on; empty where it is none.
  std::string set_aside(const std::string& who, const std::string& why) const {
    if (!spec_->casting) return {};
    const auto player = players_.find(who);
    return player ? spec_->casting->set_aside(*player, why).value_or("") : std::string();
  }
  std::string going_on() const {
    const bool is_kept = spec_->casting && spec_->copies > 1;
    return is_kept ? "recovering from the newest state in memory"
                   : "recovering from the newest checkpoint";
  }

  void fail_run(const std::string& why) {
    if (phase_ != Phase::playing) return;
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
    outcome_.skipped_steps = course_.history().skipped_steps();
    outcome_.recent_loss = course_.history().recent_loss();
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
    if (next_ == Next::begin_anew) last_failure_ = "the run was to restart";
    begin();
    interludes_.play_from(step());
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
    outcome_.most_parcels = course_.progress().most_parcels();
    ending_->tell(std::move(outcome_));
    self_->quit();
  }

  // Waits, those of others and its own.

  void watch(const Pulse& pulse) {
    const Standing* standing = players_.heard(pulse);
    if (standing && pulse.patiences > 0) chronicle_.tell_stalled(*standing);
  }

  void look() {
    self_->tell_self_after(spec_->stall_patience, Look{});
    Standing own{.who = name, .wait = waits_for()};
    own.patiences = patience_.look(own.wait);
    sign(own.wait ? own.wait.what : "it waits for nothing");
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
    switch (phase_) {
      case Phase::playing:
        return course_.waits_for(wishes());
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
    if (next_ == Next::begin_anew) outcome_ = failed("the run was to restart");
    outcome_.why += (outcome_.why.empty() ? "" : "; then ") + what + ", for too long";
    outcome_.all_gone = false;
    end();
  }

  void heard_recorded() {
    const bool had_room = chronicle_.has_room();
    chronicle_.confirmed();
    course_.recorded();
    if (chronicle_.is_confirmed() || !had_room) advance();
  }

  // Orders.

  void drain() {
    drain_asked_ = true;
    paused_ = false;
    // Nobody who could finish anything is there, or has begun to: the newest checkpoint is all.
    if (phase_ == Phase::playing && !course_.is_assembled()) return stop({});
    advance();
  }
  void stop_now() {
    if (phase_ == Phase::clearing && next_ == Next::finish) return;
    stop("it was ordered to stop at once");
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
    course_.paused();
    chronicle_.tell_state("paused");
  }
  void resume() {
    if (!paused_) return;
    paused_ = false;
    chronicle_.tell_state("running");
    course_.resumed();
    advance();
  }

  // Telling.

  void sign(const std::string& doing) const {
    if (spec_->alive) spec_->alive(doing);
  }

  rt::Base* self_;
  RunSpecPtr spec_;
  std::optional<StartPoint> start_;  // Until there is a newer one.
  std::shared_ptr<Ending> ending_;
  Chronicle chronicle_;

  Players players_;
  Saves saves_;
  Loss loss_;
  Course course_;
  int attempt_ = 0;
  Phase phase_ = Phase::playing;
  Next next_ = Next::finish;  // Once all are gone; then why an attempt began.
  std::vector<Failure> failures_;
  std::string last_failure_;
  Place fell_at_;  // When the last attempt ended.
  Crashes crashes_;
  Outcome outcome_;
  Patience patience_;
  Interludes interludes_;
  bool drain_asked_ = false;
  bool paused_ = false;
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
