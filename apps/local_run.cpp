#include "apps/local_run.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "config/recipe.h"
#include "storage/match.h"
#include "storage/safetensors.h"

namespace troupe::apps {
namespace {

// A save that takes longer than this is stuck, and the end of a run says so instead of hanging.
constexpr auto save_patience = std::chrono::minutes(10);

constexpr std::size_t recent_steps = 20;

Tensor copy_of(Stream& stream, const Tensor& tensor) {
  Tensor copy = stream.make(tensor.shape(), tensor.dtype());
  std::memcpy(copy.raw(), tensor.raw(), tensor.bytes());
  return copy;
}

models::UnitRange all_units(const models::Model& model) {
  return {0, static_cast<int>(model.units.size())};
}

models::StageOptions stage_options(const config::RunConfig& config, kernels::Precision precision) {
  return {.precision = precision,
          .keep = config.pipeline.recompute ? models::Keep::input : models::Keep::everything,
          .seed = config.seed};
}

storage::SampleOrder order_of(const config::RunConfig& config, std::int64_t count) {
  using Order = config::RunConfig::Data::Order;
  const auto kind = config.data.order == Order::shuffled ? storage::SampleOrder::Kind::shuffled
                                                         : storage::SampleOrder::Kind::sequential;
  return {kind, config.seed, count};
}

Result<std::vector<NamedTensor>> load_all(const std::vector<storage::TensorView>& views,
                                          MemoryPool& memory) {
  std::vector<NamedTensor> tensors;
  for (const auto& view : views) {
    auto tensor = storage::load(view, memory);
    if (!tensor) return within(view.name, tensor.error());
    tensors.push_back({view.name, std::move(*tensor)});
  }
  return tensors;
}

double seconds_between(std::chrono::steady_clock::time_point a,
                       std::chrono::steady_clock::time_point b) {
  return std::chrono::duration<double>(b - a).count();
}

}  // namespace

LocalRun::LocalRun(const config::Loaded& loaded, RunSetup setup, Recorder& recorder)
    : config_(loaded.config),
      recipe_(config::recipe_of(loaded.tree)),
      setup_(std::move(setup)),
      recorder_(recorder),
      stream_(memory_, config_.train.threads.value_or(
                           static_cast<int>(std::max(1u, std::thread::hardware_concurrency())))),
      stage_(setup_.model, all_units(setup_.model), stage_options(config_, setup_.precision)),
      optimizer_(config_.optimizer, stage_.parameters(), stage_.buffers(), setup_.precision),
      batches_(*setup_.train, order_of(config_, setup_.train->count()), config_.batch.global,
               setup_.micro),
      saved_at_(std::chrono::steady_clock::now()) {
  prepare_computing_thread();
  writer_ = std::make_unique<storage::CheckpointWriter>(
      *setup_.files, config_.checkpoint.directory, config_.checkpoint.keep,
      [this](const storage::SaveOutcome& outcome) {
        if (!outcome.saved) {
          save_failed_ = true;
          return warn("step " + std::to_string(outcome.step) +
                      " was not saved: " + outcome.saved.error().text +
                      "; training goes on, and the last good checkpoint stays");
        }
        save_failed_ = false;
        Value saved = event("checkpoint.saved", config_.name);
        saved.set("step", outcome.step);
        saved.set("directory", outcome.saved->directory);
        saved.set("weights", to_string(outcome.saved->manifest.weights_digest));
        recorder_.record(saved);
        if (!outcome.pruned)
          warn("old checkpoints were not removed: " + outcome.pruned.error().text);
      });
}

LocalRun::~LocalRun() = default;

void LocalRun::warn(const std::string& text) {
  Value warning = event("warn", config_.name);
  warning.set("text", text);
  recorder_.record(warning);
}

Status LocalRun::start() {
  if (config_.model.init == "random") {
    weights_ = optimizer_.initial(stream_, config_.seed);
    return Done{};
  }
  const auto file = storage::Safetensors::open(*setup_.files, config_.model.init);
  if (!file) return within("model.init", file.error());
  auto tensors = load_all(file->tensors(), memory_);
  if (!tensors) return within("model.init: " + config_.model.init, tensors.error());
  auto weights = optimizer_.from(stream_, *tensors, 0);
  if (!weights) return within("model.init: " + config_.model.init, weights.error());
  weights_ = std::move(*weights);
  return Done{};
}

Status LocalRun::resume() {
  auto found = storage::open_newest_checkpoint(*setup_.files, config_.checkpoint.directory);
  if (!found) return found.error();
  if (!*found) {
    warn("there is no checkpoint below " + config_.checkpoint.directory +
         " yet: starting at step 0");
    return start();
  }
  for (const auto& skipped : (*found)->skipped)
    warn(skipped.directory + " is damaged and was passed over: " + skipped.why);
  const storage::Checkpoint& checkpoint = (*found)->checkpoint;
  const auto& manifest = checkpoint.manifest();
  if (auto same = storage::match_model(manifest, setup_.model_description); !same)
    return within(checkpoint.directory(), same.error());
  if (auto same = storage::match_recipe(manifest, recipe_); !same)
    return within(checkpoint.directory(), same.error());
  auto tensors = load_all(checkpoint.weights(), memory_);
  if (!tensors) return within(checkpoint.directory(), tensors.error());
  auto weights = optimizer_.from(stream_, *tensors, manifest.step);
  if (!weights) return within(checkpoint.directory(), weights.error());
  auto moments = load_all(checkpoint.optimizer(), memory_);
  if (!moments) return within(checkpoint.directory(), moments.error());
  if (auto restored = optimizer_.restore(stream_, *moments, manifest.step); !restored)
    return within(checkpoint.directory(), restored.error());
  weights_ = std::move(*weights);
  step_ = saved_step_ = manifest.step;
  return Done{};
}

double LocalRun::recent_loss() const {
  return std::accumulate(recent_losses_.begin(), recent_losses_.end(), 0.0) /
         static_cast<double>(std::max<std::size_t>(1, recent_losses_.size()));
}

Result<LocalRun::StepResult> LocalRun::take_step() {
  const int micro_batches = batches_.per_step();
  const auto targets = config_.batch.global * setup_.train->shape().target.count();
  stage_.begin_step(
      models::Share::whole(micro_batches, config::reduction_groups(config_, micro_batches)),
      targets);
  double loss = 0;
  for (int m = 0; m < micro_batches; ++m) {
    auto batch = batches_.read(memory_, step_, m);
    if (!batch) return batch.error();
    const models::MicroBatch id{step_, m, m * setup_.micro};
    const models::Losses losses{
        stage_.forward(stream_, id, *weights_, std::move(batch->input), std::move(batch->target))};
    const double mean = losses.mean();
    if (!std::isfinite(mean))
      return Error{"step " + std::to_string(step_ + 1) + ", micro-batch " + std::to_string(m) +
                   ": the loss is not a number any more"};
    loss += mean;
    if (config_.pipeline.recompute) stage_.recompute(stream_, m, *weights_);
    stage_.backward(stream_, m, *weights_, {});
  }
  auto gradients = models::join(stream_, {stage_.take_gradients()});
  const double norm = models::global_norm(optimizer_.squared_norms(stream_, gradients));
  if (!std::isfinite(norm))
    return Error{"step " + std::to_string(step_ + 1) + ": the gradient is not finite any more"};
  weights_ = optimizer_.step(stream_, weights_, std::move(gradients), norm);
  ++step_;
  recent_losses_.push_back(loss / micro_batches);
  if (recent_losses_.size() > recent_steps) recent_losses_.pop_front();
  return StepResult{loss / micro_batches, norm};
}

Result<double> LocalRun::evaluate() {
  const storage::SampleOrder order(storage::SampleOrder::Kind::sequential, 0,
                                   setup_.validate->count());
  const storage::MicroBatches batches(*setup_.validate, order, config_.batch.global, setup_.micro);
  double sum = 0;
  std::int64_t count = 0;
  for (std::int64_t step = 0; step < config_.train.eval_batches; ++step) {
    for (int m = 0; m < batches.per_step(); ++m) {
      auto batch = batches.read(memory_, step, m);
      if (!batch) return batch.error();
      const models::Losses losses{
          stage_.evaluate(stream_, *weights_, std::move(batch->input), std::move(batch->target))};
      sum += losses.mean();
      ++count;
    }
  }
  return sum / static_cast<double>(count);
}

Value LocalRun::step_event(const StepResult& result, double seconds) const {
  const std::int64_t samples = step_ * config_.batch.global;
  const double rate = static_cast<double>(config_.batch.global) / seconds;
  Value step = event("step", config_.name);
  step.set("step", step_);
  step.set("loss", result.loss);
  step.set("grad_norm", result.gradient_norm);
  step.set("lr", config_.optimizer.rate.at(step_ - 1));
  step.set("samples", samples);
  const std::int64_t length = setup_.of_tokens() ? setup_.train->shape().input[0] : 1;
  if (setup_.of_tokens()) step.set("tokens", samples * length);
  step.set("seconds", seconds);
  step.set("rate", rate * static_cast<double>(length));
  step.set("memory", static_cast<std::int64_t>(memory_.counters().peak_in_use));
  return step;
}

storage::CheckpointContent LocalRun::snapshot() {
  storage::CheckpointContent content;
  content.step = step_;
  content.samples = step_ * config_.batch.global;
  content.recipe = recipe_;
  content.model = setup_.model_description;
  content.weights = optimizer_.named(*weights_);
  // Weights never change; moments do with the next step, so the writer gets a copy.
  for (const auto& [name, tensor] : optimizer_.state())
    content.optimizer.push_back({name, copy_of(stream_, tensor)});
  saved_step_ = step_;
  saved_at_ = std::chrono::steady_clock::now();
  return content;
}

bool LocalRun::save_is_due() const {
  const auto& every = config_.checkpoint.every;
  if (every.steps > 0) return step_ % every.steps == 0;
  return std::chrono::steady_clock::now() - saved_at_ >= every.time;
}

void LocalRun::save_in_background() {
  if (auto accepted = writer_->submit(snapshot()); !accepted)
    warn("step " + std::to_string(step_) + " is not saved: " + accepted.error().text);
}

Status LocalRun::save_and_wait() {
  if (auto idle = writer_->wait_until_idle(save_patience); !idle) return idle.error();
  if (saved_step_ == step_ && !save_failed_) return Done{};
  if (auto accepted = writer_->submit(snapshot()); !accepted) return accepted.error();
  if (auto idle = writer_->wait_until_idle(save_patience); !idle) return idle.error();
  if (save_failed_) return Error{"the last checkpoint could not be written"};
  return Done{};
}

Status LocalRun::export_weights() const {
  const auto& path = *config_.train.export_path;
  const std::string unfinished = path + ".part";
  if (setup_.files->exists(unfinished))
    if (auto removed = setup_.files->remove(unfinished); !removed) return removed.error();
  std::vector<storage::TensorView> views;
  const auto tensors = optimizer_.named(*weights_);
  views.reserve(tensors.size());
  for (const auto& [name, tensor] : tensors) views.push_back(storage::view(name, tensor));
  storage::sort_as_ecosystem(views);
  if (auto written = storage::write_safetensors(*setup_.files, unfinished, views); !written)
    return written.error();
  return setup_.files->rename(unfinished, path);
}

Ending LocalRun::train(const std::atomic<bool>& stop) {
  auto before = std::chrono::steady_clock::now();
  while (step_ < config_.train.steps && !stop) {
    const auto result = take_step();
    if (!result) {
      // What was accepted for saving is still good: it is older than the failure.
      (void)writer_->wait_until_idle(save_patience);
      return {ExitCode::failed, result.error().text};
    }
    const auto now = std::chrono::steady_clock::now();
    recorder_.record(step_event(*result, seconds_between(before, now)));
    before = now;
    const bool last = step_ == config_.train.steps;
    const auto& eval_every = config_.train.eval_every;
    if (setup_.validate && (last || (eval_every && step_ % *eval_every == 0))) {
      const auto loss = evaluate();
      if (!loss) return {ExitCode::failed, loss.error().text};
      Value eval = event("eval", config_.name);
      eval.set("step", step_);
      eval.set("loss", *loss);
      recorder_.record(eval);
      before = std::chrono::steady_clock::now();
    }
    if (!last && save_is_due()) save_in_background();
  }
  if (auto saved = save_and_wait(); !saved) return {ExitCode::failed, saved.error().text};
  if (step_ < config_.train.steps) return {ExitCode::preempted, {}};
  if (config_.train.export_path)
    if (auto exported = export_weights(); !exported)
      return {ExitCode::failed, within("train.export", exported.error()).text};
  return {ExitCode::done, {}};
}

}  // namespace troupe::apps
