#include "apps/head/head_run.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "actors/caf_shim.h"
#include "apps/events/event.h"
#include "apps/events/event_backlog.h"
#include "apps/events/event_text.h"
#include "apps/events/sinks.h"
#include "apps/head/decision_log.h"
#include "apps/run/live_changes.h"
#include "apps/run/run_record.h"
#include "config/run_config.h"
#include "config/schema.h"
#include "core/threads/thread_name.h"
#include "core/units.h"

namespace troupe::apps {
namespace {

constexpr unsigned seconds_for_words = 5;
constexpr double least_gain = 1e-3;  // Smaller gains are not reported.

std::chrono::milliseconds in_milliseconds(std::chrono::nanoseconds time) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(time);
}

/// Ends a head that cannot lead its runs, so that its next life can resume them. It dies by a
/// signal, so that its supervisor restarts it.
[[noreturn]] void end_head(const config::RunConfig& config, const std::string& last) {
  alarm(seconds_for_words);
  std::fprintf(
      stderr,
      "run %s: no progress for %s (limits.head_patience); last known activity: %s\nthis head "
      "stops; restart it with the same state folder (--state) to continue all its runs\n",
      config.name.c_str(), duration_text(config.limits.head_patience).c_str(), last.c_str());
  std::abort();
}

}  // namespace

HeadRun::HeadRun(config::Loaded loaded, RunSetup setup, RunStart start, Context around)
    : loaded_(std::move(loaded)),
      asked_pipeline_(*config::value_at(loaded_.tree, "pipeline")),
      resume_(start != RunStart::anew),
      saves_gone_(start == RunStart::resume_or_scratch ? SavesGone::begin_anew : SavesGone::refuse),
      takes_any_precision_(!loaded_.config.precision.compute),
      around_(std::move(around)),
      disk_(*files_),
      setup_(std::move(setup)),
      supervisor_(loaded_.config.name),
      watchdog_(loaded_.config.limits.head_patience,
                [this](const std::string& last) { end_head(loaded_.config, last); }),
      replanner_(
          in_milliseconds(loaded_.config.limits.gather_patience), [this] { return standing(); },
          [this] { begin_switch(); }) {
  report_.name = loaded_.config.name;
  report_.state = "starting";
  report_.steps = loaded_.config.train.steps;
  report_.log_every = loaded_.config.log.every;
  report_.exactness =
      loaded_.config.exactness == config::RunConfig::Exactness::bits ? "bits" : "samples";
}

void HeadRun::drain() {
  ends_ = true;
  bell_.ring();
  around_.nodes.wake();
}

void HeadRun::leave() {
  if (player_host_) player_host_->leave();
  drain();
}

void HeadRun::finish() {
  drain();
  if (thread_.joinable()) thread_.join();
  if (player_host_) player_host_->end();
}

Status HeadRun::prepare(std::optional<RunChoice> kept) {
  if (resume_) {
    if (auto taken = take_changes(disk_, loaded_); !taken) return taken;
    if (auto taken = take_precision(disk_, loaded_); !taken) return taken;
  }
  if (kept) take(*kept, loaded_);
  choice_ = std::move(kept);
  if (takes_any_precision_ && loaded_.config.precision.compute) {
    const auto precision = precision_of(loaded_.config);
    if (!precision) return precision.error();
    least_ = *precision;
  }
  auto nodes = around_.nodes.usable(least_);
  if (!choice_ && static_cast<int>(nodes.size()) >= loaded_.config.elastic.nodes.fewest)
    if (auto chosen = choose(std::move(nodes), setup_); !chosen) return chosen;
  // No other process may save between the search for the newest checkpoint and the first step.
  if (resume_)
    if (auto entered = enter_place(); !entered) return entered;
  if (auto made = make(std::move(setup_)); !made) return made;
  // The remains of an earlier run of that name are moved aside before this run is recorded, so that
  // whatever is found later is this run's.
  if (!resume_)
    if (auto entered = enter_place(); !entered) return entered;
  auto decisions = open_decision_log(*files_, place_.folder);
  if (!decisions) return decisions.error();
  decisions_ = std::move(*decisions);
  return Done{};
}

