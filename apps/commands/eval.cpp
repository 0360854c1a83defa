#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>

#include "apps/command.h"
#include "apps/commands/trained_model.h"
#include "apps/events/number_text.h"
#include "apps/machine/machine_share.h"
#include "core/json.h"
#include "storage/data/data_spec.h"
#include "storage/data/dataset.h"
#include "storage/data/micro_batches.h"

namespace troupe::apps {
namespace {

struct EvalArguments {
  std::string checkpoint;
  std::string data;
  std::int64_t samples = 256;
  std::int64_t micro = 8;
};

/// Returns the data with the tokenizer of the checkpoint's run, if it is a text without one.
Result<std::string> data_for(storage::Files& files, const std::string& data,
                             const TrainedModel& model) {
  auto spec = storage::DataSpec::parse(data);
  if (!spec) return spec.error();
  const bool is_text = spec->kind() == storage::DataSpec::Kind::path &&
                       (spec->name().ends_with(".txt") || spec->name().ends_with(".jsonl"));
  if (!is_text || spec->text("tokenizer")) return data;
  const auto own = tokenizer_of(files, model.directory());
  if (!own) return own.error();
  if (own->empty()) return data;
  return data + (data.find('?') == std::string::npos ? "?" : "&") + "tokenizer=" + *own;
}

ExitCode eval(const EvalArguments& arguments, const CommonFlags& flags) {
  const auto files = storage::disk_files();
  auto trained = TrainedModel::open(*files, arguments.checkpoint, own_machine_share().cores());
  if (!trained) return invalid(trained.error());
  TrainedModel& model = **trained;
  const auto& form = model.model().sample;
  const storage::DataNeeds needs{form.input_type == DType::i32 ? form.input[0] : 0,
                                 model.model().classes};
  const auto spec = data_for(*files, arguments.data, model);
  if (!spec) return invalid(spec.error());
  const auto data = storage::open_dataset(*spec, needs, *files);
  if (!data) return invalid(data.error());
  if (auto good = fits(*spec, **data, model.model()); !good) return invalid(good.error());

  const std::int64_t samples = std::min(arguments.samples, (*data)->count());
  const std::int64_t micro = std::min(arguments.micro, samples);
  const storage::SampleOrder order(storage::SampleOrder::Kind::sequential, 0, (*data)->count());
  const storage::MicroBatches batches(**data, order, micro, micro);
  double sum = 0;
  std::int64_t micro_batches = 0;
  for (; (micro_batches + 1) * micro <= samples; ++micro_batches) {
    auto batch = batches.read(model.stream().memory(), micro_batches, 0);
    if (!batch) return complain(ExitCode::failed, "error: " + batch.error().text);
    sum += models::Losses{model.evaluate(std::move(batch->input), std::move(batch->target))}.mean();
  }
  const double loss = sum / static_cast<double>(micro_batches);
  if (flags.output == "json") {
    Value result;
    result.set("type", "eval");
    result.set("checkpoint", model.directory());
    result.set("samples", micro_batches * micro);
    result.set("loss", loss);
    std::puts(to_json(result).c_str());
  } else {
    const bool is_text = form.input_type == DType::i32;
    const std::string perplexity = is_text ? ", perplexity " + brief(std::exp(loss)) : "";
    std::printf("loss %.5f nats%s over %s of %s samples: %s\n", loss, perplexity.c_str(),
                thousands(static_cast<double>(micro_batches * micro)).c_str(),
                thousands(static_cast<double>((*data)->count())).c_str(),
                (*data)->description().c_str());
  }
  return ExitCode::done;
}

}  // namespace

void add_eval(Program& program) {
  auto [command, arguments] =
      add_command(program, program.app, "eval", "evaluate a checkpoint on data", eval);
  command
      ->add_option("checkpoint", arguments.checkpoint,
                   "a run's name or folder, a folder of checkpoints, or a checkpoint")
      ->required();
  command
      ->add_option("--data", arguments.data,
                   "evaluation data: made:... or a file, as for data.validate")
      ->required();
  command->add_option("--samples", arguments.samples, "maximum number of samples (default: 256)")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 40));
  command->add_option("--micro", arguments.micro, "micro-batch size (default: 8)")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 20));
}

}  // namespace troupe::apps
