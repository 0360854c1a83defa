#include "actors/supervisor.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <numeric>
#include <utility>

#include "actors/cast.h"
#include "actors/recorder_actor.h"
#include "actors/recovery.h"
#include "actors/rt.h"
#include "actors/step_ledger.h"

namespace troupe::actors {
namespace {

constexpr std::size_t recent_steps = 20;

class Supervisor {
 public:
  static constexpr const char* name = "supervisor";

  Supervisor(rt::Base* self, RunSpecPtr spec, StartPoint start, std::function<void(Outcome)> ended)
      : self_(self),
        spec_(std::move(spec)),
        usual_(spec_->round(0, 1)),
        start_(std::move(start)),
        ended_(std::move(ended)) {
    if (start_.step > 0) saved_step_ = start_.step;
    self_->on_down([this](const caf::actor_addr& who, const caf::error& why) { down(who, why); });
  }

  caf::behavior make_behavior() {
    saved_at_ = self_->now();
    recorder_ = spawn_recorder(self_->home_system(), spec_);
    self_->watch(recorder_);
    begin(start_);
    return {
        [this](const MicroBatchLoss& loss) { heard(loss); },
        [this](const Norms& norms) { heard(norms); },
        [this](const StepDone& done) { heard(done); },
        [this](const LateGradients& late) { ledger_->add(late); },
        [this](RoundPlayed& played) { heard(played); },
        [this](Snapshot& snapshot) { heard(std::move(snapshot)); },
        [this](const Saved& saved) { heard(saved); },
        [this](const Stalled& stalled) { heard(stalled); },
        [this](Drain) { drain(); },
        [this](StopNow) { stop_now(); },
        [this](Pause) { pause(); },
        [this](Resume) { resume(); },
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
  enum class Next : std::uint8_t { try_again, finish };

  // An attempt.

  void begin(StartPoint start) {
    step_ = given_out_ = start.step;
    ledger_.emplace(static_cast<int>(spec_->stages.size()), usual_->micro_batches_in_step());
    rounds_.clear();
    evaluated_step_ = snapshot_step_ = start.step;
    evaluation_losses_.clear();
    snapshots_.clear();
    phase_ = Phase::playing;
    step_began_ = self_->now();
    company_ = spawn_company(self_->home_system(), spec_, caf::actor_cast<caf::actor>(self_),
                             recorder_, std::move(start));
    for (const auto& player : company_.players) self_->watch(player.actor);
    alive_ = company_.players.size();
    go_on();
  }

  /// Gives out rounds, as far ahead as is allowed, up to the next moment at which the run must be
  /// drained.
  void go_on() {
    if (phase_ != Phase::playing) return;
    while (!must_drain() && given_out_ < spec_->steps &&
           static_cast<int>(rounds_.size()) < spec_->rounds_ahead) {
      const auto round = spec_->round(given_out_, spec_->steps - given_out_);
      give_out({round, given_out_});
      given_out_ += round->steps;
    }
    if (step_ == given_out_ && rounds_.empty()) drained();
  }

  void give_out(const Play& play) {
    rounds_.push_back({play, 0, {}, rt::Duration{}});
    for (const auto* group :
         {&company_.cast->stages, &company_.cast->inputs, &company_.cast->targets})
      for (const auto& actor : *group) self_->tell(actor, play);
  }

  /// Whether the rounds that are out reach a moment for which nothing may be in flight.
  bool must_drain() const {
    return drain_asked_ || paused_ || evaluation_is_due(given_out_) || save_is_due(given_out_);
  }
  bool evaluation_is_due(std::int64_t at) const {
    if (!spec_->validation || at <= evaluated_step_) return false;
    const auto every = spec_->eval_every;
    return at == spec_->steps || (every && at / *every > evaluated_step_ / *every);
  }
  bool save_is_due(std::int64_t at) const {
    if (at <= snapshot_step_) return false;
    const auto every = spec_->save_every_steps;
    if (at == spec_->steps) return true;
    if (every > 0) return at / every > snapshot_step_ / every;
    return self_->now() - saved_at_ >= spec_->save_every_time;
  }

  void drained() {
    if (evaluation_is_due(step_)) return evaluate();
    const bool is_end = step_ >= spec_->steps || drain_asked_;
    if (is_end && saving_ > 0) return;  // The last save must not find the store busy. Saved comes.
    if (save_is_due(step_) || (is_end && collected_step_ != step_)) return collect();
    if (is_end) return conclude();
    if (!must_drain()) go_on();
  }

  // Steps.

  void heard(const MicroBatchLoss& loss) {
    if (loss.purpose == Round::Purpose::evaluation) return heard_evaluation(loss);
    if (!std::isfinite(loss.mean))
      return fail_run("step " + std::to_string(loss.step + 1) + ", micro-batch " +
                      std::to_string(loss.index) + ": the loss is not a number any more");
    decide(loss.step, ledger_->add(loss));
    complete_steps();
  }

  void heard(const Norms& norms) { decide(norms.step, ledger_->add(norms)); }

  void decide(std::int64_t step, StepLedger::Entry& entry) {
    if (!ledger_->can_decide(entry)) return;
    std::vector<models::SquaredNorm> squares;
    for (auto& of_stage : entry.squares) std::ranges::move(of_stage, std::back_inserter(squares));
    entry.norm = models::global_norm(squares);
    if (!std::isfinite(*entry.norm))
      return fail_run("step " + std::to_string(step + 1) + ": the gradient is not finite any more");
    for (const auto& optimizer : company_.cast->optimizers)
      self_->tell(optimizer, Decision{step, *entry.norm});
  }

  void heard(const StepDone& done) {
    ledger_->add(done);
    complete_steps();
  }

  void heard(RoundPlayed& played) {
    if (rounds_.empty()) return;
    const auto found = std::ranges::find_if(rounds_, [&](const RoundUnderWay& round) {
      return round.play.first_step == played.first_step &&
             round.play.round->purpose == played.purpose;
    });
    if (found == rounds_.end()) return;
    ++found->played;
    for (const auto& span : *played.spans) {
      found->busy += span.time.end - span.time.start;
      found->begin = std::min(found->begin, span.time.start);
      found->end = std::max(found->end, span.time.end);
    }
    complete_steps();
  }

  /// Steps end in order; the last one of a round with what its devices did.
  void complete_steps() {
    if (phase_ == Phase::evaluating) return complete_evaluation();
    while (!rounds_.empty() && ledger_->complete(step_)) {
      const auto& round = rounds_.front();
      const bool is_last = step_ + 1 == round.play.first_step + round.play.round->steps;
      if (is_last && round.played < spec_->devices()) return;
      const auto entry = ledger_->take(step_);
      ++step_;
      tell_step(entry, is_last ? &round : nullptr);
      if (is_last) rounds_.pop_front();
    }
    go_on();
  }

  struct RoundUnderWay {
    Play play;
    int played = 0;  // Devices that are through.
    std::chrono::steady_clock::duration busy{};
    std::chrono::steady_clock::time_point begin = std::chrono::steady_clock::time_point::max();
    std::chrono::steady_clock::time_point end{};

    RoundUnderWay(Play p, int, std::nullptr_t, rt::Duration) : play(std::move(p)) {}
  };

  void tell_step(const StepLedger::Entry& entry, const RoundUnderWay* round) {
    const auto now = self_->now();
    const double seconds = std::chrono::duration<double>(now - step_began_).count();
    step_began_ = now;
    const double loss = entry.mean_loss();
    recent_losses_.push_back(loss);
    if (recent_losses_.size() > recent_steps) recent_losses_.pop_front();

    double norm = 0;
    for (const auto& of_stage : entry.norms) norm += *of_stage * *of_stage;
    norm = entry.norm.value_or(std::sqrt(norm));
    const auto tokens = std::max<std::int64_t>(1, spec_->tokens_in_sample);
    Value step = event("step");
    step.set("step", step_);
    step.set("loss", loss);
    step.set("grad_norm", norm);
    step.set("lr", spec_->optimizer.rate.at(step_ - 1));
    step.set("samples", step_ * spec_->samples_in_step);
    if (spec_->tokens_in_sample > 0) step.set("tokens", step_ * spec_->samples_in_step * tokens);
    step.set("seconds", seconds);
    if (seconds > 0)
      step.set("rate", static_cast<double>(spec_->samples_in_step * tokens) / seconds);
    if (round && spec_->devices() > 1 && round->end > round->begin)
      step.set("bubble", 1 - std::chrono::duration<double>(round->busy).count() /
                                 (std::chrono::duration<double>(round->end - round->begin).count() *
                                  spec_->devices()));
    std::size_t memory = 0;
    for (auto* executor : spec_->executors) memory += executor->memory().counters().peak_in_use;
    step.set("memory", static_cast<std::int64_t>(memory));
    add_lateness(entry, step);
    tell(std::move(step));
  }

  /// What every stage had of stale weights; nothing where nobody measures.
  static void add_lateness(const StepLedger::Entry& entry, Value& step) {
    Value::List stages;
    for (std::size_t stage = 0; stage < entry.late.size(); ++stage) {
      if (!entry.late[stage]) continue;
      const auto& metrics = *entry.late[stage];
      Value::List delays;
      for (const int count : metrics.delays) delays.emplace_back(count);
      Value told;
      told.set("stage", static_cast<int>(stage));
      told.set("delays", std::move(delays));
      told.set("gap", metrics.gap);
      told.set("prediction_error", metrics.prediction_error);
      told.set("penalty_mean", metrics.penalty_mean);
      told.set("penalty_most", metrics.penalty_most);
      stages.push_back(std::move(told));
    }
    if (!stages.empty()) step.set("staleness", std::move(stages));
  }

  // Evaluation, while nothing else is in flight.

  void evaluate() {
    phase_ = Phase::evaluating;
    evaluation_losses_.assign(static_cast<std::size_t>(spec_->evaluation->schedule.micro_batches),
                              {});
    give_out({spec_->evaluation, step_});
  }

  void heard_evaluation(const MicroBatchLoss& loss) {
    evaluation_losses_.at(static_cast<std::size_t>(loss.index)) = loss.mean;
    complete_evaluation();
  }

  void complete_evaluation() {
    const bool all_known =
        std::ranges::all_of(evaluation_losses_, [](const auto& loss) { return loss.has_value(); });
    if (!all_known || rounds_.front().played < spec_->devices()) return;
    double sum = 0;
    for (const auto& loss : evaluation_losses_) sum += *loss;
    Value eval = event("eval");
    eval.set("step", step_);
    eval.set("loss", sum / static_cast<double>(evaluation_losses_.size()));
    tell(std::move(eval));
    rounds_.clear();
    evaluated_step_ = step_;
    phase_ = Phase::playing;
    step_began_ = self_->now();
    go_on();
  }

  // Saving.

  void collect() {
    phase_ = Phase::collecting;
    snapshots_.clear();
    for (const auto& optimizer : company_.cast->optimizers) self_->tell(optimizer, TakeSnapshot{});
  }

  void heard(Snapshot snapshot) {
    if (phase_ != Phase::collecting) return;
    snapshots_.push_back(std::move(snapshot));
    if (snapshots_.size() < spec_->stages.size()) return;
    std::ranges::sort(snapshots_, {}, &Snapshot::stage);
    storage::CheckpointContent content;
    content.step = step_;
    content.samples = step_ * spec_->samples_in_step;
    content.recipe = spec_->recipe;
    content.model = spec_->model_description;
    for (auto& of_stage : snapshots_) {
      std::ranges::move(of_stage.weights, std::back_inserter(content.weights));
      std::ranges::move(of_stage.moments, std::back_inserter(content.optimizer));
    }
    snapshots_.clear();
    // Whatever the stages are, the file is the same.
    std::ranges::sort(content.weights, {}, &NamedTensor::name);
    std::ranges::sort(content.optimizer, {}, &NamedTensor::name);
    final_weights_ = content.weights;
    collected_step_ = snapshot_step_ = step_;
    saved_at_ = self_->now();
    if (saved_step_ != step_) {
      ++saving_;
      spec_->checkpoints->save(std::move(content),
                               [to = rt::weak(*self_), step = step_](Status outcome) {
                                 rt::post(to, Saved{step, std::move(outcome)});
                               });
    }
    phase_ = Phase::playing;
    step_began_ = self_->now();
    go_on();
  }

  void heard(const Saved& saved) {
    --saving_;
    if (saved.outcome)
      saved_step_ = std::max(saved_step_, saved.step);
    else
      save_problem_ = saved.outcome.error().text;
    if (phase_ == Phase::clearing && alive_ == 0) return cleared();
    if (phase_ == Phase::playing) go_on();
  }

  void conclude() {
    Outcome outcome;
    outcome.step = step_;
    if (saved_step_ != step_ && snapshot_step_ == step_) {
      outcome.how = Outcome::How::failed;
      outcome.why = "step " + std::to_string(step_) + " was not saved: " + save_problem_;
    } else {
      outcome.how = step_ >= spec_->steps ? Outcome::How::done : Outcome::How::stopped;
    }
    outcome.weights = std::move(final_weights_);
    finish(std::move(outcome));
  }

  // Failures.

  void down(const caf::actor_addr& who, const caf::error& why) {
    if (who == recorder_.address()) return recorder_down(why);
    const auto found = std::ranges::find_if(company_.players, [&](const Player& player) {
      return player.actor && player.actor.address() == who;
    });
    if (found == company_.players.end()) return;
    const std::string title = found->title;
    found->actor = nullptr;
    --alive_;
    if (phase_ != Phase::clearing) return fail_attempt(title, rt::to_text(why));
    if (alive_ == 0 && saving_ == 0) cleared();
  }

  /// An actor has failed: all others of its attempt go, and the run goes on from the newest
  /// checkpoint, unless there is no hope.
  void fail_attempt(const std::string& who, const std::string& why) {
    const std::string text = why.starts_with(who) ? why : who + ": " + why;
    failures_.push_back({self_->now().time_since_epoch(), step_, text});
    const auto verdict = judge(failures_, {spec_->strikes, spec_->strike_window});
    if (verdict.what == Verdict::What::give_up) {
      const bool repeated = failures_.size() > 1;
      return fail_run(repeated ? text + " (given up: " + verdict.reason + ")" : text);
    }
    Value warning = event("warn");
    warning.set("text", text + "; going on from the newest checkpoint: " + verdict.reason);
    tell(std::move(warning));
    clear(Next::try_again);
  }

  void fail_run(const std::string& why) {
    if (phase_ == Phase::clearing || phase_ == Phase::ended) return;
    Outcome outcome;
    outcome.how = Outcome::How::failed;
    outcome.step = std::max<std::int64_t>(saved_step_, 0);
    outcome.why = why;
    finish(std::move(outcome));
  }

  void finish(Outcome outcome) {
    outcome_ = std::move(outcome);
    if (!recent_losses_.empty())
      outcome_.recent_loss = std::accumulate(recent_losses_.begin(), recent_losses_.end(), 0.0) /
                             static_cast<double>(recent_losses_.size());
    clear(Next::finish);
  }

  void clear(Next next) {
    phase_ = Phase::clearing;
    next_ = next;
    company_.cast = nullptr;
    for (const auto& player : company_.players)
      if (player.actor) rt::kill(player.actor);
    if (alive_ == 0 && saving_ == 0) cleared();
  }

  void cleared() {
    company_ = {};
    if (next_ == Next::finish) {
      if (!recorder_) return end();
      return rt::stop(recorder_);  // It tells what it has, and goes.
    }
    auto newest = spec_->checkpoints->newest(spec_->executors[0]->memory());
    if (!newest) {
      phase_ = Phase::playing;
      return fail_run(failures_.back().why +
                      " (and the newest checkpoint cannot be read: " + newest.error().text + ")");
    }
    begin(*newest ? std::move(**newest) : start_);
  }

  void recorder_down(const caf::error& why) {
    recorder_ = nullptr;
    if (phase_ == Phase::clearing && next_ == Next::finish && alive_ == 0) return end();
    outcome_ = {};
    outcome_.how = Outcome::How::failed;
    outcome_.why = "recorder: " + rt::to_text(why);
    clear(Next::finish);
  }

  void end() {
    phase_ = Phase::ended;
    ended_(std::move(outcome_));
    self_->quit();
  }

  void heard(const Stalled& stalled) {
    Value stall = event("stage.stalled");
    stall.set("who", stalled.who);
    stall.set("what", stalled.what);
    stall.set("seconds", std::chrono::duration<double>(stalled.since).count());
    tell(std::move(stall));
    if (stalled.patiences >= spec_->stalls_allowed && phase_ != Phase::clearing && !paused_)
      fail_attempt(stalled.who, stalled.what + ", for too long");
  }

  // Orders.

  void drain() {
    drain_asked_ = true;
    paused_ = false;
    go_on();
  }
  void stop_now() {
    if (phase_ == Phase::clearing && next_ == Next::finish) return;
    Outcome outcome;
    outcome.how = Outcome::How::stopped;
    outcome.step = std::max<std::int64_t>(saved_step_, 0);
    outcome.why = "it was told to stop at once";
    finish(std::move(outcome));
  }
  void pause() {
    if (paused_) return;
    paused_ = true;
    tell_state("paused");
  }
  void resume() {
    if (!paused_) return;
    paused_ = false;
    tell_state("running");
    step_began_ = self_->now();
    go_on();
  }

  // Telling.

  Value event(const std::string& type) const {
    Value value;
    value.set("type", type);
    value.set("run", spec_->name);
    return value;
  }
  void tell_state(const std::string& state) {
    Value value = event("run.state");
    value.set("state", state);
    tell(std::move(value));
  }
  void tell(Value value) {
    if (recorder_) self_->tell(recorder_, Event{std::move(value)});
  }

  rt::Base* self_;
  RunSpecPtr spec_;
  RoundPtr usual_;
  StartPoint start_;
  std::function<void(Outcome)> ended_;
  caf::actor recorder_;

  Company company_;
  std::size_t alive_ = 0;
  Phase phase_ = Phase::playing;
  Next next_ = Next::finish;
  std::optional<StepLedger> ledger_;
  std::deque<RoundUnderWay> rounds_;
  std::int64_t step_ = 0;       // Steps done.
  std::int64_t given_out_ = 0;  // Steps that are done or in rounds that are out.
  std::vector<std::optional<double>> evaluation_losses_;
  std::int64_t evaluated_step_ = 0;  // The last one that needs no evaluation any more.
  std::vector<Snapshot> snapshots_;
  std::int64_t snapshot_step_ = 0;    // The last one that needs no saving any more.
  std::int64_t collected_step_ = -1;  // Whose weights are in final_weights_.
  std::vector<NamedTensor> final_weights_;
  int saving_ = 0;
  std::int64_t saved_step_ = -1;
  std::string save_problem_;
  rt::TimePoint saved_at_;
  rt::TimePoint step_began_;
  std::deque<double> recent_losses_;
  std::vector<Failure> failures_;
  Outcome outcome_;
  bool drain_asked_ = false;
  bool paused_ = false;
};

}  // namespace

caf::actor spawn_supervisor(caf::actor_system& system, RunSpecPtr spec, StartPoint start,
                            std::function<void(Outcome)> ended) {
  return rt::spawn<Supervisor>(system, std::move(spec), std::move(start), std::move(ended));
}

}  // namespace troupe::actors