Status HeadRun::enter_place() {
  const auto start = !resume_                               ? RunStart::anew
                     : saves_gone_ == SavesGone::begin_anew ? RunStart::resume_or_scratch
                                                            : RunStart::resume;
  auto place = enter_run_place(*files_, loaded_, start);
  if (!place) return place.error();
  place_ = std::move(*place);
  return Done{};
}

Status HeadRun::choose(std::vector<actors::NodeHere> nodes, RunSetup& setup) {
  auto live = plan_for(loaded_.config, setup, std::move(nodes));
  if (!live) return live.error();
  take(live->choice, loaded_);
  const std::lock_guard lock(mutex_);
  if (takes_any_precision_) least_ = setup.precision;
  choice_ = std::move(live->choice);
  return Done{};
}

Status HeadRun::choose_late() {
  const int fewest = loaded_.config.elastic.nodes.fewest;
  const auto patience = order(loaded_).node_patience;
  auto nodes = around_.nodes.wait_for(fewest, least_, patience, [this] { return ends_.load(); });
  lacks_nodes_ = static_cast<int>(nodes.size()) < fewest;
  if (lacks_nodes_) return actors::too_few(nodes.size(), fewest, least_, around_.nodes.usable());
  auto setup = set_up(loaded_.config);
  if (!setup) return setup.error();
  if (auto chosen = choose(std::move(nodes), *setup); !chosen) return chosen;
  if (auto made = make(std::move(*setup)); !made) return made;
  player_host_->change(order(loaded_));
  return Done{};
}

/// Makes the run from the present configuration.
Status HeadRun::make(RunSetup setup) {
  auto made = ProcessRun::make(loaded_, std::move(setup), disk_,
                               {.memory = MemoryOf::elsewhere, .others_play = true},
                               {.are_here = [](int) { return false; }, .cores = 1});
  if (!made) return made.error();
  run_ = std::move(*made);
  if (resume_) {
    auto resumed = run_->resume(saves_gone_, place_.checkpoints->run());
    if (!resumed) return resumed.error();
    warnings_ = std::move(*resumed);
  } else if (auto started = run_->start(); !started) {
    return started;
  }
  const std::lock_guard lock(mutex_);
  now_ = std::make_shared<const config::Loaded>(loaded_);
  report_.step = run_->step();
  report_.warning = warnings_.empty() ? "" : warnings_.front();
  return Done{};
}

void HeadRun::tell_choice() {
  Value chosen = event(RunChoice::type, loaded_.config.name);
  const Value choice = transport::to_value(*choice_);
  for (const auto& entry : *choice.map()) chosen.set(entry.key, entry.value);
  const auto& round = *run_->rounds().of_one_step();
  chosen.set("samples", loaded_.config.batch.global);
  chosen.set("micro", run_->setup().micro);
  chosen.set("micro_batches", round.micro_batches_in_step());
  tell(chosen);
}

void HeadRun::tell_unfit(const actors::NodeHere& node) {
  kernels::Precision least{};
  {
    const std::lock_guard lock(mutex_);
    least = least_;
  }
  const actors::Unfit unfit{loaded_.config.name, "its precision is " +
                                                     std::string(to_string(least)) + "; " +
                                                     actors::who_lacks(least, {node})};
  (void)around_.nodes.send(node.incarnation, transport::to_message(unfit));
  Value told = event(actors::Unfit::type, unfit.run);
  told.set("node", node.name);
  told.set("why", unfit.why);
  tell(told);
}

void HeadRun::start() {
  player_host_ = std::make_unique<actors::RemotePlayerHost>(around_.nodes, around_.channels,
                                                            order(loaded_), std::move(decisions_));
  thread_ = std::thread([this] { run(); });
}

