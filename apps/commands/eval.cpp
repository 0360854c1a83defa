#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "actors/inputs_of.h"
#include "apps/command.h"
#include "apps/commands/named_checkpoint.h"
#include "apps/events/number_text.h"
#include "apps/events/terminal_width.h"
#include "apps/machine/machine_share.h"
#include "apps/run/run_setup.h"
#include "apps/samples/predicted_text.h"
#include "core/json.h"
#include "core/text.h"
#include "storage/data/data_spec.h"
#include "storage/data/dataset.h"
#include "storage/data/micro_batches.h"

namespace troupe::apps {
namespace {

struct EvalArguments {
  std::string checkpoint;
  std::string data;
  std::optional<std::int64_t> samples;
  std::int64_t micro = 8;
  bool ema = false;
};

constexpr std::int64_t samples_by_default = 256;

/// The data and the samples of an evaluation.
struct Exam {
  std::string data;
  std::int64_t samples = samples_by_default;
  std::int64_t micro = 8;
  bool as_in_training = false;  // On the data and the samples of the run's own evaluations.
};

/// Returns the exam that the arguments ask for: without --data, the one that the run's training
/// took.
Result<Exam> exam_for(storage::Files& files, const EvalArguments& arguments,
                      const TrainedModel& model) {
  Exam exam{arguments.data, arguments.samples.value_or(samples_by_default), arguments.micro};
  if (!exam.data.empty()) return exam;
  const auto config = config_of(files, model.directory());
  if (!config) return config.error();
  if (!*config)
    return Error{model.directory() +
                 ": no run has left its configuration beside this checkpoint, so its data is "
                 "unknown; give --data"};
  if (!(*config)->data.validate)
    return Error{(*config)->name + " was trained without data.validate; give --data"};
  exam.data = *(*config)->data.validate;
  exam.as_in_training = !arguments.samples;
  if (exam.as_in_training) exam.samples = (*config)->train.eval_batches * (*config)->batch.global;
  return exam;
}

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

/// Returns a counter for the text of the data; nothing if the model does not continue texts, or the
/// data is none.
Result<std::optional<PredictedText>> predicted_text_for(storage::Files& files,
                                                        const std::string& data,
                                                        const TrainedModel& model) {
  const auto spec = storage::DataSpec::parse(data);
  if (!spec) return spec.error();
  const bool is_made = spec->kind() != storage::DataSpec::Kind::path;
  if (is_made || !model.model().predicts_tokens() || !model.model().continues_from(0))
    return std::optional<PredictedText>();
  auto tokenizer = apps::tokenizer_for(files, data);
  if (tokenizer && tokenizer->empty() && spec->name().ends_with(".bin"))
    tokenizer = tokenizer_of(files, model.directory());
  if (!tokenizer) return tokenizer.error();
  if (tokenizer->empty() && !spec->name().ends_with(".txt")) return std::optional<PredictedText>();
  auto text = PredictedText::open(files, *tokenizer, model.model().ignore);
  if (!text) return text.error();
  return std::optional(std::move(*text));
}

/// Returns "128 of 2,000 samples". If there are fewer than were used, some were used again.
std::string share_text(std::int64_t used, std::int64_t count) {
  if (used <= count) return grouped(used) + " of " + grouped(count) + " samples";
  return grouped(used) + " samples (the data have " + grouped(count) +
         ": the first ones count again)";
}

ExitCode eval(const EvalArguments& arguments, const CommonFlags& flags) {
  const auto files = storage::disk_files();
  const auto products = arguments.data.empty() ? Products::as_trained : Products::fp32;
  auto trained = open_model(*files, arguments.checkpoint, own_machine_share().cores(), products,
                            arguments.ema ? WhichWeights::averaged : WhichWeights::newest);
  if (!trained) return invalid(trained.error());
  TrainedModel& model = **trained;
  storage::DataNeeds needs = needs_of(model.model());
  needs.classes = model.model().classes;
  const auto exam = exam_for(*files, arguments, model);
  if (!exam) return invalid(exam.error());
  const auto spec = data_for(*files, exam->data, model);
  if (!spec) return invalid(spec.error());
  const auto data = storage::open_dataset(*spec, needs, *files);
  if (!data) return invalid(data.error());
  if (auto good = fits(*spec, **data, model.model()); !good) return invalid(good.error());

  // Training evaluates as many samples as configured, the first ones again if there are too few.
  const std::int64_t samples =
      exam->as_in_training ? exam->samples : std::min(exam->samples, (*data)->count());
  const std::int64_t micro = std::gcd(std::min(exam->micro, samples), samples);
  const storage::SampleOrder order(storage::SampleOrder::Kind::sequential, 0, (*data)->count());
  const storage::MicroBatches batches(**data, order, micro, micro, needs.ignore);
  auto text = predicted_text_for(*files, *spec, model);
  if (!text) return invalid(text.error());
  double nats = 0;
  std::vector<models::MeanLoss> found;
  std::int64_t micro_batches = 0;
  for (; (micro_batches + 1) * micro <= samples; ++micro_batches) {
    auto batch = batches.read(model.stream().memory(), micro_batches, 0);
    if (!batch) return complain(ExitCode::failed, "error: " + batch.error().text);
    const std::int64_t counted = batch->counted;
    Tensor targets = std::move(batch->target);
    if (*text)
      if (auto added = (*text)->add(batch->input, targets); !added) return invalid(added.error());
    const models::Losses losses{
        model.evaluate(actors::inputs_of(std::move(*batch)), std::move(targets))};
    found.push_back({losses.mean(counted), counted});
    nats += losses.mean(counted) * static_cast<double>(counted);
  }
  const bool some_count = std::ranges::any_of(found, [](auto& loss) { return loss.counted > 0; });
  if (!some_count)
    return complain(
        ExitCode::failed,
        "error: none of the targets counts: all are " +
            (needs.ignore ? "the label " + std::to_string(*needs.ignore) + " of model.loss.ignore"
                          : "NaN"));
  const double loss = models::mean_of(found);
  const bool is_text = model.model().predicts_tokens();
  const double bits = *text ? (*text)->bits_per_byte(nats).value_or(0) : 0;  // 0: unknown.
  if (flags.output == "json") {
    Value result;
    result.set("type", "eval");
    result.set("checkpoint", model.directory());
    result.set("data", exam->data);
    result.set("samples", micro_batches * micro);
    result.set("samples_in_data", (*data)->count());
    result.set("loss", loss);
    if (is_text) result.set("perplexity", std::exp(loss));
    if (bits > 0) result.set("bits_per_byte", bits);
    std::puts(to_json(result).c_str());
  } else {
    std::string perplexity = is_text ? ", perplexity " + brief(std::exp(loss)) : "";
    if (bits > 0) perplexity += ", " + brief(bits) + " bits per byte";
    char number[32];
    std::snprintf(number, sizeof number, "loss %.5f%s", loss,
                  model.model().sample.target_type == DType::i32 ? " nats" : "");
    print_wrapped(
        number + perplexity + " over " + share_text(micro_batches * micro, (*data)->count()) +
        (exam->as_in_training ? ", as in training: " : ": ") + (*data)->description() + "\n");
  }
  return ExitCode::done;
}

}  // namespace

void add_eval(Program& program) {
  auto [command, arguments] =
      add_command(program, program.app, "eval", "evaluate a checkpoint on data", eval);
  command
      ->add_option("checkpoint", arguments.checkpoint,
                   "a run's name or folder, a folder of checkpoints, or a checkpoint; RUN@best "
                   "is the one with the lowest validation loss")
      ->required();
  command->add_option(
      "--data", arguments.data,
      "evaluation data: made:... or a file, as for data.validate (default: the run's "
      "data.validate, with the samples of its own evaluations)");
  command
      ->add_option("--samples", arguments.samples,
                   "maximum number of samples (default: 256, or without --data as in training)")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 40));
  command->add_option("--micro", arguments.micro, "largest micro-batch size (default: 8)")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 20));
  command->add_flag("--ema", arguments.ema, "evaluate the average of the weights (train.ema)");
}

}  // namespace troupe::apps
