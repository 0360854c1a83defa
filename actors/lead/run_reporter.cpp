#include "actors/lead/run_reporter.h"

#include "actors/lead/recorder_actor.h"
#include "actors/lead/step_event.h"
#include "core/units.h"

namespace troupe::actors {

void RunReporter::open() {
  recorder_ = spawn_recorder(self_->spawner(), spec_, caf::actor_cast<caf::actor>(self_));
  self_->watch(recorder_);
}

bool RunReporter::forget_recorder(const caf::actor_addr& who) {
  if (!recorder_ || who != recorder_.address()) return false;
  recorder_ = nullptr;
  return true;
}

Value RunReporter::event(transport::MessageName type) const { return run_event(*spec_, type); }

void RunReporter::tell(Value event) { hand_over(Event{std::move(event)}); }

void RunReporter::tell_state(const std::string& state) {
  Value told = event("run.state");
  told.set("state", state);
  tell(std::move(told));
}

void RunReporter::tell_stalled(const Standing& standing) {
  Value stall = event("stage.stalled");
  stall.set("who", standing.who);
  stall.set("what", standing.wait.what);
  stall.set("seconds", in_seconds(standing.patiences * spec_->stall_patience));
  tell(std::move(stall));
}

void RunReporter::warn(const std::string& text) {
  Value warning = event("warn");
  warning.set("text", text);
  tell(std::move(warning));
}

void RunReporter::hand_on(const RoundPlayed& played) {
  if (recorder_) self_->tell(recorder_, played);
}

void RunReporter::change(RunSpecPtr spec) {
  spec_ = std::move(spec);
  if (recorder_) self_->tell(recorder_, Recast{spec_});
}

}  // namespace troupe::actors