actors::RemoteOrder HeadRun::order(const config::Loaded& loaded) {
  const auto& config = loaded.config;
  return {.run = config.name,
          .config = run_->chosen(loaded.tree),
          .fewest = config.elastic.nodes.fewest,
          .most = config.elastic.nodes.most,
          .least = least_,
          .node_patience = in_milliseconds(resume_ ? config.limits.suspend_patience
                                                   : config.limits.start_patience),
          .gather_patience = in_milliseconds(config.limits.gather_patience),
          .suspend_patience = in_milliseconds(config.limits.suspend_patience),
          .prepare_patience = in_milliseconds(config.limits.prepare_patience),
          .load_patience = in_milliseconds(config.limits.load_patience),
          .futile_epochs = config.limits.futile_epochs,
          .strikes = config.limits.strikes,
          .interface = around_.interface,
          .carriers = actors::Carriers::shm_and_tcp,
          .keys = around_.keys,
          .plain = around_.plain,
          .placed = [this](const actors::Lineup& lineup) { placed(lineup); }};
}

void HeadRun::run() {
  name_thread("run");
  const auto& config = loaded_.config;
  const std::string events = place_.folder + "/events.jsonl";
  const auto before = end_of_events(events);
  auto opened = open_recorder(*files_, {.file = events, .publisher = &around_.publisher});
  if (!opened) {
    place_.give_back();
    return end("failed", opened.error().text);
  }
  Recorder& recorder = **opened;
  const auto record_event = [&](const Value& event) { record(recorder, event); };
  {
    const std::lock_guard lock(mutex_);
    record_ = record_event;
    report_.state = supervisor_.is_paused() ? "paused" : "running";
    report_.step = run_->step();
    report_.began = before;
  }
  record_event(state_event(config, "running", {}));
  for (const auto& warning : warnings_) record_event(warning_event(config, warning));
  auto outcome = play();
  watchdog_.rest();
  using How = actors::Outcome::How;
  if (outcome.how == How::done && config.train.export_path)
    if (auto exported = export_weights(disk_, *config.train.export_path, outcome.weights);
        !exported) {
      outcome.how = How::failed;
      outcome.why = within("train.export", exported.error()).text;
    }
  const std::string state = outcome.how == How::done      ? "done"
                            : outcome.how == How::stopped ? "stopped"
                                                          : "failed";
  outcome.weights.clear();
  // Stuck threads may still save something, so the folder stays locked until the head ends.
  if (outcome.all_gone) place_.give_back();
  tell_head(state, outcome.why);
  {
    // Published and updated together, since a client that hears of the end may submit the run
    // again.
    const std::lock_guard lock(mutex_);
    record_event(ended_event(config, state, outcome.why, outcome.skipped_steps));
    record_ = nullptr;
    report_.state = state;
    report_.why = outcome.why;
    report_.lacks_nodes =
        outcome.how == How::failed && (lacks_nodes_ || player_host_->lacked_nodes());
  }
  supervisor_.leave(state);
  // Stuck threads still use this object.
  if (outcome.all_gone) around_.over();
}

actors::Outcome HeadRun::play() {
  actors::Outcome ended;
  ended.step = run_->step();
  auto ready = choice_ ? Status(Done{}) : choose_late();
  if (ready) ready = around_.chosen(*choice_);
  if (!ready) {
    ended.how = ends_ ? actors::Outcome::How::stopped : actors::Outcome::How::failed;
    if (!ends_) ended.why = ready.error().text;
    return ended;
  }
  for (const auto& warning :
       describe_run(disk_, place_.folder, loaded_, run_->chosen(), run_->step()))
    tell(warning_event(loaded_.config, warning));
  tell_choice();
  for (const auto& node : around_.nodes.all())
    if (!can_use(node)) tell_unfit(node);
  return run_->play(
      {.bell = bell_,
       .watchdog = watchdog_,
       .record = record_,
       .player_host = player_host_.get(),
       .claim = &*place_.checkpoints,
       .led_by = [this](const caf::actor& supervisor) { supervisor_.change(supervisor); }});
}

