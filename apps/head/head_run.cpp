#include "apps/head/head_run.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "actors/caf_shim.h"
#include "apps/events/event.h"
#include "apps/events/event_backlog.h"
#include "apps/events/event_text.h"
#include "apps/head/decision_log.h"
#include "config/run_config.h"
#include "config/schema.h"
#include "core/json.h"
#include "core/units.h"

namespace troupe::apps {
namespace {

constexpr double least_gain = 1e-3;  // Smaller gains are not reported.

std::chrono::milliseconds in_milliseconds(std::chrono::nanoseconds time) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(time);
}

/// Ends a head that cannot lead its runs, so that its next life can resume them.
void end_head(Env& env, const config::RunConfig& config, const std::string& last) {
  env.crash(
      "run " + config.name + ": no progress for " + duration_text(config.limits.head_patience) +
      " (limits.head_patience); last known activity: " + last +
      "\nthis head stops; restart it with the same state folder (--state) to continue all its "
      "runs\n");
}

}  // namespace

HeadRun::HeadRun(config::Loaded loaded, RunSetup setup, RunStart start, Context around)
    : disk_(around.program.env, around.program.files),
      session_({around.program.env, around.program.host, around.program.files, disk_},
               std::move(loaded), start,
               [this](const std::string& last) {
                 end_head(around_.program.env, session_.config(), last);
               }),
      asked_pipeline_(*config::value_at(session_.loaded().tree, "pipeline")),
      takes_any_precision_(!session_.config().precision.compute),
      around_(std::move(around)),
      setup_(std::move(setup)),
      supervisor_(session_.config().name),
      loop_(around_.program.env.make_loop({"run"})),
      replanner_(
          around_.program.env, around_.program.files,
          in_milliseconds(session_.config().limits.gather_patience), [this] { return standing(); },
          [this] { begin_switch(); }) {
  report_.name = session_.config().name;
  report_.state = "starting";
  report_.steps = session_.config().train.steps;
  report_.log_every = session_.config().log.every;
  report_.exactness =
      session_.config().exactness == config::RunConfig::Exactness::bits ? "bits" : "samples";
}

void HeadRun::drain() {
  loop_->post([this] {
    session_.drain();
    stop_unled({});
  });
}

void HeadRun::leave() {
  if (player_host_) player_host_->leave();
  drain();
}

void HeadRun::when_ended(std::function<void()> then) {
  {
    const std::lock_guard lock(mutex_);
    if (life_ == Life::lives) return when_ended_.push_back(std::move(then));
  }
  then();
}

void HeadRun::close() {
  loop_->end();
  replanner_.end();  // It looks at the nodes, which may go before this run.
  session_.drop();
  if (player_host_) player_host_->end();
}

Status HeadRun::prepare(std::optional<RunChoice> kept) {
  if (auto taken = session_.take_earlier(); !taken) return taken;
  if (kept) take(*kept, session_.loaded());
  choice_ = std::move(kept);
  if (takes_any_precision_ && session_.config().precision.compute) {
    const auto precision = precision_of(session_.config());
    if (!precision) return precision.error();
    least_ = *precision;
  }
  auto nodes = around_.nodes.usable(least_);
  if (!choice_ && static_cast<int>(nodes.size()) >= session_.config().elastic.nodes.fewest)
    if (auto chosen = choose(std::move(nodes), setup_); !chosen) return chosen;
  if (auto made = make(std::move(setup_)); !made) return made;
  // The remains of an earlier run of that name are moved aside before this run is recorded, so that
  // whatever is found later is this run's.
  if (auto entered = session_.enter(); !entered) return entered;
  auto decisions =
      open_decision_log(around_.program.files, session_.place().folder, session_.place().moved);
  if (!decisions) return decisions.error();
  decisions_ = std::move(*decisions);
  return Done{};
}

