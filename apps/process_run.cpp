#include "apps/process_run.h"

#include <algorithm>
#include <cstdio>
#include <deque>
#include <mutex>
#include <thread>

#include "actors/checkpoints.h"
#include "actors/device_thread.h"
#include "actors/exchange.h"
#include "actors/supervisor.h"
#include "actors/wait.h"
#include "apps/gpu_links.h"
#include "apps/gpus.h"
#include "apps/memory_file.h"
#include "apps/recorder.h"
#include "apps/timeline_file.h"
#include "config/recipe.h"
#include "config/schema.h"
#include "schedules/registry.h"
#include "storage/checkpoint_writer.h"
#include "storage/match.h"
#include "storage/safetensors.h"

namespace troupe::apps {
namespace {

// Actors never compute; two threads are enough for their messages.
constexpr std::size_t actor_threads = 2;
constexpr int steps_between_drains = 64;
// Of a head before its nodes. A pause, a drain or a live change waits for what was given out.
constexpr auto head_lead = std::chrono::milliseconds(500);

storage::LedgerTerms terms_of(const config::RunConfig& config, const RunSetup& setup) {
  using Order = config::RunConfig::Data::Order;
  const auto kind = config.data.order == Order::shuffled ? storage::SampleOrder::Kind::shuffled
                                                         : storage::SampleOrder::Kind::sequential;
  return {kind, config.seed, setup.train->count(), config.batch.global, setup.micro};
}

Result<std::vector<NamedTensor>> load_file(storage::Files& files, const std::string& path,
                                           MemoryPool& memory) {
  const auto file = storage::Safetensors::open(files, path);
  if (!file) return file.error();
  std::vector<NamedTensor> tensors;
  for (const auto& view : file->tensors()) {
    auto tensor = storage::load(view, memory);
    if (!tensor) return within(path + ": " + view.name, tensor.error());
    tensors.push_back({view.name, std::move(*tensor)});
  }
  return tensors;
}

int flush_steps(const config::RunConfig& config, int step_every) {
  if (!config.staleness.flush_every) return steps_between_drains;
  return static_cast<int>(*config.staleness.flush_every) / step_every;
}

Status check_ties(const config::RunConfig& config, const models::Model& model,
                  const schedules::Plan& plan) {
  std::vector<models::UnitRange> ranges;
  for (const auto& stage : plan.stages) ranges.push_back({stage.first, stage.last});
  return models::check_shared(config.staleness, models::shared_parameters(model, ranges));
}

}  // namespace

/// Saves on a thread of its own while training goes on.
class ProcessRun::Store final : public actors::CheckpointStore {
 public:
  explicit Store(ProcessRun& run)
      : run_(run),
        writer_(run.files_,
                {.root = run.config_.checkpoint.directory,
                 .keep = run.config_.checkpoint.keep,
                 .before = [&run] { return run.ledger_->sync(); }},
                [this](const storage::SaveOutcome& outcome) { tell(outcome); }) {}

  void save(storage::CheckpointContent content, std::function<void(Status)> done) override {
    {
      const std::lock_guard lock(mutex_);
      waiting_.push_back(done);
    }
    if (auto accepted = writer_.submit(std::move(content)); !accepted) {
      const std::lock_guard lock(mutex_);
      waiting_.pop_back();
      run_.warn("a step is not saved: " + accepted.error().text);
      done(accepted.error());
    }
  }

  Result<std::optional<actors::StartPoint>> newest(MemoryPool& memory) override {
    return actors::newest_checkpoint(run_.files_, run_.config_.checkpoint.directory, memory);
  }

  Status finish() {
    return writer_.wait_until_idle(
        std::chrono::ceil<std::chrono::milliseconds>(run_.config_.limits.save_patience));
  }

