#include "config/run_config.h"

#include <algorithm>
#include <cassert>

#include "config/keys.h"
#include "config/model_kinds.h"

namespace troupe::config {
namespace {

/// Reads a struct whose keys are always the same: making their table takes longer.
template <class Struct>
Struct read_section(const Value& complete) {
  static const auto fields = Struct::fields();
  Struct section;
  read_fields(complete, fields, section);
  return section;
}

RunConfig::Model read_model(const Value& tree) {
  RunConfig::Model model;
  model.options = *tree.find("model");
  model.kind = *model.options.find("kind")->text();
  model.init = *model.options.find("init")->text();
  if (Value* description = model.options.find("description"))
    model.description = std::move(*description);
  std::erase_if(*model.options.map(), [](const auto& entry) {
    return entry.key == "kind" || entry.key == "init" || entry.key == "description";
  });
  return model;
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
  static const auto of_optimizer = optimizer_fields();
  static const auto of_staleness = staleness_fields();
  auto config = read_section<RunConfig>(complete);
  config.model = read_model(complete);
  config.data = read_section<RunConfig::Data>(complete);
  config.batch = read_section<RunConfig::Batch>(complete);
  config.pipeline = read_section<RunConfig::Pipeline>(complete);
  config.parallel = read_section<RunConfig::Parallel>(complete);
  config.precision = read_section<RunConfig::Precision>(complete);
  config.elastic = read_section<RunConfig::Elastic>(complete);
  config.checkpoint = read_section<RunConfig::Checkpoint>(complete);
  config.checkpoint.directory = with_name(config.checkpoint.directory, config.name);
  config.train = read_section<RunConfig::Train>(complete);
  config.limits = read_section<RunConfig::Limits>(complete);
  config.sample = read_section<RunConfig::Sample>(complete);
  config.log = read_section<RunConfig::Log>(complete);
  config.optimizer.rate.total_steps = config.train.steps;
  read_fields(complete, of_optimizer, config.optimizer);
  auto& staleness = config.staleness;
  read_fields(complete, of_staleness, staleness);
  // With replicas no replica has the whole gradient that aggmsnag needs.
  using Predict = RunConfig::Staleness::Predict;
  if (staleness.predict == Predict::aggmsnag && config.pipeline.replicas.value_or(1) > 1)
    staleness.predict = Predict::msnag;
  staleness.lag = config.pipeline.schedule == "pipedream-2bw" ? 1 : 0;
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

namespace {

const Value* ignore_of(const Value& table) {
  const Value* loss = table.find("loss");
  return loss ? loss->find("ignore") : nullptr;
}

}  // namespace

std::optional<std::int32_t> RunConfig::Model::ignored_target() const {
  const Value* given = ignore_of(options);
  if (given && given->integer()) return static_cast<std::int32_t>(*given->integer());
  const auto found = kind_of(table());
  return found && !given ? found->ignored_target() : std::nullopt;
}

bool RunConfig::Model::may_ignore() const {
  if (ignore_of(options)) return true;
  const auto found = kind_of(table());
  return found && found->may_ignore();
}

Value RunConfig::Model::table_for(std::int64_t vocabulary) const {
  Value filled = table();
  if (vocabulary_from_data()) filled.set("vocab", vocabulary);
  return filled;
}

Value RunConfig::Model::table() const {
  Value table = options;
  table.set("kind", kind);
  if (!description.is_null()) table.set("description", description);
  const auto found = kind_of(table);
  return found ? models::without_later(found->options(), std::move(table)) : table;
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