Status HeadRun::choose(std::vector<actors::NodeHere> nodes, RunSetup& setup) {
  actors::drop_old_links(nodes, around_.program.env.now());
  auto live =
      plan_for(session_.config(), setup, std::move(nodes), 1, around_.program.host.unit_times);
  if (!live) return live.error();
  take(live->choice, session_.loaded());
  const std::lock_guard lock(mutex_);
  times_ = setup.times;
  if (takes_any_precision_) least_ = setup.precision;
  choice_ = std::move(live->choice);
  return Done{};
}

/// Chooses the plan with the nodes that have come, and makes the run by it.
Status HeadRun::choose_and_make(std::vector<actors::NodeHere> nodes) {
  auto setup = set_up(around_.program.files, session_.config());
  if (!setup) return setup.error();
  if (auto chosen = choose(std::move(nodes), *setup); !chosen) return chosen;
  if (auto made = make(std::move(*setup)); !made) return made;
  player_host_->change(order(session_.loaded()));
  return Done{};
}

/// Makes the run from the present configuration.
Status HeadRun::make(RunSetup setup) {
  auto made = session_.plan(
      std::move(setup), {.memory = MemoryOf::elsewhere, .others_play = true},
      {.executors = around_.program.executors, .are_here = [](int) { return false; }});
  if (!made) return made;
  const std::lock_guard lock(mutex_);
  now_ = std::make_shared<const config::Loaded>(session_.loaded());
  report_.step = session_.run().step();
  const auto& warnings = session_.warnings();
  report_.warning = warnings.empty() ? "" : warnings.front();
  return Done{};
}

void HeadRun::tell_choice() {
  {
    const std::lock_guard lock(mutex_);
    report_.plan_why = choice_->plan_why;
    report_.step_seconds = {};
    step_times_ = actors::LastNumbers(most_step_times);
  }
  Value chosen = event(RunChoice::type, session_.config().name);
  const Value choice = transport::to_value(*choice_);
  for (const auto& entry : *choice.map()) chosen.set(entry.key, entry.value);
  const auto& round = *session_.run().rounds().of_one_step();
  chosen.set("samples", session_.config().batch.global);
  chosen.set("micro", session_.run().setup().micro);
  chosen.set("micro_batches", round.micro_batches_in_step());
  tell(chosen);
}

void HeadRun::tell_unfit(const actors::NodeHere& node) {
  kernels::Precision least{};
  {
    const std::lock_guard lock(mutex_);
    least = least_;
  }
  const actors::Unfit unfit{session_.config().name, "its precision is " +
                                                        std::string(to_string(least)) + "; " +
                                                        actors::who_lacks(least, {node})};
  (void)around_.nodes.send(node.incarnation, transport::to_message(unfit));
  Value told = event(actors::Unfit::type, unfit.run);
  told.set("node", node.name);
  told.set("why", unfit.why);
  tell(told);
}

void HeadRun::start() {
  player_host_ = std::make_unique<actors::RemotePlayerHost>(
      around_.program.env, around_.program.network, around_.nodes, order(session_.loaded()),
      std::move(decisions_), unled());
  {
    const std::lock_guard lock(mutex_);
    life_ = Life::lives;
  }
  loop_->post([this] { begin(); });
}

actors::RemoteOrder HeadRun::order(const config::Loaded& loaded) {
  const auto& config = loaded.config;
  actors::RemoteOrder order = session_.order(loaded);
  order.fewest = config.elastic.nodes.fewest;
  order.most = config.elastic.nodes.most;
  order.least = least_;
  order.keep = config.checkpoint.keep;
  if (session_.resumes()) order.node_patience = order.suspend_patience;
  order.gather_patience = in_milliseconds(config.limits.gather_patience);
  order.interface = around_.interface;
  order.keys = around_.keys;
  order.plain = around_.plain;
  order.placed = [this](const actors::Lineup& lineup) { placed(lineup); };
  order.decided = [this](const actors::decide::Answer& answer) {
    tell(decision_event(session_.config(), answer));
  };
  return order;
}