void HeadRun::record(Recorder& recorder, const Value& event) {
  // The report comes first: whoever hears of an event may ask for it at once.
  const auto& type = *event.find("type")->text();
  if (type == "step") learn(event);
  if (type == "run.recovered") {
    const std::lock_guard lock(mutex_);
    ++report_.recoveries;
    report_.recovered = *event.find("why")->text() + "; " + sentence(event);
  }
  recorder.record(event);
  if (type == "checkpoint.saved") replanner_.saved();
}

void HeadRun::end(const std::string& state, const std::string& why) {
  {
    const std::lock_guard lock(mutex_);
    report_.state = state;
    report_.why = why;
  }
  supervisor_.leave(state);
  tell_head(state, why);
  around_.over();
}

void HeadRun::tell_head(const std::string& state, const std::string& why) {
  RunStanding ended = report();
  ended.state = state;
  ended.why = why;
  around_.ended(ended);
}

void HeadRun::placed(const actors::Lineup& lineup) {
  const std::string where = to_text(lineup);
  double gain = 0;
  {
    const std::lock_guard lock(mutex_);
    report_.where = where;
    if (lineup_) gain = 1 - lineup.busiest / lineup_->busiest;
    lineup_ = lineup;
  }
  Value changed = event("plan.changed", loaded_.config.name);
  changed.set("why", where);
  Value::List names;
  for (const auto& node : lineup.nodes) names.emplace_back(node.name);
  changed.set("nodes", std::move(names));
  if (std::abs(gain) > least_gain) changed.set("gain", gain);
  tell(changed);
}

void HeadRun::tell(const Value& event) {
  // Under the lock, since another thread than the run's may call this while the run ends.
  const std::lock_guard lock(mutex_);
  if (record_) record_(event);
}

RunStanding HeadRun::report() const {
  const std::lock_guard lock(mutex_);
  return report_;
}

void HeadRun::stop_now() {
  supervisor_.stop_now();
  ends_ = true;
  around_.nodes.wake();
}

void HeadRun::pause(bool paused) {
  supervisor_.pause(paused);
  const std::lock_guard lock(mutex_);
  if (report_.state == "running" || report_.state == "paused")
    report_.state = paused ? "paused" : "running";
}

std::shared_ptr<const config::Loaded> HeadRun::now() const {
  const std::lock_guard lock(mutex_);
  return now_;
}

bool HeadRun::plays_on(const std::string& node) const {
  const std::lock_guard lock(mutex_);
  return !report_.has_ended() && lineup_ &&
         std::ranges::count(lineup_->nodes, node, &actors::NodeHere::name) > 0;
}

bool HeadRun::can_use(const actors::NodeHere& node) const {
  const std::lock_guard lock(mutex_);
  return report_.has_ended() || actors::has(node.inventory, least_);
}

std::optional<RunChoice> HeadRun::choice() const {
  const std::lock_guard lock(mutex_);
  return choice_;
}

int HeadRun::fewest_nodes() const { return now()->config.elastic.nodes.fewest; }

void HeadRun::heard(std::uint64_t node, transport::Message message) {
  player_host_->heard(node, std::move(message));
}
void HeadRun::lost(const actors::NodeHere& node, const actors::NodeLoss& loss) {
  replanner_.node_went();
  player_host_->lost(node, loss);
}

void HeadRun::arrived(const actors::NodeHere& node) {
  if (!can_use(node)) return tell_unfit(node);
  player_host_->arrived();
  replanner_.node_came();
}

void HeadRun::learn(const Value& step) {
  const auto done = *step.find("step")->integer();
  std::int64_t steps = 0;
  {
    const std::lock_guard lock(mutex_);
    report_.step = done;
    if (const Value* loss = step.find("loss")) report_.loss = loss->number();
    report_.goodput = step.find("goodput")->number();
    steps = report_.steps;
  }
  replanner_.stepped(done, steps, step.find("seconds")->number());
}

}  // namespace troupe::apps
