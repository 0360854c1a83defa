#include "apps/run/run_session.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <utility>

#include "apps/run/live_changes.h"
#include "apps/run/run_choice.h"
#include "apps/run/run_record.h"

namespace troupe::apps {

RunSession::RunSession(Context context, config::Loaded loaded, RunStart start,
                       std::function<void(const std::string& last)> stuck)
    : context_(context),
      loaded_(std::move(loaded)),
      start_(start),
      watchdog_(context.env, loaded_.config.limits.head_patience, std::move(stuck)) {}

Status RunSession::take_earlier() {
  if (!resumes()) return Done{};
  auto taken = take_changes(context_.saves, loaded_);
  if (!taken) return taken.error();
  warnings_ = *std::move(taken);
  return take_precision(context_.saves, loaded_);
}

Status RunSession::plan(RunSetup setup, const PlanFor& whom, const DevicesHere& here) {
  if (auto good = check_samples(config(), setup); !good) return good;
  auto made = ProcessRun::make(loaded_, std::move(setup), context_.saves, whom, here);
  if (!made) return made.error();
  run_ = std::move(*made);
  if (drains_) run_->drain();
  if (!resumes()) return run_->start();
  // Nobody else may save between the look for the newest checkpoint and the first step.
  if (auto entered = enter(); !entered) return entered;
  auto resumed = run_->resume(
      start_ == RunStart::resume_or_scratch ? SavesGone::begin_anew : SavesGone::refuse,
      place_.checkpoints->run());
  if (!resumed) return resumed.error();
  std::ranges::move(*resumed, std::back_inserter(warnings_));
  return Done{};
}

Status RunSession::enter() {
  if (place_.lock) return Done{};
  auto place = enter_run_place(context_.folder, {context_.env, context_.host.process_text()},
                               loaded_, start_);
  if (!place) return place.error();
  place_ = std::move(*place);
  return Done{};
}

Status RunSession::open_events(SinkOptions options) {
  if (config().log.tensorboard) options.tensorboard = place_.folder + "/tensorboard";
  auto opened = open_recorder(context_.env, context_.folder, options);
  if (!opened) return opened.error();
  recorder_ = std::move(*opened);
  return Done{};
}

std::vector<std::string> RunSession::describe() {
  return describe_run(context_.saves, place_.folder, loaded_, run_->chosen(),
                      {context_.env.wall_time(), context_.host, run_->step(), run_->setup()});
}

Status RunSession::keep(const config::Loaded& changed) {
  if (auto kept = keep_config(context_.saves, place_.folder, changed, run_->chosen(changed.tree));
      !kept)
    return kept;
  // The changes come last: they alone are in force when the run is resumed.
  return keep_changes(context_.saves, changed);
}

actors::RemoteOrder RunSession::order(const config::Loaded& loaded) const {
  const auto& limits = loaded.config.limits;
  actors::RemoteOrder order;
  order.run = loaded.config.name;
  order.config = run_->chosen(loaded.tree);
  const auto rounded = [](std::chrono::nanoseconds time) {
    return std::chrono::duration_cast<std::chrono::milliseconds>(time);
  };
  order.node_patience = rounded(limits.start_patience);
  order.suspend_patience = rounded(limits.suspend_patience);
  order.prepare_patience = rounded(limits.prepare_patience);
  order.load_patience = rounded(limits.load_patience);
  order.futile_epochs = limits.futile_epochs;
  order.strikes = limits.strikes;
  order.strike_window = limits.strike_window;
  order.copies = loaded.config.elastic.copies;
  return order;
}

ProcessRun::Context RunSession::run_context(actors::caf_shim::System& system,
                                            ProcessRun::Record record,
                                            actors::PlayerHost* player_host) {
  return {.env = context_.env,
          .system = system,
          .watchdog = watchdog_,
          .record = std::move(record),
          .player_host = player_host,
          .claim = &*place_.checkpoints};
}

void RunSession::play(Loop& loop, actors::caf_shim::System& system, ProcessRun::Record record,
                      actors::PlayerHost* player_host,
                      std::function<void(const caf::actor&)> led_by,
                      std::function<void(actors::Outcome)> ended, LeaveOut leave_out) {
  auto context = run_context(system, std::move(record), player_host);
  context.leave_out = std::move(leave_out);
  context.led_by = std::move(led_by);
  run_->play(loop, std::move(context), std::move(ended));
}

actors::Outcome RunSession::play_here(EventFd& bell, actors::caf_shim::System& system,
                                      ProcessRun::Record record, actors::PlayerHost* player_host,
                                      std::function<void()> asked, LeaveOut leave_out) {
  auto context = run_context(system, std::move(record), player_host);
  context.leave_out = std::move(leave_out);
  return run_->play_here(bell, std::move(context), std::move(asked));
}

void RunSession::drain() {
  drains_ = true;
  if (run_) run_->drain();
}

void RunSession::export_weights(actors::Outcome& outcome) {
  if (!exports(outcome)) return;
  const auto exported =
      apps::export_weights(context_.saves, *config().train.export_path, outcome.weights);
  if (exported) return;
  outcome.how = actors::Outcome::How::failed;
  outcome.why = within("train.export", exported.error()).text;
}

std::string state_of(const actors::Outcome& outcome) {
  switch (outcome.how) {
    case actors::Outcome::How::done:
      return "done";
    case actors::Outcome::How::stopped:
      return "stopped";
    case actors::Outcome::How::failed:
      return "failed";
  }
  return "failed";
}

}  // namespace troupe::apps