// The functions below run on the loop, one after another.

void HeadRun::begin() {
  const auto& config = session_.config();
  const std::string events = session_.place().folder + "/events.jsonl";
  const auto before = end_of_events(around_.program.files, events);
  SinkOptions sinks{.file = events, .publisher = &around_.publisher, .notify = around_.notify};
  if (auto opened = session_.open_events(std::move(sinks)); !opened) {
    session_.give_back();
    {
      const std::lock_guard lock(mutex_);
      report_.state = "failed";
      report_.why = opened.error().text;
    }
    supervisor_.leave("failed");
    tell_head("failed", opened.error().text);
    return ended();
  }
  const auto record_event = [this](const Value& event) { record(event); };
  {
    const std::lock_guard lock(mutex_);
    record_ = record_event;
    report_.state = supervisor_.is_paused() ? "paused" : "running";
    report_.step = session_.run().step();
    report_.began = before;
  }
  record_event(state_event(config, "running", {}));
  for (const auto& warning : session_.warnings()) record_event(warning_event(config, warning));
  if (choice_) return play();
  player_host_->open();
  is_open_ = true;
  if (early_stop_) player_host_->tell(*early_stop_);
}

/// Tells the run's machine of a stop if there is no supervisor that does.
void HeadRun::stop_unled(const actors::decide::StopAsked& stop) {
  if (has_played_) return;
  if (is_open_) return player_host_->tell(stop);
  early_stop_ = stop;
}

/// The answers to a run's machine before there is a supervisor.
actors::UnledRun HeadRun::unled() {
  return {
      .choose =
          [this](std::vector<actors::NodeHere> nodes) {
            loop_->post([this, nodes = std::move(nodes)] { choose_first(nodes); });
          },
      .warn = [this](const std::string& text) { tell(warning_event(session_.config(), text)); },
      .end =
          [this](const actors::decide::End& end) { loop_->post([this, end] { end_unled(end); }); }};
}

void HeadRun::choose_first(std::vector<actors::NodeHere> nodes) {
  if (auto chosen = choose_and_make(std::move(nodes)); !chosen)
    return player_host_->cannot_begin(chosen.error().text);
  play();
}

void HeadRun::end_unled(const actors::decide::End& end) {
  if (has_played_) return;  // The supervisor hears of it.
  actors::Outcome outcome;
  outcome.step = session_.run().step();
  outcome.how = actors::how_of(end.how);
  outcome.why = end.why;
  played(std::move(outcome));
}

void HeadRun::play() {
  if (auto recorded = around_.chosen(*choice_); !recorded)
    return player_host_->cannot_begin(recorded.error().text);
  has_played_ = true;
  for (const auto& warning : session_.describe()) tell(warning_event(session_.config(), warning));
  tell_choice();
  for (const auto& node : around_.nodes.all())
    if (!can_use(node)) tell_unfit(node);
  system_ = around_.program.systems.make();
  session_.play(
      *loop_, *system_, record_, player_host_.get(),
      [this](const caf::actor& supervisor) { supervisor_.change(supervisor); },
      [this](actors::Outcome outcome) { played(std::move(outcome)); },
      [this](std::int64_t step) { return leave_out(step); });
}

void HeadRun::played(actors::Outcome outcome) {
  session_.watchdog().rest();
  if (!session_.exports(outcome)) return over(outcome);
  const auto exported = std::make_shared<actors::Outcome>(std::move(outcome));
  loop_->aside(
      "exporting", [this, exported] { session_.export_weights(*exported); },
      [this, exported] { over(*exported); });
}

