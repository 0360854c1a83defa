#include "actors/lead/recorder_actor.h"

#include <algorithm>
#include <chrono>
#include <deque>
#include <optional>
#include <utility>

#include "actors/caf_shim.h"
#include "actors/lead/step_event.h"
#include "actors/messages.h"
#include "core/units.h"

namespace troupe::actors {
namespace {

// A run that goes on tells its timeline for the first time after its first seconds, and then again
// and again: a page shows it.
constexpr auto first_timeline_after = std::chrono::seconds(2);
constexpr auto timeline_every = std::chrono::seconds(30);

class RecorderActor {
 public:
  static constexpr const char* name = "recorder";

  RecorderActor(caf_shim::Base* self, RunSpecPtr spec, caf::actor supervisor)
      : self_(self), spec_(std::move(spec)), supervisor_(std::move(supervisor)) {}
  ~RecorderActor() { tell_timeline(); }

  caf::behavior make_behavior() {
    self_->end_with(supervisor_);
    return {
        [this](const Event& event) {
          spec_->record(event.value);
          self_->tell(supervisor_, Recorded{});
        },
        [this](const AttemptBegun& begun) { keep(begin(begun.after)); },
        [this](const StepCommitted& committed) { keep(spec_->ledger->enter(committed.step)); },
        [this](const EvaluationDone& done) {
          keep(spec_->evaluations ? spec_->evaluations->enter(done.evaluated) : Done{});
        },
        [this](const RoundPlayed& played) { remember(played); },
        [this](const Recast& recast) {
          const auto before = std::exchange(spec_, recast.spec);
          // Rounds of other devices do not fit the new plan.
          if (spec_->devices() != before->devices() || spec_->replicas() != before->replicas())
            played_.clear();
        },
    };
  }

 private:
  Status begin(std::int64_t after) {
    auto begun = spec_->ledger->begin(after);
    if (auto taken_back = spec_->evaluations ? spec_->evaluations->begin(after) : Done{};
        !taken_back)
      begun = taken_back;
    return begun;
  }

  /// Reports a ledger that cannot be written. It retries later, and no step is saved before.
  void keep(const Status& entered) {
    if (!entered && entered.error().text != ledger_problem_) {
      ledger_problem_ = entered.error().text;
      Value warning = run_event(*spec_, "warn");
      warning.set("text", "the ledger is behind: " + ledger_problem_);
      spec_->record(warning);
    }
    self_->tell(supervisor_, Recorded{});
  }

  void remember(const RoundPlayed& played) {
    played_.push_back(played);
    const int most = spec_->trace_rounds * spec_->devices();
    while (std::ssize(played_) > most) played_.pop_front();
    for (const auto& span : *played.spans) {
      if (!tell_at_) tell_at_ = span.time.start + first_timeline_after;
      if (span.time.end < *tell_at_) continue;
      tell_timeline();
      tell_at_ = span.time.end + timeline_every;
    }
  }

  void tell_timeline() const {
    if (played_.empty() || !spec_->keep_timeline) return;
    auto begin = std::chrono::steady_clock::time_point::max();
    for (const auto& played : played_)
      for (const auto& span : *played.spans) begin = std::min(begin, span.time.start);
    const auto seconds = [&](std::chrono::steady_clock::time_point time) {
      return in_seconds(time - begin);
    };
    schedules::Timeline timeline;
    timeline.name = spec_->name;
    timeline.devices = spec_->devices();
    const int devices = spec_->evaluation->devices();
    for (const auto& played : played_)
      for (const auto& span : *played.spans)
        timeline.spans.push_back({.device = played.replica * devices + played.device,
                                  .track = schedules::Track::compute,
                                  .action = span.action,
                                  .start = seconds(span.time.start),
                                  .end = seconds(span.time.end)});
    spec_->keep_timeline(timeline);
  }

  caf_shim::Base* self_;
  RunSpecPtr spec_;
  caf::actor supervisor_;
  std::deque<RoundPlayed> played_;
  std::optional<std::chrono::steady_clock::time_point> tell_at_;  // The time of the next timeline.
  std::string ledger_problem_;  // The last problem that was reported.
};

}  // namespace

caf::actor spawn_recorder(const caf_shim::Spawner& spawner, RunSpecPtr spec,
                          caf::actor supervisor) {
  return caf_shim::spawn<RecorderActor>(spawner, std::move(spec), std::move(supervisor));
}

}  // namespace troupe::actors
