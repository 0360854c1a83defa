#include "config/run_config.h"

#include <algorithm>
#include <cassert>

#include "config/rate_changes.h"
#include "config/read_tree.h"
#include "config/schema.h"

namespace troupe::config {
namespace {

RunConfig::Model read_model(const TreeReader& tree) {
  RunConfig::Model model;
  model.kind = tree.text("model.kind");
  model.init = tree.text("model.init");
  model.options = tree.value("model");
  std::erase_if(*model.options.map(),
                [](const auto& entry) { return entry.key == "kind" || entry.key == "init"; });
  return model;
}

models::OptimizerConfig read_optimizer(const TreeReader& tree) {
  using Kind = models::OptimizerConfig::Kind;
  using Rate = models::LearningRate::Kind;
  using Form = models::OptimizerConfig::MomentumForm;
  models::OptimizerConfig optimizer;
  optimizer.kind = tree.choice<Kind>("optimizer.kind", {{"sgd", Kind::sgd},
                                                        {"adam", Kind::adam},
                                                        {"adamw", Kind::adamw},
                                                        {"nadamw", Kind::nadamw},
                                                        {"muon", Kind::muon}});
  optimizer.rate.kind = tree.choice<Rate>(
      "optimizer.schedule.kind",
      {{"constant", Rate::constant}, {"linear", Rate::linear}, {"cosine", Rate::cosine}});
  optimizer.rate.lr = tree.number("optimizer.lr");
  optimizer.rate.warmup_steps = tree.integer("optimizer.schedule.warmup_steps");
  optimizer.rate.total_steps =
      tree.count("optimizer.schedule.total_steps").value_or(tree.integer("train.steps"));
  optimizer.rate.min_lr = tree.number("optimizer.schedule.min_lr");
  // agreement.cpp reports text that cannot be read.
  if (tree.has("optimizer.changes"))
    if (auto changes = parse_rate_changes(*tree.value("optimizer.changes").text()))
      optimizer.rate.changes = std::move(*changes);
  if (tree.has("optimizer.momentum")) {
    optimizer.momentum = tree.number("optimizer.momentum");
    optimizer.nesterov = tree.boolean("optimizer.nesterov");
  }
  if (tree.has("optimizer.momentum_form"))
    optimizer.momentum_form = tree.choice<Form>(
        "optimizer.momentum_form", {{"pytorch", Form::pytorch}, {"sutskever", Form::sutskever}});
  if (tree.has("optimizer.betas")) {
    const auto& betas = *tree.value("optimizer.betas").list();
    optimizer.beta1 = betas[0].number();
    optimizer.beta2 = betas[1].number();
    optimizer.eps = tree.number("optimizer.eps");
  }
  optimizer.weight_decay = tree.number("optimizer.weight_decay");
  if (tree.has("optimizer.clip_norm")) optimizer.clip_norm = tree.number("optimizer.clip_norm");
  return optimizer;
}

RunConfig::Stages read_stages(const Value& value) {
  RunConfig::Stages stages;
  if (const auto* count = value.integer()) stages.count = static_cast<int>(*count);
  if (const auto* list = value.list()) {
    for (const auto& boundary : *list)
      stages.boundaries.push_back(static_cast<int>(*boundary.integer()));
    stages.count = static_cast<int>(list->size()) - 1;
  }
  return stages;
}

schedules::Recompute read_recompute(const Value& value) {
  schedules::Recompute recompute;
  if (const auto* everywhere = value.boolean()) recompute.everywhere = *everywhere;
  if (const auto* list = value.list())
    for (const auto& stage : *list) recompute.by_stage.push_back(*stage.boolean());
  return recompute;
}

RunConfig::Pipeline read_pipeline(const TreeReader& tree) {
  RunConfig::Pipeline pipeline;
  pipeline.schedule = tree.text("pipeline.schedule");
  pipeline.stages = read_stages(tree.value("pipeline.stages"));
  pipeline.chunks = tree.small("pipeline.chunks");
  if (const auto replicas = tree.count("pipeline.replicas"))
    pipeline.replicas = static_cast<int>(*replicas);
  pipeline.tensor = tree.small("pipeline.tensor");
  pipeline.recompute = read_recompute(tree.value("pipeline.recompute"));
  if (tree.text("pipeline.memory") != "auto")
    pipeline.memory = *parse_bytes(tree.text("pipeline.memory"));
  return pipeline;
}

void read_gap(const TreeReader& tree, RunConfig::Staleness& staleness) {
  using S = RunConfig::Staleness;
  staleness.gap_penalty = tree.choice<S::GapPenalty>("staleness.gap_penalty",
                                                     {{"none", S::GapPenalty::none},
                                                      {"elementwise", S::GapPenalty::elementwise},
                                                      {"tensor_norm", S::GapPenalty::tensor_norm}});
  staleness.gap_source = tree.choice<S::GapSource>(
      "staleness.gap_source",
      {{"stash", S::GapSource::stash}, {"last_update", S::GapSource::last_update}});
  staleness.gap_statistics = tree.choice<S::GapStatistics>(
      "staleness.gap_statistics",
      {{"corrected", S::GapStatistics::corrected}, {"ftpipe", S::GapStatistics::ftpipe}});
  staleness.gap_scale = tree.choice<S::GapScale>(
      "staleness.gap_scale",
      {{"step_ema", S::GapScale::step_ema}, {"max_lr", S::GapScale::max_lr}});
  staleness.gap_factor = tree.choice<S::GapFactor>(
      "staleness.gap_factor",
      {{"none", S::GapFactor::none}, {"scalar", S::GapFactor::scalar}, {"max", S::GapFactor::max}});
}

RunConfig::Staleness read_staleness(const TreeReader& tree) {
  using S = RunConfig::Staleness;
  S staleness;
  staleness.predict =
      tree.choice<S::Predict>("staleness.predict", {{"none", S::Predict::none},
                                                    {"msnag", S::Predict::msnag},
                                                    {"aggmsnag", S::Predict::aggmsnag},
                                                    {"linear", S::Predict::linear}});
  // No replica has the whole gradient that the others would count on.
  if (staleness.predict == S::Predict::aggmsnag && tree.count("pipeline.replicas").value_or(1) > 1)
    staleness.predict = S::Predict::msnag;
  staleness.linearize_at = tree.choice<S::LinearizeAt>(
      "staleness.linearize_at", {{"current", S::LinearizeAt::current},
                                 {"forward", S::LinearizeAt::forward},
                                 {"extrapolated", S::LinearizeAt::extrapolated}});
  read_gap(tree, staleness);
  staleness.second_moment = tree.choice<S::SecondMoment>(
      "staleness.second_moment",
      {{"guarded", S::SecondMoment::guarded}, {"frozen", S::SecondMoment::frozen}});
  staleness.nag = tree.boolean("staleness.nag");
  staleness.nag_return = tree.boolean("staleness.nag_return");
  staleness.clip = tree.choice<S::Clip>(
      "staleness.clip",
      {{"local", S::Clip::local}, {"local_sqrt_share", S::Clip::local_sqrt_share}});
  staleness.lag = tree.text("pipeline.schedule") == "pipedream-2bw" ? 1 : 0;
  staleness.synchronous_steps = tree.integer("staleness.synchronous_steps");
  staleness.anneal_steps = tree.integer("staleness.anneal_steps");
  staleness.drift_memory = tree.number("staleness.drift_memory");
  staleness.delay_compensation = tree.number("staleness.delay_compensation");
  staleness.spike_compensation = tree.boolean("staleness.spike_compensation");
  if (const auto every = tree.count("staleness.step_every"))
    staleness.step_every = static_cast<int>(*every);
  staleness.flush_every = tree.count("staleness.flush_every");
  return staleness;
}

RunConfig::Parallel read_parallel(const TreeReader& tree) {
  using Exchange = RunConfig::Parallel::Exchange;
  RunConfig::Parallel parallel;
  if (const auto groups = tree.count("parallel.groups"))
    parallel.groups = static_cast<int>(*groups);
  parallel.exchange = tree.choice<Exchange>(
      "parallel.exchange", {{"all_to_all", Exchange::all_to_all}, {"server", Exchange::server}});
  return parallel;
}

RunConfig::Precision read_precision(const TreeReader& tree) {
  using Compute = RunConfig::Precision::Compute;
  RunConfig::Precision precision;
  if (tree.text("precision.compute") != "auto")
    precision.compute =
        tree.choice<Compute>("precision.compute", {{"fp32", Compute::fp32},
                                                   {"tf32", Compute::tf32},
                                                   {"fp16", Compute::fp16},
                                                   {"fp16-chain", Compute::fp16_chain},
                                                   {"fp16-gpu", Compute::fp16_gpu},
                                                   {"bf16", Compute::bf16},
                                                   {"bf16-pairs", Compute::bf16_pairs},
                                                   {"bf16-blocks", Compute::bf16_blocks},
                                                   {"bf16-gpu", Compute::bf16_gpu}});
  precision.loss_scale_power = tree.small("precision.loss_scale.initial_power");
  precision.growth_interval = tree.integer("precision.loss_scale.growth_interval");
  return precision;
}

RunConfig::Elastic read_elastic(const TreeReader& tree) {
  RunConfig::Elastic elastic;
  const Value& nodes = tree.value("elastic.nodes");
  if (const auto* count = nodes.integer())
    elastic.nodes = {static_cast<int>(*count), static_cast<int>(*count)};
  else
    elastic.nodes = *parse_range(*nodes.text());
  elastic.copies = tree.small("elastic.copies");
  return elastic;
}

RunConfig::Train read_train(const TreeReader& tree) {
  RunConfig::Train train;
  train.steps = tree.integer("train.steps");
  if (tree.has("train.eval_every")) train.eval_every = tree.integer("train.eval_every");
  train.eval_batches = tree.integer("train.eval_batches");
  if (tree.has("train.export")) train.export_path = tree.text("train.export");
  if (const auto threads = tree.count("train.threads")) train.threads = static_cast<int>(*threads);
  using Device = RunConfig::Train::Device;
  train.device =
      tree.choice<Device>("train.device", {{"cpu", Device::cpu}, {"cuda", Device::cuda}});
  train.graph_rows = tree.integer("train.graph_rows");
  return train;
}

RunConfig::Limits read_limits(const TreeReader& tree) {
  RunConfig::Limits limits;
  limits.silence_floor = tree.duration("limits.silence_floor");
  limits.reconnect_patience = tree.duration("limits.reconnect_patience");
  limits.stuck_floor = tree.duration("limits.stuck_floor");
  limits.start_patience = tree.duration("limits.start_patience");
  limits.gather_patience = tree.duration("limits.gather_patience");
  limits.prepare_patience = tree.duration("limits.prepare_patience");
  limits.load_patience = tree.duration("limits.load_patience");
  limits.head_patience = tree.duration("limits.head_patience");
  limits.suspend_patience = tree.duration("limits.suspend_patience");
  limits.save_patience = tree.duration("limits.save_patience");
  limits.futile_epochs = tree.small("limits.futile_epochs");
  limits.strikes = tree.small("limits.strikes");
  limits.strike_window = tree.duration("limits.strike_window");
  return limits;
}

std::string with_name(std::string path, const std::string& name) {
  constexpr std::string_view placeholder = "{name}";
  for (auto at = path.find(placeholder); at != path.npos; at = path.find(placeholder, at)) {
    path.replace(at, placeholder.size(), name);
    at += name.size();
  }
  return path;
}

}  // namespace

RunConfig read_run_config(const Value& complete) {
  const TreeReader tree(complete);
  RunConfig config;
  config.name = tree.text("name");
  config.seed = static_cast<std::uint64_t>(tree.integer("seed"));
  config.exactness = tree.choice<RunConfig::Exactness>(
      "exactness",
      {{"bits", RunConfig::Exactness::bits}, {"samples", RunConfig::Exactness::samples}});
  config.model = read_model(tree);
  config.data.train = tree.text("data.train");
  if (tree.has("data.validate")) config.data.validate = tree.text("data.validate");
  config.data.order = tree.choice<RunConfig::Data::Order>(
      "data.order", {{"shuffled", RunConfig::Data::Order::shuffled},
                     {"sequential", RunConfig::Data::Order::sequential}});
  config.batch = {tree.integer("batch.global"), tree.count("batch.micro")};
  config.optimizer = read_optimizer(tree);
  config.pipeline = read_pipeline(tree);
  config.staleness = read_staleness(tree);
  config.parallel = read_parallel(tree);
  config.precision = read_precision(tree);
  config.elastic = read_elastic(tree);
  config.checkpoint = {with_name(tree.text("checkpoint.dir"), config.name),
                       *parse_interval(tree.text("checkpoint.every")),
                       tree.small("checkpoint.keep")};
  config.train = read_train(tree);
  config.limits = read_limits(tree);
  config.log.every = tree.integer("log.every");
  config.log.staleness = tree.boolean("log.staleness");
  return config;
}

bool RunConfig::Model::vocabulary_from_data() const {
  const Value* vocabulary = options.find("vocab");
  return vocabulary && vocabulary->text();
}

Value RunConfig::Model::options_for(std::int64_t vocabulary) const {
  Value filled = options;
  if (vocabulary_from_data()) filled.set("vocab", vocabulary);
  return filled;
}

std::int64_t micro_batches(const RunConfig& config, std::int64_t micro) {
  return config.batch.global / micro;
}

int reduction_groups(const RunConfig& config, std::int64_t micro_batches) {
  assert(micro_batches > 0);
  if (config.parallel.groups)
    return static_cast<int>(std::min<std::int64_t>(*config.parallel.groups, micro_batches));
  int groups = static_cast<int>(std::min<std::int64_t>(8, micro_batches));
  while (micro_batches % groups != 0) --groups;
  return groups;
}

}  // namespace troupe::config