 private:
  void tell(const storage::SaveOutcome& outcome) {
    if (outcome.saved) {
      Value saved = event("checkpoint.saved", run_.config_.name);
      saved.set("step", outcome.step);
      saved.set("directory", outcome.saved->directory);
      saved.set("weights", to_string(outcome.saved->manifest.weights_digest));
      run_.record_(saved);
      if (!outcome.pruned)
        run_.warn("old checkpoints were not removed: " + outcome.pruned.error().text);
    } else {
      run_.warn("step " + std::to_string(outcome.step) +
                " was not saved: " + outcome.saved.error().text +
                "; training goes on, and the last good checkpoint stays");
    }
    std::function<void(Status)> done;
    {
      const std::lock_guard lock(mutex_);
      done = std::move(waiting_.front());
      waiting_.pop_front();
    }
    done(outcome.saved ? Status(Done{}) : Status(outcome.saved.error()));
  }

  ProcessRun& run_;
  std::mutex mutex_;
  std::deque<std::function<void(Status)>> waiting_;
  storage::CheckpointWriter writer_;  // Last: its thread uses the others.
};

ProcessRun::ProcessRun(const config::Loaded& loaded, RunSetup setup, storage::Files& files)
    : config_(loaded.config),
      tree_(loaded.tree),
      setup_(std::move(setup)),
      files_(files),
      system_config_(actor_threads) {}

ProcessRun::~ProcessRun() {
  // What comes now waits for all threads.
  if (watchdog_) watchdog_->sign("its threads end");
  system_.reset();
  actors::finish(executors());
}

Result<std::unique_ptr<ProcessRun>> ProcessRun::make(const config::Loaded& loaded, RunSetup setup,
                                                     storage::Files& files, Devices devices) {
  std::unique_ptr<ProcessRun> run(new ProcessRun(loaded, std::move(setup), files));
  const auto precision = precision_of(run->config_);
  if (!precision) return precision.error();
  run->setup_.precision = *precision;
  run->recipe_ = run->recipe_of(loaded.tree);
  const auto& config = run->config_;
  run->memory_ = devices.memory;
  run->others_play_ = devices.others_play;
  auto staged = run->stage(config);
  if (!staged) return staged.error();
  run->staging_ = std::move(*staged);
  run->batches_.emplace(*run->setup_.train, terms_of(config, run->setup_).samples(),
                        config.batch.global, run->setup_.micro);
  if (run->setup_.validate) {
    const auto& validate = *run->setup_.validate;
    const storage::SampleOrder order(storage::SampleOrder::Kind::sequential, 0, validate.count());
    run->validation_.emplace(validate, order, config.batch.global, run->setup_.micro);
  }
  if (auto made = run->make_devices(devices); !made) return made.error();
  return run;
}

Value ProcessRun::recipe_of(Value tree) const {
  config::set_at(tree, "precision.compute", std::string(to_string(setup_.precision)));
  return config::recipe_of(tree);
}

Result<ProcessRun::StagingPtr> ProcessRun::stage(const config::RunConfig& config) const {
  auto request = nominal_request(config, setup_, memory_);
  if (!request) return request.error();
  if (others_play_) request->effort = 0;
  auto plan = schedules::make_plan(*request);
  if (!plan) return plan.error();

  actors::RoundShape shape;
  shape.stages = static_cast<int>(plan->stages.size());
  shape.chunks = plan->chunks;
  shape.replicas = static_cast<int>(plan->replicas.size());
  shape.micro_batches = request->micro_batches;
  shape.groups = request->groups;
  if (is_asynchronous(config)) {
    shape.schedule = config.pipeline.schedule;
    shape.flush_steps = flush_steps(config, shape.micro_batches / shape.replicas);
    shape.synchronous_steps = config.staleness.synchronous_steps;
    for (int stage = 0; stage < shape.stages; ++stage)
      shape.recompute.push_back(config.pipeline.recompute.in(stage));
  } else {
    shape.written = *plan->replicas[0].schedule;
  }
  auto rounds = actors::Rounds::make(shape);
  if (!rounds) return rounds.error();
  if (rounds->asynchronous())
    if (auto good = check_ties(config, setup_.model, *plan); !good) return good.error();
  auto memory = schedules::run_memory(config.name, *request, *plan);
  return std::make_shared<const Staging>(
      Staging{std::move(*plan), std::move(memory), std::move(*rounds)});
}

namespace {

/// How many there are for so many devices of a run.
Result<int> find_gpus(int devices) {
  prepare_for_gpus();
  const auto gpus = count_gpus();
  if (!gpus || *gpus == 0) return no_gpu(gpus ? "there is none" : gpus.error().text);
  // They take turns: the first has the most.
  if (auto good = check_gpu_queues((devices + *gpus - 1) / *gpus); !good)
    return within("train.device", good.error());
  return gpus;
}

}  // namespace

/// For the last of the devices, which is one of so many GPUs in turn.
Status ProcessRun::make_gpu(int turn, int gpus, const Devices& devices) {
  if (kernels::is_on_tensor_cores(setup_.precision))
    if (const auto libraries = gpu_libraries(); !libraries)
      return Error{"precision.compute: wanted " + std::string(to_string(setup_.precision)) + ": " +
                   libraries.error().text + "; or set precision.compute = \"fp32\""};
  const int number = turn % gpus;
  auto opened = open_gpu(number);
  if (!opened) return within("train.device", opened.error());
  auto memory = gpu_memory(number);
  if (!memory) return within("train.device", memory.error());
  Device& gpu = **opened;
  const auto exported = exported_gpu_memory(**memory);
  actors::DeviceLimits limits;
  limits.patience = config_.limits.stuck_floor * actors::Allowed().usual;
  devices_.back() = std::make_unique<actors::DeviceThread>(std::move(*opened), std::move(*memory),
                                                           gpus_, limits, devices.pace);
  if (!devices.want_links) return Done{};
  auto links = link_gpu({.number = number,
                         .turn = turn < gpus ? OnGpu::first : OnGpu::with_others,
                         .gpu = gpu,
                         .memory = devices_.back()->memory(),
                         .exported = exported});
  linked_.back() = std::move(links.device);
  if (!links.missing.empty()) why_not_linked_ = std::move(links.missing);
  return Done{};
}

Status ProcessRun::make_devices(const Devices& devices) {
  const int count = rounds().of_one_step()->devices() * rounds().of_one_step()->replicas;
  int here = 0;
  for (int device = 0; device < count; ++device) here += devices.are_here(device) ? 1 : 0;
  const int machine = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  const int cores = devices.cores.value_or(config_.train.threads.value_or(machine));
  const bool on_gpus = is_on_gpus(config_);
  int gpus = 0;
  if (on_gpus && here > 0) {
    auto found = find_gpus(here);
    if (!found) return found.error();
    gpus = *found;
  }
  for (int device = 0, gpu = 0; device < count; ++device) {
    auto& executor = devices_.emplace_back();
    linked_.emplace_back();
    if (!devices.are_here(device)) continue;
    if (!on_gpus) {
      executor = std::make_unique<actors::ComputingThread>(std::max(1, cores / std::max(1, here)),
                                                           devices.pace);
      continue;
    }
    if (auto made = make_gpu(gpu++, gpus, devices); !made) return made;
  }
  const int in_replica = rounds().of_one_step()->devices();
  for (int device = 0; device < count; ++device)
    if (auto& executor = devices_[static_cast<std::size_t>(device)])
      executor->memory().expect(static_cast<std::size_t>(plan().memory_at(device % in_replica)));
  reader_ = std::make_unique<actors::ComputingThread>(1);
  return Done{};
}

/// For who looks at the run while it plays and after it.
void ProcessRun::keep_memory() {
  if (kept_ == staging_) return;
  watchdog_->sign("it keeps what its plan holds");
  if (auto kept = write_memory(files_, "runs/" + config_.name + "/memory.jsonl", staging_->memory);
      !kept)
    warn(kept.error().text);
  kept_ = staging_;
}

void ProcessRun::warn(const std::string& text) {
  Value warning = event("warn", config_.name);
  warning.set("text", text);
  record_(warning);
}

Status ProcessRun::start() {
  if (config_.model.init == "random") return Done{};
  auto tensors = load_file(*setup_.files, config_.model.init, host_);
  if (!tensors) return within("model.init", tensors.error());
  start_.weights = std::move(*tensors);
  return check(start_, "model.init: " + config_.model.init);
}

Result<std::vector<std::string>> ProcessRun::resume() {
  std::vector<std::string> warnings;
  auto found = storage::open_newest_checkpoint(files_, config_.checkpoint.directory);
  if (!found) return found.error();
  if (!*found) {
    warnings.push_back("there is no checkpoint below " + config_.checkpoint.directory +
                       " yet: starting at step 0");
    if (auto started = start(); !started) return started.error();
    return warnings;
  }
  for (const auto& skipped : (*found)->skipped)
    warnings.push_back(skipped.directory + " is damaged and was passed over: " + skipped.why);
  const storage::Checkpoint& checkpoint = (*found)->checkpoint;
  if (auto same = storage::match_model(checkpoint.manifest(), setup_.model_description); !same)
    return within(checkpoint.directory(), same.error());
  // What is set to change later made none of its numbers.
  storage::Manifest made = checkpoint.manifest();
  made.recipe = config::recipe_until(std::move(made.recipe), made.step);
  if (auto same = storage::match_recipe(made, config::recipe_until(recipe_, made.step)); !same)
    return within(checkpoint.directory(), same.error());
  auto start = actors::start_point(checkpoint, host_);
  if (!start) return start.error();
  start_ = std::move(*start);
  if (auto good = check(start_, checkpoint.directory()); !good) return good.error();
  return warnings;
}

/// What the optimizers would say later, said before anything is started.
Status ProcessRun::check(const actors::StartPoint& start, const std::string& where) {
  Stream stream = Stream::rehearsal(host_);
  const models::Stage whole(setup_.model, {0, static_cast<int>(setup_.model.units.size())}, {});
  models::Optimizer optimizer(config_.optimizer, whole.parameters(), whole.buffers(),
                              setup_.precision);
  if (auto weights = optimizer.from(stream, start.weights, start.step); !weights)
    return within(where, weights.error());
  if (auto restored = optimizer.restore(stream, start.moments, start.step); !restored)
    return within(where, restored.error());
  return Done{};
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
  const auto& [plan, memory, rounds] = *staging_;
  auto spec = std::make_shared<actors::RunSpec>();
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
  spec->precision = setup_.precision;
  if (kernels::is_fp16(setup_.precision))
    spec->loss_scaling = {.initial_power = config.precision.loss_scale_power,
                          .growth_interval = config.precision.growth_interval};
  spec->seed = config.seed;
  spec->batches = &*batches_;
  if (validation_) spec->validation = &*validation_;
  spec->micro = setup_.micro;
  spec->samples_in_step = config.batch.global;
  spec->targets_in_step = config.batch.global * setup_.train->shape().target.count();
  if (setup_.of_tokens()) spec->tokens_in_sample = setup_.train->shape().input[0];
  spec->round = [staging = staging_](std::int64_t first, std::int64_t left) {
    return staging->rounds.at(first, left);
  };
  const auto evaluated = config.train.eval_batches * (config.batch.global / setup_.micro);
  spec->evaluation = actors::evaluation_round(*rounds.of_one_step(), static_cast<int>(evaluated));
  spec->steps = config.train.steps;
  spec->eval_every = config.train.eval_every;
  spec->save_every_steps = config.checkpoint.every.steps;
  spec->save_every_time = config.checkpoint.every.time;
  spec->copies = config.elastic.copies;
  spec->recipe = recipe;
  spec->model_description = setup_.model_description;
  const int replicas = rounds.of_one_step()->replicas;
  spec->executors.resize(spec->work.size() * static_cast<std::size_t>(replicas));
  for (std::size_t i = 0; i < std::min(devices_.size(), spec->executors.size()); ++i)
    spec->executors[i] = devices_[i].get();
  spec->reader = reader_.get();
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
  led->checkpoints = store_.get();
  led->record = record_;
  led->alive = [watchdog = watchdog_](const std::string& doing) {
    watchdog->sign("supervisor: " + doing);
  };
  led->casting = casting_;
  if (casting_ && !rounds().asynchronous()) led->lead = head_lead;
  led->keep_timeline = [this](const schedules::Timeline& timeline) {
    if (auto kept = write_timeline(files_, "runs/" + config_.name + "/timeline.jsonl", timeline);
        !kept)
      warn(kept.error().text);
  };
  return led;
}

actors::Outcome ProcessRun::play(const Surroundings& around) {
  watchdog_ = &around.watchdog;
  watchdog_->sign("it opens its ledger");
  record_ = around.record;
  auto ledger =
      storage::Ledger::open(files_, "runs/" + config_.name + "/ledger", terms_of(config_, setup_));
  if (!ledger) {
    actors::Outcome refused;
    refused.how = actors::Outcome::How::failed;
    refused.why = "the ledger cannot be kept: " + ledger.error().text;
    return refused;
  }
  ledger_ = std::move(*ledger);
  watchdog_->sign("its actors begin");
  store_ = std::make_unique<Store>(*this);
  casting_ = around.casting;
  std::mutex mutex;
  std::optional<actors::Outcome> outcome;
  const auto has_ended = [&] {
    const std::lock_guard lock(mutex);
    return outcome.has_value();
  };
  system_ = std::make_unique<caf::actor_system>(system_config_);
  {
    const auto supervisor = actors::spawn_supervisor(*system_, led(config_, recipe_),
                                                     std::move(start_), [&](actors::Outcome ended) {
                                                       const std::lock_guard lock(mutex);
                                                       outcome = std::move(ended);
                                                       around.bell.ring();
                                                     });
    if (around.led_by) around.led_by(supervisor);
    while (!has_ended()) {
      around.bell.wait();
      if (!has_ended()) actors::rt::post(supervisor, actors::Drain{});
    }
    if (around.led_by) around.led_by({});
  }
  outcome->all_gone = outcome->all_gone && all_gone();
  return std::move(*outcome);
}

/// Waits for all that is left of it, but for no one who is stuck.
bool ProcessRun::all_gone() {
  watchdog_->sign("its actors end");
  system_->await_all_actors_done();
  system_.reset();
  watchdog_->sign("its last checkpoint is written");
  if (!store_->finish()) return false;
  const auto& limits = config_.limits;
  watchdog_->sign("its devices finish what was begun");
  // All threads that compute do what was posted to them, and soon.
  const auto soon = std::chrono::steady_clock::now() + limits.stuck_floor * actors::Allowed().usual;
  if (!actors::finish(executors(), soon)) return false;
  // A device that has failed cannot be closed.
  return std::ranges::none_of(executors(),
                              [](const auto* executor) { return executor->fault().has_value(); });
}

std::vector<actors::LinkedDevice*> ProcessRun::linked() const {
  std::vector<actors::LinkedDevice*> all;
  for (const auto& device : linked_) all.push_back(device.get());
  return all;
}

std::vector<actors::Executor*> ProcessRun::executors() const {
  std::vector<actors::Executor*> here;
  for (const auto& device : devices_)
    if (device) here.push_back(device.get());
  if (reader_) here.push_back(reader_.get());
  return here;
}

}  // namespace troupe::apps