void HeadRun::over(actors::Outcome& outcome) {
  const std::string state = state_of(outcome);
  outcome.weights.clear();
  // Stuck threads may still save something, so the folder stays locked until the head ends.
  if (outcome.all_gone) session_.give_back();
  tell_head(state, outcome.why);
  {
    // Published and updated together, since a client that hears of the end may submit the run
    // again.
    const std::lock_guard lock(mutex_);
    record_(ended_event(session_.config(), state, outcome.why, outcome.skipped_steps));
    record_ = nullptr;
    report_.state = state;
    report_.why = outcome.why;
    report_.lacks_nodes = state == "failed" && player_host_->lacked_nodes();
  }
  supervisor_.leave(state);
  // Stuck threads still use this object.
  if (outcome.all_gone) return ended();
  tell_ended();
}

/// Nothing of the run is needed any more except its report.
void HeadRun::ended() {
  tell_ended();
  around_.over();
}

/// Tells those who wait for the end.
void HeadRun::tell_ended() {
  std::vector<std::function<void()>> waiting;
  {
    const std::lock_guard lock(mutex_);
    life_ = Life::has_ended;
    waiting = std::exchange(when_ended_, {});
  }
  for (const auto& then : waiting) then();
}

// Any thread may call the functions below.

void HeadRun::record(const Value& event) {
  // The report comes first: whoever hears of an event may ask for it at once.
  const auto& type = *event.find("type")->text();
  if (type == "step") learn(event);
  if (type == "node.straggler") learn_straggler(event);
  if (type == "run.recovered") {
    const std::lock_guard lock(mutex_);
    ++report_.recoveries;
    report_.recovered = *event.find("why")->text() + "; " + sentence(event);
  }
  const Value told = told_at(around_.program.env.wall_time(), event);
  counters_.add(told);
  session_.recorder().record(told);
  if (type == "checkpoint.saved") replanner_.saved();
}

void HeadRun::tell_head(const std::string& state, const std::string& why) {
  {
    const std::lock_guard lock(mutex_);
    report_.stragglers.clear();
  }
  RunStanding ended = report();
  ended.state = state;
  ended.why = why;
  around_.ended(ended);
}

void HeadRun::placed(const actors::Lineup& lineup) {
  replanner_.placed(*choice(), lineup.nodes);
  const std::string where = to_text(lineup);
  double gain = 0;
  {
    const std::lock_guard lock(mutex_);
    report_.where = where;
    if (lineup_) gain = 1 - lineup.busiest / lineup_->busiest;
    lineup_ = lineup;
  }
  Value changed = event("plan.changed", session_.config().name);
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
  loop_->post([this] { stop_unled({.at_once = true}); });
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

std::vector<HeadRun::NodeOfRun> HeadRun::nodes_of_run() const {
  const std::lock_guard lock(mutex_);
  std::vector<NodeOfRun> nodes;
  if (report_.has_ended() || !lineup_) return nodes;
  for (const auto& node : lineup_->nodes) nodes.push_back({node});
  const auto& process_of = lineup_->placement.stages;
  for (std::size_t device = 0; device < process_of.size(); ++device)
    nodes[static_cast<std::size_t>(process_of[device])].devices.push_back(
        {static_cast<int>(device), lineup_->stages[device]});
  return nodes;
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
  const double seconds = step.find("seconds")->number();
  std::int64_t steps = 0;
  {
    const std::lock_guard lock(mutex_);
    report_.step = done;
    if (const Value* loss = step.find("loss")) report_.loss = loss->number();
    report_.goodput = step.find("goodput")->number();
    step_times_.add(seconds);
    report_.step_seconds = step_times_.median();
    steps = report_.steps;
  }
  const Value* computing = step.find("computing");
  replanner_.stepped(done, steps, seconds,
                     computing ? std::optional(computing->number()) : std::nullopt);
}

void HeadRun::learn_straggler(const Value& event) {
  const std::lock_guard lock(mutex_);
  std::erase_if(report_.stragglers, [&](const Value& known) {
    return std::ranges::all_of(std::array{"node", "device", "cause"}, [&](const char* key) {
      return text_of(known, key) == text_of(event, key);
    });
  });
  if (!event.find("over")) report_.stragglers.push_back(event);
}

}  // namespace troupe::apps
