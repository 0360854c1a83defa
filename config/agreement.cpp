#include "config/agreement.h"

#include <algorithm>
#include <array>
#include <functional>
#include <optional>
#include <utility>
#include <variant>

#include "config/model_kinds.h"
#include "config/own_model.h"
#include "config/rate_changes.h"
#include "config/schema.h"
#include "config/toml/toml.h"
#include "core/mixture.h"
#include "core/text.h"
#include "core/units.h"
#include "schedules/generators/registry.h"

namespace troupe::config {
namespace {

using std::to_string;

// The rules of a kind do not depend on the number of tokens in the data.
constexpr std::int64_t stand_in_vocabulary = 256;
// A larger schedule is generated when it is needed.
constexpr std::int64_t most_passes_tried = 1 << 14;

Diagnostic at_first(const Examined& examined, std::initializer_list<std::string_view> keys) {
  Diagnostic diagnostic{.key = std::string(*keys.begin())};
  for (const auto key : keys)
    if (const Value* value = value_at(examined.tree, key); value && value->position.line > 0) {
      diagnostic.position = value->position;
      break;
    }
  return diagnostic;
}

std::string in_quotes(std::string_view text) { return to_toml(Value(text)); }

void check_names(const Examined& examined) {
  const RunConfig& config = examined.config;
  constexpr std::string_view legal =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
  constexpr std::size_t longest = 64;
  if (config.name.empty() || config.name.size() > longest || config.name.front() == '.' ||
      config.name.find_first_not_of(legal) != config.name.npos)
    examined.error({"name"}, "name = " + in_quotes(config.name) +
                                 " is not a valid name; use up to 64 letters, digits, dots, dashes "
                                 "and underscores, and no leading dot");
  const auto& directory = config.checkpoint.directory;
  if (directory.empty() || directory.find_first_of("{}") != directory.npos)
    examined.error(
        {"checkpoint.dir"},
        "checkpoint.dir = " + in_quotes(*value_at(examined.tree, "checkpoint.dir")->text()) +
            " is not a valid path; {name} is the only placeholder");
  const auto wants_safetensors = [&](std::string_view key, const std::string& path) {
    if (!path.ends_with(".safetensors"))
      examined.error({key},
                     std::string(key) + " = " + in_quotes(path) + " does not end in .safetensors");
  };
  const std::string& init = config.model.init;
  if (init != "random" && !(init.starts_with("run:") && init.size() > 4) &&
      !init.ends_with(".safetensors") && init.find('/') == init.npos)
    examined.error({"model.init"}, "model.init = " + in_quotes(init) +
                                       " is neither random, nor run:NAME, nor a file that ends in "
                                       ".safetensors, nor a folder such as ./gpt2");
  if (config.train.export_path) wants_safetensors("train.export", *config.train.export_path);
}

void check_batch(const Examined& examined) {
  const auto& [global, micro] = examined.config.batch;
  // "auto" becomes a number that divides them.
  const std::int64_t replicas = examined.config.pipeline.replicas.value_or(1);
  const std::int64_t piece = micro.value_or(1) * replicas;
  if (global % piece != 0) {
    const std::string by = micro ? "batch.micro = " + to_string(*micro) +
                                       " x replicas = " + to_string(replicas) +
                                       " (= " + to_string(piece) + ")"
                                 : "pipeline.replicas = " + to_string(replicas);
    examined.error({"batch.global", "batch.micro", "pipeline.replicas"},
                   "batch.global = " + to_string(global) + " is not divisible by " + by +
                       "; nearest: " + nearest_multiples(global, piece));
    return;
  }
  if (!micro) return;
  const std::int64_t passes = global / *micro;
  const auto groups = examined.config.parallel.groups;
  if (groups && *groups > passes)
    examined.error({"parallel.groups"},
                   "parallel.groups = " + to_string(*groups) + ", but batch.global = " +
                       to_string(global) + " / batch.micro = " + to_string(*micro) + " makes " +
                       to_string(passes) + " micro-batches; use at most " + to_string(passes));
  else if (const auto possible = reduction_groups(examined.config, passes); replicas > possible)
    examined.error({"pipeline.replicas", "parallel.groups"},
                   "pipeline.replicas = " + to_string(replicas) + ", but gradients are summed in " +
                       to_string(possible) +
                       " groups and a replica needs at least one; set parallel.groups = " +
                       to_string(replicas) + " or more, up to " + to_string(passes));
}

/// Returns a few names of parameters, for a message.
std::string some_of(const std::vector<std::string>& names) {
  constexpr std::size_t most = 4;
  std::string text;
  // Names of one layer stand together, so they are taken from all over the model.
  const std::size_t count = std::min(most, names.size());
  for (std::size_t i = 0; i < count; ++i)
    text +=
        (i == 0 ? "" : ", ") + names[i * (names.size() - 1) / std::max<std::size_t>(1, count - 1)];
  return text;
}

/// A group that takes no parameter is a mistake in its patterns.
void check_groups(const Examined& examined, const models::Model& model) {
  const auto& groups = examined.config.optimizer.groups;
  if (groups.empty()) return;
  const auto names = models::parameter_names(model);
  const auto taken = models::taken_by(groups, names);
  const Value::List& tables = *value_at(examined.tree, "optimizer.group")->list();
  bool trains = !taken.back().empty();
  for (std::size_t i = 0; i < groups.size(); ++i) trains |= !groups[i].frozen && !taken[i].empty();
  if (!trains)
    examined.error({"optimizer.group"},
                   "the frozen groups of optimizer.group take all parameters of the model; leave "
                   "some to train");
  for (std::size_t i = 0; i < groups.size(); ++i) {
    if (!taken[i].empty()) continue;
    const bool is_late = std::ranges::any_of(
        names, [&](const std::string& name) { return groups[i].matches(name); });
    const std::string what =
        "optimizer.group " + to_string(i + 1) + " with match = " +
        to_toml(Value(Value::List(groups[i].match.begin(), groups[i].match.end())));
    Diagnostic diagnostic{.key = "optimizer.group", .position = tables[i].position};
    diagnostic.message =
        is_late ? what +
                      " takes no parameter: earlier groups take all that it matches; write it "
                      "before them"
                : what + " matches no parameter; the model has " + to_string(names.size()) +
                      ", such as " + some_of(names);
    examined.found.add(std::move(diagnostic));
  }
}

/// Returns the number of units; nothing if the keys of the model contradict each other.
std::optional<std::int64_t> check_model(const Examined& examined) {
  const auto& model = examined.config.model;
  const auto kind = kind_of(model.table_for(stand_in_vocabulary));
  if (!kind) {
    examined.error({"model.kind"}, kind.error().text);
    return {};
  }
  const auto built =
      kind->expand(model.options_for(stand_in_vocabulary), examined.config.pipeline.cuts);
  if (const auto* fault = std::get_if<models::Fault>(&built)) {
    if (!fault->at.path.empty()) {
      examined.found.add(diagnostic_of(*fault, examined.sources));
      return {};
    }
    // "model.width = 50 is not divisible ...": the first word is the key.
    const std::string& why = fault->message;
    examined.error({std::string_view(why).substr(0, why.find(' ')), "model.kind"}, why);
    return {};
  }
  for (const std::string key : {"heads", "kv_heads"}) {
    const Value* heads = model.options.find(key);
    const int shards = examined.config.pipeline.tensor;
    if (heads && heads->integer() && *heads->integer() % shards != 0)
      examined.error({"pipeline.tensor", "model." + key},
                     "model." + key + " = " + to_string(*heads->integer()) +
                         " is not divisible by pipeline.tensor = " + to_string(shards) +
                         "; nearest: " + nearest_multiples(*heads->integer(), shards));
  }
  check_groups(examined, std::get<models::Model>(built));
  return static_cast<std::int64_t>(std::get<models::Model>(built).units.size());
}

void check_stages(const Examined& examined, std::int64_t units) {
  const auto& [schedule, stages, cuts, chunks, replicas, tensor, recompute, memory] =
      examined.config.pipeline;
  const Value* key = examined.config.model.options.find("layers");
  const bool has_key = key && key->integer() && *key->integer() == units;
  const std::string what = cuts == models::Cuts::sublayers ? "sublayer" : "layer";
  const std::string model = has_key ? "model.layers = " + to_string(units)
                                    : "the model has " + to_string(units) + " " + what + "s";
  if (!stages.boundaries.empty() && stages.boundaries.back() != units) {
    examined.error({"pipeline.stages"},
                   "pipeline.stages ends at " + to_string(stages.boundaries.back()) + ", but " +
                       model + "; the boundaries begin with 0 and end with " + to_string(units));
    return;
  }
  if (!stages.count) return;
  if (*stages.count > units) {
    examined.error({"pipeline.stages"}, "pipeline.stages = " + to_string(*stages.count) + ", but " +
                                            model + " and a stage needs at least one " + what +
                                            "; use at most " + to_string(units));
    return;
  }
  if (*stages.count % chunks != 0)
    examined.error({"pipeline.chunks", "pipeline.stages"},
                   "pipeline.stages = " + to_string(*stages.count) +
                       " is not divisible by pipeline.chunks = " + to_string(chunks) +
                       "; nearest: " + nearest_multiples(*stages.count, chunks));
}

/// Recomputing changes the time of a stage, and so the best boundaries.
void check_recompute(const Examined& examined) {
  const auto& again = examined.config.pipeline.recompute.by_stage;
  const auto& stages = examined.config.pipeline.stages;
  if (again.empty()) return;
  if (stages.boundaries.empty())
    examined.error({"pipeline.recompute", "pipeline.stages"},
                   "pipeline.recompute has an entry for each stage, but pipeline.stages does not "
                   "say which layers these are; write boundaries such as pipeline.stages = [0, 3, "
                   "6], which `troupe plan` shows");
  else if (again.size() != static_cast<std::size_t>(*stages.count))
    examined.error({"pipeline.recompute", "pipeline.stages"},
                   "pipeline.recompute has " + to_string(again.size()) +
                       " entries, but there are " + to_string(*stages.count) +
                       " stages; it must have one for each");
}

bool is_file(std::string_view schedule) { return schedule.find_first_of("./\\") != schedule.npos; }

void check_schedule(const Examined& examined) {
  const auto& pipeline = examined.config.pipeline;
  const auto& name = pipeline.schedule;
  if (name == "auto" || is_file(name)) return;
  if (!schedules::find_schedule(name)) {
    std::vector<std::string_view> names{"auto"};
    for (const auto& known : schedules::named_schedules()) names.push_back(known.name);
    const auto near = nearest(name, names);
    examined.error({"pipeline.schedule"},
                   "pipeline.schedule = " + in_quotes(name) +
                       " is neither a schedule of `troupe schedule --list` nor a file",
                   near.empty() ? "" : "did you mean '" + std::string(near) + "'?");
    return;
  }
  const auto& [global, micro] = examined.config.batch;
  if (!pipeline.stages.count || !micro) return;
  const std::int64_t passes = global / (*micro * pipeline.replicas.value_or(1));
  if (passes < 1 || *pipeline.stages.count * passes > most_passes_tried) return;
  const auto made = schedules::generate(name, {.stages = *pipeline.stages.count,
                                               .micro_batches = static_cast<int>(passes),
                                               .chunks = pipeline.chunks});
  if (!made)
    examined.error({"pipeline.schedule", "pipeline.stages", "pipeline.chunks"},
                   "pipeline.schedule: " + made.error().text);
}

void check_learning_rate(const Examined& examined) {
  const auto& optimizer = examined.config.optimizer;
  const auto& rate = optimizer.rate;
  // If total_steps follows train.steps, a short trial may end during its warm-up.
  const bool is_auto = value_at(examined.tree, "optimizer.schedule.total_steps")->text();
  if (rate.kind != models::LearningRate::Kind::constant && !is_auto &&
      rate.warmup_steps >= rate.total_steps)
    examined.error({"optimizer.schedule.warmup_steps", "optimizer.schedule.total_steps"},
                   "optimizer.schedule.warmup_steps = " + to_string(rate.warmup_steps) +
                       " is not less than optimizer.schedule.total_steps = " +
                       to_string(rate.total_steps) + "; warm up for fewer steps");
  else if (rate.kind == models::LearningRate::Kind::wsd && rate.decay_steps && !is_auto &&
           *rate.decay_steps > rate.total_steps - rate.warmup_steps)
    examined.error(
        {"optimizer.schedule.decay_steps", "optimizer.schedule.total_steps"},
        "optimizer.schedule.decay_steps = " + to_string(*rate.decay_steps) + " is more than the " +
            to_string(rate.total_steps - rate.warmup_steps) +
            " steps between optimizer.schedule.warmup_steps = " + to_string(rate.warmup_steps) +
            " and optimizer.schedule.total_steps = " + to_string(rate.total_steps));
  if (rate.min_lr > rate.lr)
    examined.error({"optimizer.schedule.min_lr", "optimizer.lr"},
                   "optimizer.schedule.min_lr = " + to_toml(Value(rate.min_lr)) +
                       " is more than optimizer.lr = " + to_toml(Value(rate.lr)));
  if (const Value* changes = value_at(examined.tree, "optimizer.changes"))
    if (auto read = parse_rate_changes(*changes->text()); !read)
      examined.error({"optimizer.changes"}, "optimizer.changes: " + read.error().text);
  if (optimizer.nesterov && optimizer.momentum == 0)
    examined.error({"optimizer.nesterov"},
                   "optimizer.nesterov needs a momentum, but optimizer.momentum = 0");
}

void check_data(const Examined& examined) {
  const auto& data = examined.config.data;
  if (data.train.empty() && !data.mix)
    examined.error({"data.train"},
                   "data.train is missing; name the training data, or a mixture of "
                   "several in data.mix");
  if (!data.train.empty() && data.mix)
    examined.error({"data.mix"},
                   "data.mix is in place of data.train, and both are set; leave out "
                   "one of them");
  if (data.mix)
    if (const auto mixture = Mixture::parse(*data.mix); !mixture)
      examined.error({"data.mix"}, "data.mix: " + mixture.error().text);
}

void check_evaluation(const Examined& examined) {
  const auto& train = examined.config.train;
  if (train.eval_every && !examined.config.data.validate)
    examined.error({"train.eval_every"}, "train.eval_every = " + to_string(*train.eval_every) +
                                             ", but data.validate is not set");
  if (train.stop_after && !train.eval_every)
    examined.error({"train.stop_after"},
                   "train.stop_after = " + to_string(*train.stop_after) +
                       " counts evaluations, but train.eval_every is not set");
  if (train.min_improvement > 0 && !train.stop_after)
    examined.error({"train.min_improvement"},
                   "train.min_improvement = " + to_toml(Value(train.min_improvement)) +
                       " has no effect, because train.stop_after is not set");
  const int keep_best = examined.config.checkpoint.keep_best;
  if (keep_best > 0 && !examined.config.data.validate)
    examined.error({"checkpoint.keep_best"}, "checkpoint.keep_best = " + to_string(keep_best) +
                                                 " needs evaluations, but data.validate is not "
                                                 "set");
}

/// A step that is left out must not have changed weights that later passes have read.
void check_spikes(const Examined& examined) {
  const auto& train = examined.config.train;
  const bool skips = train.on_spike == RunConfig::Train::OnSpike::skip;
  if (std::ranges::adjacent_find(train.skip_steps, std::greater_equal()) != train.skip_steps.end())
    examined.error({"train.skip_steps"},
                   "train.skip_steps is not in order; write each step once, the lowest first");
  if (!skips && train.skip_steps.empty()) return;
  const auto& name = examined.config.pipeline.schedule;
  const auto* schedule = schedules::find_schedule(name);
  const bool is_synchronous =
      name == "auto" || (schedule && schedule->mode == schedules::Mode::synchronous);
  if (is_synchronous) return;
  const std::string key = skips ? "train.on_spike" : "train.skip_steps";
  examined.error({key, "pipeline.schedule"},
                 (skips ? key + " = \"skip\"" : key) +
                     " does not work with the asynchronous schedule \"" + name +
                     "\": its stages have used later samples before the loss of a step is known; "
                     "use a synchronous schedule such as \"1f1b\"" +
                     (skips ? ", or train.on_spike = \"stop\"" : ""));
}

void check_samples(const Examined& examined) {
  const auto& every = examined.config.sample.every;
  const auto& kind = examined.config.model.kind;
  const bool is_of_text = value_at(examined.tree, "model.vocab") != nullptr;
  if (every && !is_of_text)
    examined.error({"sample.every", "model.kind"},
                   "sample.every = " + to_string(*every) + ", but a model of the kind \"" + kind +
                       "\" writes no text; only language models such as gpt2 do");
}

/// Stages that step on their own do not know which steps other stages skip.
void check_precision(const Examined& examined) {
  const auto* schedule = schedules::find_schedule(examined.config.pipeline.schedule);
  const std::string name = *value_at(examined.tree, "precision.compute")->text();
  if (!name.starts_with("fp16") || !schedule || schedule->mode == schedules::Mode::synchronous)
    return;
  examined.error({"precision.compute", "pipeline.schedule"},
                 "precision.compute = \"" + name +
                     "\" does not work with the asynchronous schedule \"" +
                     examined.config.pipeline.schedule +
                     "\": all stages must skip a step whose gradients overflow, but each stage of "
                     "this schedule steps on its own; use \"bf16\" or \"fp32\", or a synchronous "
                     "schedule such as \"1f1b\"");
}

/// A wait must be longer than the waits that it contains.
void check_waits(const Examined& examined) {
  const auto& limits = examined.config.limits;
  const std::array chain = {
      std::pair{"limits.silence_floor", limits.silence_floor},
      std::pair{"limits.reconnect_patience", limits.reconnect_patience},
      std::pair{"limits.stuck_floor", limits.stuck_floor},
      std::pair{"limits.head_patience", limits.head_patience},
      std::pair{"limits.suspend_patience", limits.suspend_patience},
  };
  for (std::size_t i = 0; i + 1 < chain.size(); ++i) {
    const auto& [shorter, first] = chain[i];
    const auto& [longer, second] = chain[i + 1];
    if (first >= second)
      examined.error({shorter, longer}, std::string(shorter) + " = " +
                                            in_quotes(duration_text(first)) +
                                            " must be shorter than " + longer + " = " +
                                            in_quotes(duration_text(second)));
  }
}

}  // namespace

void Examined::error(std::initializer_list<std::string_view> keys, std::string message,
                     std::string hint) const {
  Diagnostic diagnostic = at_first(*this, keys);
  diagnostic.message = std::move(message);
  diagnostic.hint = std::move(hint);
  found.add(std::move(diagnostic));
}

void Examined::warn(std::initializer_list<std::string_view> keys, std::string message,
                    std::string hint) const {
  Diagnostic diagnostic = at_first(*this, keys);
  diagnostic.severity = Diagnostic::Severity::warning;
  diagnostic.message = std::move(message);
  diagnostic.hint = std::move(hint);
  found.add(std::move(diagnostic));
}

std::string nearest_multiples(std::int64_t number, std::int64_t step) {
  const std::int64_t below = number / step * step;
  return (below > 0 ? to_string(below) + ", " : "") + to_string(below + step);
}

void check_agreement(const Examined& examined) {
  check_names(examined);
  check_batch(examined);
  if (const auto units = check_model(examined)) check_stages(examined, *units);
  check_recompute(examined);
  check_schedule(examined);
  check_learning_rate(examined);
  check_data(examined);
  check_evaluation(examined);
  check_spikes(examined);
  check_samples(examined);
  check_staleness(examined);
  check_precision(examined);
  check_waits(examined);
}

}  // namespace troupe::config
