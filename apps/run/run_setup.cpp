#include "apps/run/run_setup.h"

#include <algorithm>
#include <filesystem>
#include <string>

#include "apps/gpu/gpus.h"
#include "apps/samples/step_samples.h"
#include "config/model_kinds.h"
#include "core/mixture.h"
#include "models/train/account.h"
#include "models/train/parameter_groups.h"
#include "storage/data/data_spec.h"
#include "storage/data/mixed_dataset.h"

namespace troupe::apps {
namespace {

constexpr std::int64_t micro_batches_by_default = 8;

/// Returns the micro-batch size for "auto": the largest with at least 8 micro-batches per step, so
/// that a pipeline can overlap work. It depends on the batch size alone and never on the cluster,
/// since it affects the numbers.
std::int64_t default_micro(std::int64_t global) {
  std::int64_t micro = std::max<std::int64_t>(1, global / micro_batches_by_default);
  while (global % micro != 0) --micro;
  return micro;
}

using Compute = config::RunConfig::Precision::Compute;

kernels::Precision meaning_of(Compute compute, bool on_gpus) {
  using kernels::Precision;
  switch (compute) {
    case Compute::fp32:
      return Precision::fp32;
    case Compute::tf32:
      return Precision::tf32;
    case Compute::fp16:
      return on_gpus ? Precision::fp16_gpu : Precision::fp16_chain;
    case Compute::fp16_chain:
      return Precision::fp16_chain;
    case Compute::fp16_gpu:
      return Precision::fp16_gpu;
    case Compute::bf16:
      return on_gpus ? Precision::bf16_gpu : kernels::fastest_bf16();
    case Compute::bf16_pairs:
      return Precision::bf16_pairs;
    case Compute::bf16_blocks:
      return Precision::bf16_blocks;
    case Compute::bf16_gpu:
      return Precision::bf16_gpu;
  }
  return Precision::fp32;
}

/// Returns the shape that a model gives for one sample.
Shape output_of(const models::Model& model, const Shape& input) {
  const Shape made = models::bundles_of(model, models::with_batch(1, input)).back()[0].shape;
  Shape output;
  for (int i = 1; i < made.rank(); ++i) output.append(made[i]);
  return output;
}

}  // namespace

kernels::Precision best_precision_here() {
  return kernels::has_bf16_products() ? kernels::fastest_bf16() : kernels::Precision::fp32;
}

bool is_on_gpus(const config::RunConfig& config) {
  return config.train.device == config::RunConfig::Train::Device::cuda;
}

Result<kernels::Precision> precision_of(const config::RunConfig& config) {
  const bool on_gpus = is_on_gpus(config);
  if (!config.precision.compute) {
    if (!on_gpus) return best_precision_here();
    return gpu_libraries() ? kernels::Precision::bf16_gpu : kernels::Precision::fp32;
  }
  const auto precision = meaning_of(*config.precision.compute, on_gpus);
  if (on_gpus || !kernels::is_on_tensor_cores(precision)) return precision;
  const std::string of_cores = kernels::is_bf16(precision)   ? "bf16"
                               : kernels::is_fp16(precision) ? "fp16"
                                                             : "fp32";
  return Error{"precision.compute = \"" + std::string(to_string(precision)) +
               "\" is computed by GPUs alone, and train.device = \"cpu\"; set train.device = "
               "\"cuda\", or use \"" +
               of_cores + "\""};
}

Status fits(const std::string& key, const storage::Dataset& data, const models::Model& model) {
  const auto& has = data.shape();
  const auto& wants = model.sample;
  const bool of_numbers = wants.target_type == DType::f32;
  const bool same_size =
      has.input_type == wants.input_type && wants.takes(has.input) &&
      (of_numbers || has.target.rank() == wants.target.rank()) &&
      (of_numbers || wants.input_type == DType::i32 || has.target == wants.target);
  if (!same_size)
    return Error{key + ": its samples are " + std::string(to_string(has.input_type)) + " " +
                 to_string(has.input) + ", and the model takes " +
                 std::string(to_string(wants.input_type)) + " " + to_string(wants.input) +
                 "; change the data or the [model] section"};
  if (of_numbers) {
    const auto output = output_of(model, has.input);
    if (!(has.target == output))
      return Error{key + ": its targets are f32 " + to_string(has.target) +
                   ", and the model's output is " + to_string(output) +
                   "; its loss takes a target for each number of the output"};
  }
  const auto classes = of_numbers ? wants.bounds.below : model.classes;
  if (classes > 0 && data.classes() > classes)
    return Error{key + ": it has " + std::to_string(data.classes()) +
                 " classes, and the model only " + std::to_string(classes) +
                 "; increase the model's number, or use \"auto\" for a vocabulary"};
  return Done{};
}

std::int64_t RunSetup::parameters() const {
  std::int64_t count = 0;
  for (const auto& unit : model.units)
    for (const auto& parameter : unit.layer->parameters()) count += parameter.shape.count();
  return count;
}

Result<std::string> tokenizer_for(storage::Files& files, const std::string& data) {
  auto spec = storage::DataSpec::parse(data);
  if (!spec) return spec.error();
  if (spec->kind() != storage::DataSpec::Kind::path) return std::string();
  if (auto named = spec->text("tokenizer")) return *named;
  if (!spec->name().ends_with(".bin")) return std::string();
  // `troupe data prepare --to book --train-tokenizer` writes book_tokenizer.json beside book_*.bin.
  const std::string beside = spec->name().substr(0, spec->name().rfind('_')) + "_tokenizer.json";
  const auto there = files.exists(beside);
  if (!there.ok()) return there.error();
  return *there ? beside : std::string();
}

Result<std::vector<std::string>> training_data(const config::RunConfig::Data& data) {
  if (!data.mix) return std::vector{data.train};
  auto mixture = Mixture::parse(*data.mix);
  if (!mixture) return within("data.mix", mixture.error());
  return std::move(mixture->sources);
}

Status check_samples(const config::RunConfig& config, const RunSetup& setup) {
  return check_samples(*setup.files, config, setup.model, setup.tokenizer);
}

Status check_support(const config::RunConfig& config) {
  if (config.pipeline.tensor == 1) return Done{};
  return Error{"pipeline.tensor = " + std::to_string(config.pipeline.tensor) +
               ": this version does not support tensor parallelism; set it to 1, and use stages "
               "or replicas"};
}

storage::DataNeeds needs_of(const models::Model& model) {
  const auto& form = model.sample;
  storage::DataNeeds needs{.context = form.input_type == DType::i32 ? form.input[0] : 0,
                           .ignore = model.ignore};
  needs.target_type = form.target_type;
  needs.target_bounds = form.target_bounds;
  if (form.more.empty()) return needs;
  needs.inputs.push_back({{form.input_name, form.input, form.input_type}, form.bounds});
  for (std::size_t i = 0; i < form.more.size(); ++i)
    needs.inputs.push_back(
        {{form.more[i].name, form.more[i].shape, form.more[i].type}, model.kept[i].bounds});
  needs.target = form.target;
  return needs;
}

/// The vocabulary of a model that is built to see its inputs, before the data tells its own.
constexpr std::int64_t provisional_vocabulary = std::int64_t{1} << 24;

/// Returns what a model needs of its data. The description of a model of one's own may call options
/// such as the length of texts as it likes.
Result<storage::DataNeeds> needs_of(const config::RunConfig::Model& model) {
  storage::DataNeeds needs{.context = integer_in(model.options, "context")};
  needs.ignore = model.ignored_target();
  const auto kind = config::kind_of(model.table());
  if (!kind) return kind.error();
  needs.target_type = kind->target_type();
  needs.target_bounds = kind->target_bounds();
  const bool is_from_data = model.vocabulary_from_data();
  const bool has_one_input = kind->inputs() == 1;
  if (!is_from_data) needs.vocabulary = integer_in(model.options, "vocab");
  if (has_one_input && (is_from_data || model.description.is_null())) return needs;
  const auto built = config::model_from(model.table_for(provisional_vocabulary));
  if (!built) return built.error();
  if (built->sample.more.empty() &&
      (is_from_data || model.description.is_null() || built->sample.input_type != DType::i32))
    return needs;
  needs = needs_of(*built);
  if (!is_from_data) {
    needs.vocabulary = built->classes > 0 ? built->classes : built->sample.bounds.below;
    return needs;
  }
  const auto smaller = config::model_from(model.table_for(provisional_vocabulary - 1));
  if (!smaller) return smaller.error();
  const auto other = needs_of(*smaller);
  for (std::size_t i = 0; i < needs.inputs.size(); ++i)
    if (needs.inputs[i].bounds.below != other.inputs[i].bounds.below) {
      needs.inputs[i].bounds.below = 0;
      needs.inputs[i].of_vocabulary = true;
    }
  return needs;
}

/// Checks the inputs of a model whose vocabulary is that of the data, so many tokens.
Status check_vocabulary(const models::Model& model, const storage::DataNeeds& needs,
                        std::int64_t classes) {
  const auto built = needs_of(model);
  for (std::size_t i = 0; i < needs.inputs.size(); ++i)
    if (needs.inputs[i].of_vocabulary && built.inputs[i].bounds.below < classes)
      return Error{"model.vocab = \"auto\" is " + std::to_string(classes) +
                   " here, but the input '" + needs.inputs[i].field.name + "' takes tokens below " +
                   std::to_string(built.inputs[i].bounds.below) +
                   "; set model.vocab to a number that has room for all"};
  return Done{};
}

Result<RunSetup> set_up(storage::Files& files, const config::RunConfig& config) {
  if (auto supported = check_support(config); !supported) return supported.error();
  RunSetup setup;
  setup.files = &files;

  // The number of classes comes from the model, or from the data if vocab = "auto".
  const auto needed = needs_of(config.model);
  if (!needed) return needed.error();
  const storage::DataNeeds needs = *needed;
  const auto open = [&](const std::string& key, const std::string& spec) {
    auto opened = storage::open_data(spec, needs, files);
    if (opened) return opened;
    const Error error = within(key, opened.error());
    // A head looks in the folder where it was started.
    const bool is_absent = error.text.find("o such file") != std::string::npos;
    if (!is_absent || spec.starts_with('/')) return Result<storage::OpenedData>(error);
    return Result<storage::OpenedData>(
        Error{error.text + "; it was looked for in " + std::filesystem::current_path().string()});
  };
  const std::string train_key = config.data.mix ? "data.mix" : "data.train";
  const auto sources = training_data(config.data);
  if (!sources) return sources.error();
  if (config.data.mix) {
    for (const auto& source : *sources)  // Says for each where it was looked for.
      if (auto opened = open(train_key, source); !opened) return opened.error();
    const auto mixture = Mixture::parse(*config.data.mix);
    auto mixed = storage::open_mixture(*mixture, needs, files);
    if (!mixed) return within(train_key, mixed.error());
    setup.train = std::move(mixed->data.dataset);
    setup.train_files = std::move(mixed->data.files);
    setup.mix_counts = std::move(mixed->counts);
  } else {
    auto train = open(train_key, config.data.train);
    if (!train) return train.error();
    setup.train = std::move(train->dataset);
    setup.train_files = std::move(train->files);
  }
  auto tokenizer = tokenizer_for(files, sources->front());
  if (!tokenizer) return within(train_key, tokenizer.error());
  setup.tokenizer = std::move(*tokenizer);
  if (config.data.validate) {
    auto validate = open("data.validate", *config.data.validate);
    if (!validate) return validate.error();
    setup.validate = std::move(validate->dataset);
    setup.validate_files = std::move(validate->files);
  }
  std::int64_t classes = setup.train->classes();
  if (setup.validate) classes = std::max(classes, setup.validate->classes());

  setup.model_description = config.model.table_for(classes);
  auto model = config::model_from(setup.model_description, config.pipeline.cuts);
  if (!model) return model.error();
  setup.model = std::move(*model);
  if (auto good = check_vocabulary(setup.model, needs, classes); !good) return good.error();
  models::freeze(setup.model, config.optimizer.groups);

  if (auto good = fits(train_key, *setup.train, setup.model); !good) return good.error();
  if (setup.validate)
    if (auto good = fits("data.validate", *setup.validate, setup.model); !good) return good.error();

  setup.micro = config.batch.micro.value_or(default_micro(config.batch.global));
  const auto precision = precision_of(config);
  if (!precision) return precision.error();
  setup.precision = *precision;
  return setup;
}

}  // namespace troupe::apps
