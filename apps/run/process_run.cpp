#include "apps/run/process_run.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include "actors/exchange.h"
#include "actors/lead/supervisor.h"
#include "actors/wait.h"
#include "apps/events/event.h"
#include "apps/run/disk_checkpoints.h"
#include "apps/run/memory_file.h"
#include "apps/run/timeline_file.h"
#include "config/recipe.h"
#include "config/schema.h"
#include "core/mixture.h"

namespace troupe::apps {
namespace {

// How far a head may be ahead of its nodes. Pauses, drains and live changes wait for work that was
// already given out.
constexpr auto head_lead = std::chrono::milliseconds(500);

storage::LedgerTerms terms_of(const config::RunConfig& config, const RunSetup& setup) {
  using Order = config::RunConfig::Data::Order;
  const auto kind = config.data.order == Order::shuffled ? storage::SampleOrder::Kind::shuffled
                                                         : storage::SampleOrder::Kind::sequential;
  storage::LedgerTerms terms{kind, config.seed, setup.train->count(), config.batch.global,
                             setup.micro};
  if (const auto mixture = Mixture::parse(config.data.mix.value_or("")); mixture) {
    terms.mix = mixture->text();
    terms.counts = setup.mix_counts;
  }
  terms.left_out = config.train.skip_steps;
  return terms;
}

actors::SpikeRule::Action action_of(config::RunConfig::Train::OnSpike on_spike) {
  using OnSpike = config::RunConfig::Train::OnSpike;
  switch (on_spike) {
    case OnSpike::none:
      return actors::SpikeRule::Action::none;
    case OnSpike::stop:
      return actors::SpikeRule::Action::stop;
    case OnSpike::skip:
      return actors::SpikeRule::Action::skip;
  }
  return actors::SpikeRule::Action::none;
}

}  // namespace

ProcessRun::ProcessRun(const config::Loaded& loaded, RunSetup setup, storage::Files& files)
    : config_(loaded.config), tree_(loaded.tree), setup_(std::move(setup)), files_(files) {}

ProcessRun::~ProcessRun() {
  if (own_loop_) own_loop_->end();
  drop();
  if (is_used_ && !is_finished_) actors::finish(devices_.all());
}

void ProcessRun::drop() {
  supervisor_ = nullptr;
  if (const auto group = std::exchange(group_, nullptr)) {
    group->kill_all();
    EventFd gone;
    group->when_empty([&gone] { gone.ring(); });
    gone.wait();
  }
  // The last weights, and a checkpoint that waits to be written, are in the memory of those who
  // played, which may end before this object.
  if (outcome_) outcome_->weights.clear();
  store_ = nullptr;
  samples_ = nullptr;
}

void ProcessRun::finish(std::function<void()> then) {
  actors::finish(devices_.all(), [this, then = std::move(then)] {
    is_finished_ = true;
    then();
  });
}

Result<std::unique_ptr<ProcessRun>> ProcessRun::make(const config::Loaded& loaded, RunSetup setup,
                                                     storage::Files& files, const PlanFor& whom,
                                                     const DevicesHere& here) {
  std::unique_ptr<ProcessRun> run(new ProcessRun(loaded, std::move(setup), files));
  const auto precision = precision_of(run->config_);
  if (!precision) return precision.error();
  run->setup_.precision = *precision;
  run->recipe_ = run->recipe_of(loaded.tree);
  const auto& config = run->config_;
  run->whom_ = whom;
  auto staged = run->stage(config);
  if (!staged) return staged.error();
  run->prepared_plan_ = std::move(*staged);
  run->take_batches(terms_of(config, run->setup_));
  if (run->setup_.validate) {
    const auto& validate = *run->setup_.validate;
    const storage::SampleOrder order(storage::SampleOrder::Kind::sequential, 0, validate.count());
    run->validation_.emplace(validate, order, config.batch.global, run->setup_.micro,
                             run->setup_.model.ignore);
  }
  auto devices = RunDevices::open(config, *precision, *run->prepared_plan_, here);
  if (!devices) return devices.error();
  run->devices_ = std::move(*devices);
  return run;
}

void ProcessRun::take_batches(const storage::LedgerTerms& terms) {
  batches_.emplace_back(*setup_.train, terms.samples(), terms.global, terms.micro,
                        setup_.model.ignore);
  mix_ = terms.mix;
}

actors::RunSpecPtr ProcessRun::changed(const config::Loaded& loaded) {
  const auto terms = terms_of(loaded.config, setup_);
  if (terms.mix != mix_) take_batches(terms);
  ledger_->change(terms);
  return led(loaded.config, recipe_of(loaded.tree));
}

Value ProcessRun::recipe_of(Value tree) const {
  config::set_at(tree, "precision.compute", std::string(to_string(setup_.precision)));
  Value recipe = config::recipe_of(tree);
  // The name of generated data determines its content, so it needs no digest.
  Value files = Value::Map{};
  for (const auto& file : setup_.train_files) files.set(file.path, to_string(file.digest));
  if (!setup_.train_files.empty()) config::set_at(recipe, "data.files", std::move(files));
  return recipe;
}

/// Writes the plan's memory to the run's folder, for reports during and after the run.
void ProcessRun::keep_memory() {
  if (kept_ == prepared_plan_) return;
  watchdog_->sign("it keeps what its plan holds");
  if (auto kept =
          write_memory(files_, "runs/" + config_.name + "/memory.jsonl", prepared_plan_->memory);
      !kept)
    warn(kept.error().text);
  kept_ = prepared_plan_;
}

void ProcessRun::warn(const std::string& text) {
  Value warning = event("warn", config_.name);
  warning.set("text", text);
  record_(warning);
}

Status ProcessRun::start() {
  auto first = first_state({config_, setup_, recipe_, files_, host_});
  if (!first) return first.error();
  start_ = std::move(*first);
  return Done{};
}

Result<std::vector<std::string>> ProcessRun::resume(SavesGone saves_gone, const std::string& id) {
  auto resumed = resumed_state({config_, setup_, recipe_, files_, host_, id}, saves_gone);
  if (!resumed) return resumed.error();
  start_ = std::move(resumed->start);
  return std::move(resumed->warnings);
}

Value ProcessRun::chosen(Value tree) const {
  Value::List boundaries = {plan().stages.front().first};
  for (const auto& stage : plan().stages) boundaries.push_back(stage.last);
  config::set_at(tree, "pipeline.stages", std::move(boundaries));
  config::set_at(tree, "pipeline.chunks", plan().chunks);
  config::set_at(tree, "pipeline.replicas", static_cast<int>(plan().replicas.size()));
  if (*config::value_at(tree, "pipeline.schedule")->text() == "auto")
    config::set_at(tree, "pipeline.schedule", plan().schedule);
  config::set_at(tree, "batch.micro", setup_.micro);
  config::set_at(tree, "precision.compute", std::string(to_string(setup_.precision)));
  return tree;
}

std::shared_ptr<actors::RunSpec> ProcessRun::spec(const config::RunConfig& config,
                                                  const Value& recipe) {
  const auto& [plan, memory, rounds] = *prepared_plan_;
  auto spec = std::make_shared<actors::RunSpec>();
  is_used_ = true;
  spec->name = config.name;
  spec->model = &setup_.model;
  for (const auto& stage : plan.stages) spec->stages.push_back({stage.first, stage.last});
  spec->work.resize(static_cast<std::size_t>(rounds.of_one_step()->devices()));
  for (const auto& seat : plan.seats) {
    const auto& stage = plan.stages[static_cast<std::size_t>(seat.stage)];
    spec->work[static_cast<std::size_t>(seat.position)] +=
        rounds.of_one_step()->step_every * (stage.forward + stage.backward).count();
  }
  spec->keep = rounds.keep();
  spec->optimizer = config.optimizer;
  spec->delays = rounds.delays();
  if (rounds.asynchronous()) spec->staleness = config.staleness;
  spec->short_rows = config.train.graph_rows;
  spec->clip =
      rounds.asynchronous() ? actors::ClipScope::each_stage : actors::ClipScope::all_stages;
  spec->exactness = config.exactness == config::RunConfig::Exactness::bits
                        ? actors::Exactness::bits
                        : actors::Exactness::samples;
  spec->precision = setup_.precision;
  if (kernels::is_fp16(setup_.precision))
    spec->loss_scaling = {.initial_power = config.precision.loss_scale_power,
                          .growth_interval = config.precision.growth_interval};
  spec->seed = config.seed;
  spec->batches = &batches_.back();
  if (validation_) spec->validation = &*validation_;
  spec->micro = setup_.micro;
  spec->samples_in_step = config.batch.global;
  spec->targets_in_step = config.batch.global * setup_.train->shape().target.count();
  if (setup_.of_tokens()) spec->tokens_in_sample = setup_.train->shape().input[0];
  spec->round = [prepared_plan = prepared_plan_](std::int64_t first, std::int64_t left) {
    return prepared_plan->rounds.at(first, left);
  };
  const auto evaluated = config.train.eval_batches * (config.batch.global / setup_.micro);
  spec->evaluation = actors::evaluation_round(*rounds.of_one_step(), static_cast<int>(evaluated));
  spec->steps = config.train.steps;
  spec->eval_every = config.train.eval_every;
  spec->early_stop = {config.train.stop_after.value_or(0), config.train.min_improvement};
  spec->spikes = {.action = action_of(config.train.on_spike),
                  .factor = config.train.spike_factor,
                  .window = config.train.spike_window,
                  .most = config.train.spike_most,
                  .norm_factor = config.train.spike_norm_factor.value_or(0)};
  spec->left_out = config.train.skip_steps;
  if (const auto mixture = Mixture::parse(mix_)) spec->sources = mixture->sources;
  spec->keep_best = config.checkpoint.keep_best;
  spec->save_every_steps = config.checkpoint.every.steps;
  spec->save_every_time = config.checkpoint.every.time;
  spec->sample_every = config.sample.every.value_or(0);
  spec->copies = config.elastic.copies;
  spec->recipe = recipe;
  for (const auto* files : {&setup_.train_files, &setup_.validate_files})
    spec->data.insert(spec->data.end(), files->begin(), files->end());
  spec->model_description = setup_.model_description;
  const int replicas = rounds.of_one_step()->replicas;
  spec->executors.resize(spec->work.size() * static_cast<std::size_t>(replicas));
  const auto& here = devices_.by_number();
  for (std::size_t i = 0; i < std::min(here.size(), spec->executors.size()); ++i)
    spec->executors[i] = here[i].get();
  spec->reader = devices_.reader();
  spec->measures_staleness = config.log.staleness && rounds.asynchronous();
  spec->rounds_ahead = rounds.asynchronous() ? 1 : 2;
  actors::cut_stages(*spec, config.parallel.exchange);
  spec->strikes = config.limits.strikes;
  spec->strike_window = config.limits.strike_window;
  spec->stall_patience = config.limits.stuck_floor;
  spec->stalls.disk = std::max(spec->stalls.usual, static_cast<int>(config.limits.save_patience /
                                                                    config.limits.stuck_floor));
  return spec;
}

std::shared_ptr<actors::RunSpec> ProcessRun::led(const config::RunConfig& config,
                                                 const Value& recipe) {
  keep_memory();
  auto led = spec(config, recipe);
  led->ledger = &*ledger_;
  led->evaluations = &*evaluations_;
  led->checkpoints = store_.get();
  led->record = record_;
  led->alive = [watchdog = watchdog_](const std::string& doing) {
    watchdog->sign("supervisor: " + doing);
  };
  led->player_host = player_host_;
  led->leave_out = leave_out_;
  if (player_host_ && !rounds().asynchronous()) led->lead = head_lead;
  led->keep_timeline = [this](const schedules::Timeline& timeline) {
    if (auto kept = write_timeline(files_, "runs/" + config_.name + "/timeline.jsonl", timeline);
        !kept)
      warn(kept.error().text);
  };
  return led;
}

void ProcessRun::play(Loop& loop, Context around, std::function<void(actors::Outcome)> ended) {
  loop_ = &loop;
  ended_ = std::move(ended);
  watchdog_ = &around.watchdog;
  watchdog_->sign("it opens its ledger");
  record_ = around.record;
  auto ledger =
      storage::Ledger::open(files_, "runs/" + config_.name + "/ledger", terms_of(config_, setup_));
  auto evaluations = storage::EvaluationLog::open(files_, "runs/" + config_.name + "/evaluations");
  const auto refuse = [this](const std::string& why) {
    actors::Outcome refused;
    refused.how = actors::Outcome::How::failed;
    refused.why = why;
    ended_(std::move(refused));
  };
  if (!ledger || !evaluations)
    return refuse("cannot write the ledger: " +
                  (ledger ? evaluations.error() : ledger.error()).text);
  ledger_ = std::move(*ledger);
  evaluations_ = std::move(*evaluations);
  watchdog_->sign("its actors begin");
  if (config_.sample.every) {
    const auto sign = [watchdog = watchdog_] { watchdog->sign("its last samples are written"); };
    auto samples = StepSamples::open({around.env, files_, config_, setup_.model, record_, sign},
                                     setup_.tokenizer, start_.step);
    if (!samples) return refuse(samples.error().text);
    samples_ = std::move(*samples);
  }
  store_ = std::make_unique<DiskCheckpoints>(DiskCheckpoints::Context{
      around.env, config_, files_, *ledger_, *evaluations_, record_, around.claim, samples_.get()});
  player_host_ = around.player_host;
  leave_out_ = std::move(around.leave_out);
  device_notes().pass_on_to([this](const std::string& remark) { warn(remark); });
  led_by_ = std::move(around.led_by);
  group_ = std::make_shared<actors::caf_shim::ActorGroup>();
  supervisor_ = actors::spawn_supervisor(
      {around.system, group_}, led(config_, recipe_), std::move(start_),
      [this](actors::Outcome outcome) {
        const auto moved = std::make_shared<actors::Outcome>(std::move(outcome));
        loop_->post([this, moved] { await_actors(std::move(*moved)); });
      });
  if (led_by_) led_by_(supervisor_);
  if (drains_) drain();
}

actors::Outcome ProcessRun::play_here(EventFd& bell, Context around, std::function<void()> asked) {
  std::mutex mutex;
  std::optional<actors::Outcome> outcome;
  const auto has_ended = [&] {
    const std::lock_guard lock(mutex);
    return outcome.has_value();
  };
  own_loop_ = around.env.make_loop({"run"});
  own_loop_->post([&] {
    play(*own_loop_, std::move(around), [&](actors::Outcome ended) {
      const std::lock_guard lock(mutex);
      outcome = std::move(ended);
      bell.ring();
    });
  });
  while (!has_ended()) {
    bell.wait();
    if (has_ended()) break;
    if (const auto once = std::exchange(asked, {})) once();
    own_loop_->post([this] { drain(); });
  }
  // The end of an actor system waits for all threads that have spawned actors in it.
  if (outcome->all_gone) own_loop_->end();
  return std::move(*outcome);
}

void ProcessRun::drain() {
  drains_ = true;
  if (supervisor_) actors::caf_shim::post(supervisor_, actors::Drain{});
}

// The remains of the run, one after another. Nobody waits for stuck threads.

void ProcessRun::await_actors(actors::Outcome outcome) {
  outcome_ = std::move(outcome);
  supervisor_ = nullptr;
  if (led_by_) led_by_({});
  if (!outcome_->all_gone) return over(false);
  watchdog_->sign("its actors end");
  group_->when_empty([this] { loop_->post([this] { await_saves(); }); });
}

void ProcessRun::await_saves() {
  group_ = nullptr;
  watchdog_->sign(samples_ ? "its last checkpoint and samples are written"
                           : "its last checkpoint is written");
  // A run that was stopped has no time for samples.
  if (samples_ && outcome_->how != actors::Outcome::How::done) samples_->stop();
  const auto patience = config_.limits.save_patience;
  const auto wait_for_saves = [this, patience] {
    patience_ = loop_->after(patience, [this] { over(false); });
  };
  if (!samples_) {
    wait_for_saves();
  } else {
    patience_ = loop_->after(2 * patience, [this, wait_for_saves] {
      warn("the last samples took longer than twice limits.save_patience and are not written");
      samples_->stop();
      wait_for_saves();
    });
  }
  store_->when_idle([this] { loop_->post([this] { await_devices(); }); });
}

void ProcessRun::await_devices() {
  if (!ended_) return;  // Its patience has passed.
  if (patience_) loop_->cancel(*patience_);
  watchdog_->sign("its devices finish what was begun");
  // The computing threads finish their jobs soon.
  patience_ =
      loop_->after(config_.limits.stuck_floor * actors::Allowed().usual, [this] { over(false); });
  finish([this] {
    loop_->post([this] {
      if (!ended_) return;
      if (patience_) loop_->cancel(*patience_);
      // A failed device cannot be closed.
      over(std::ranges::none_of(
          devices_.all(), [](const auto* executor) { return executor->fault().has_value(); }));
    });
  });
}

void ProcessRun::over(bool all_gone) {
  outcome_->all_gone = all_gone;
  std::exchange(ended_, nullptr)(std::move(*outcome_));
}

}  // namespace troupe::apps
