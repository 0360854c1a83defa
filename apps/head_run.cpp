#include "apps/head_run.h"

#include <utility>

#include "actors/rt.h"
#include "apps/recorder.h"
#include "apps/run_folder.h"

namespace troupe::apps {
namespace {

std::chrono::milliseconds in_milliseconds(std::chrono::nanoseconds time) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(time);
}

}  // namespace

HeadRun::HeadRun(config::Loaded loaded, RunSetup setup, bool resume, Surroundings around)
    : loaded_(std::move(loaded)),
      resume_(resume),
      around_(std::move(around)),
      files_(setup.files.get()),
      setup_(std::move(setup)) {
  report_.name = loaded_.config.name;
  report_.state = "starting";
  report_.steps = loaded_.config.train.steps;
}

void HeadRun::finish() {
  bell_.ring();
  if (thread_.joinable()) thread_.join();
}

Status HeadRun::prepare() {
  auto made = ProcessRun::make(loaded_, std::move(setup_), *files_,
                               {.are_here = [](int) { return false; }, .cores = 1});
  if (!made) return made.error();
  run_ = std::move(*made);
  if (!resume_) return run_->start();
  auto resumed = run_->resume();
  if (!resumed) return resumed.error();
  return Done{};
}

void HeadRun::start() {
  const auto& config = loaded_.config;
  casting_ = std::make_unique<actors::RemoteCasting>(
      around_.nodes, around_.channels,
      actors::RemoteOrder{
          .run = config.name,
          .config = run_->chosen(),
          .fewest = config.elastic.nodes.fewest,
          .most = config.elastic.nodes.most,
          .node_patience = in_milliseconds(config.limits.start_patience),
          .prepare_patience = in_milliseconds(config.limits.prepare_patience),
          .interface = around_.interface,
          .placed = [this](const std::vector<actors::NodeHere>& nodes,
                           const actors::Placement& placement) { placed(nodes, placement); }});
  thread_ = std::thread([this] { run(); });
}

void HeadRun::run() {
  const auto& config = loaded_.config;
  std::string moved;
  const auto folder = run_folder(config, resume_, moved);
  if (!folder) return end("failed", folder.error().text);
  auto opened = Recorder::open(*folder + "/events.jsonl", Recorder::Display::nothing,
                               config.log.every, config.train.steps);
  if (!opened) return end("failed", opened.error().text);
  Recorder& recorder = **opened;
  const auto record_event = [&](const Value& event) { record(recorder, event); };
  {
    const std::lock_guard lock(mutex_);
    record_ = record_event;
    report_.state = "running";
    report_.step = run_->step();
  }
  record_event(state_event(config, "running", {}));
  auto outcome = run_->play(bell_, record_event, casting_.get(), [this](const caf::actor& leader) {
    const std::lock_guard lock(mutex_);
    leader_ = leader;
  });
  using How = actors::Outcome::How;
  if (outcome.how == How::done && config.train.export_path)
    if (auto exported = export_weights(*files_, *config.train.export_path, outcome.weights);
        !exported) {
      outcome.how = How::failed;
      outcome.why = within("train.export", exported.error()).text;
    }
  const std::string state = outcome.how == How::done      ? "done"
                            : outcome.how == How::stopped ? "stopped"
                                                          : "failed";
  record_event(state_event(config, state, outcome.why));
  {
    const std::lock_guard lock(mutex_);
    record_ = nullptr;
  }
  outcome.weights.clear();
  end(state, outcome.why);
}

void HeadRun::record(Recorder& recorder, const Value& event) {
  recorder.record(event);
  if (const Value* type = event.find("type"); type && type->text() && *type->text() == "step") {
    const std::lock_guard lock(mutex_);
    report_.step = *event.find("step")->integer();
    if (const Value* loss = event.find("loss")) report_.loss = loss->number();
  }
  around_.publish(event);
}

void HeadRun::end(const std::string& state, const std::string& why) {
  const std::lock_guard lock(mutex_);
  report_.state = state;
  report_.why = why;
}

void HeadRun::placed(const std::vector<actors::NodeHere>& nodes,
                     const actors::Placement& placement) {
  const std::string where = to_text(nodes, placement);
  std::function<void(const Value&)> record;
  {
    const std::lock_guard lock(mutex_);
    report_.where = where;
    record = record_;
  }
  Value changed = event("plan.changed", loaded_.config.name);
  changed.set("why", where);
  if (record) record(changed);
}

RunStanding HeadRun::report() const {
  const std::lock_guard lock(mutex_);
  return report_;
}

template <class Order>
void HeadRun::tell_leader(Order order) {
  const std::lock_guard lock(mutex_);
  if (leader_) actors::rt::post(leader_, order);
}

void HeadRun::stop_now() { tell_leader(actors::StopNow{}); }
void HeadRun::pause(bool paused) {
  paused ? tell_leader(actors::Pause{}) : tell_leader(actors::Resume{});
  const std::lock_guard lock(mutex_);
  if (report_.state == "running" || report_.state == "paused")
    report_.state = paused ? "paused" : "running";
}

void HeadRun::heard(std::uint64_t peer, transport::Message message) {
  casting_->heard(peer, std::move(message));
}
void HeadRun::lost(std::uint64_t peer, const std::string& why) { casting_->lost(peer, why); }

}  // namespace troupe::apps
