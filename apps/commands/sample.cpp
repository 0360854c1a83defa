#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numeric>
#include <optional>
#include <sstream>

#include "apps/command.h"
#include "apps/commands/trained_model.h"
#include "apps/machine/machine_share.h"
#include "core/random.h"
#include "storage/tokenizer/tokenizer.h"

namespace troupe::apps {
namespace {

struct SampleArguments {
  std::string checkpoint;
  std::string prompt;
  std::string tokenizer;
  std::int64_t tokens = 100;
  double temperature = 1;
  std::int64_t top_k = 0;
  std::uint64_t seed = 1;
};

using Tokens = std::vector<std::int32_t>;

/// The conversion between text and tokens: a tokenizer, bytes, or the numbers themselves.
class Script {
 public:
  static Result<Script> open(storage::Files& files, const std::string& tokenizer,
                             std::int64_t vocabulary) {
    Script script;
    script.vocabulary_ = vocabulary;
    if (tokenizer.empty()) return script;
    auto opened = storage::Tokenizer::open(files, tokenizer);
    if (!opened) return opened.error();
    script.tokenizer_ = std::move(*opened);
    return script;
  }

  Result<Tokens> read(const std::string& text) const {
    Tokens tokens;
    if (tokenizer_) {
      tokens = tokenizer_->encode(text);
    } else if (is_bytes()) {
      for (const char c : text) tokens.push_back(static_cast<unsigned char>(c));
    } else {
      std::istringstream words(text);
      for (std::string word; words >> word;) {
        char* end = nullptr;
        const long token = std::strtol(word.c_str(), &end, 10);
        if (*end != '\0')
          return Error{"--prompt: '" + word +
                       "' is not a token's number; give numbers, or the --tokenizer of this model"};
        tokens.push_back(static_cast<std::int32_t>(std::clamp(token, -1L, long{INT32_MAX})));
      }
    }
    for (const auto token : tokens)
      if (token < 0 || token >= vocabulary_)
        return Error{"--prompt: token " + std::to_string(token) +
                     " is not in the model's vocabulary of " + std::to_string(vocabulary_)};
    return tokens;
  }

  std::string write(std::int32_t token) const {
    if (tokenizer_) {
      const auto text = tokenizer_->decode({&token, 1});
      return text ? *text : "<" + std::to_string(token) + ">";
    }
    return is_bytes() ? std::string(1, static_cast<char>(token)) : " " + std::to_string(token);
  }

 private:
  bool is_bytes() const { return vocabulary_ == 256; }

  std::optional<storage::Tokenizer> tokenizer_;
  std::int64_t vocabulary_ = 0;
};

/// Draws a token from the `top_k` likeliest (0: all) by a random number in [0, 1).
std::int32_t draw(std::span<const float> logits, double temperature, std::int64_t top_k,
                  double random) {
  std::vector<std::int32_t> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  const auto likelier = [&](std::int32_t a, std::int32_t b) {
    const float x = logits[static_cast<std::size_t>(a)], y = logits[static_cast<std::size_t>(b)];
    return x > y || (x == y && a < b);
  };
  const auto count =
      top_k > 0 ? std::min(static_cast<std::size_t>(top_k), order.size()) : order.size();
  if (temperature == 0) return *std::min_element(order.begin(), order.end(), likelier);
  std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(count), order.end(),
                    likelier);
  const double highest = logits[static_cast<std::size_t>(order[0])];
  std::vector<double> upto(count);
  double sum = 0;
  for (std::size_t i = 0; i < count; ++i)
    upto[i] = sum += std::exp((logits[static_cast<std::size_t>(order[i])] - highest) / temperature);
  const auto found = std::upper_bound(upto.begin(), upto.end(), random * sum);
  return order[std::min(static_cast<std::size_t>(found - upto.begin()), count - 1)];
}

ExitCode sample(const SampleArguments& arguments, const CommonFlags&) {
  const auto files = storage::disk_files();
  auto trained = TrainedModel::open(*files, arguments.checkpoint, own_machine_share().cores());
  if (!trained) return invalid(trained.error());
  TrainedModel& model = **trained;
  if (model.model().sample.input_type != DType::i32)
    return complain(ExitCode::invalid,
                    "error: " + model.directory() + ": a " + model.model().kind +
                        " takes no tokens; only language models can be sampled from");
  const auto own = tokenizer_of(*files, model.directory());
  if (!own) return invalid(own.error());
  const auto script = Script::open(*files, arguments.tokenizer.empty() ? *own : arguments.tokenizer,
                                   model.model().classes);
  if (!script) return complain(ExitCode::invalid, "error: --tokenizer: " + script.error().text);
  auto read = script->read(arguments.prompt);
  if (!read) return invalid(read.error());
  Tokens tokens = std::move(*read);
  std::fputs(arguments.prompt.c_str(), stdout);
  // A model needs at least one token; this one is not printed.
  if (tokens.empty()) tokens.push_back(0);

  const auto context = static_cast<std::size_t>(model.model().sample.input[0]);
  for (std::int64_t i = 0; i < arguments.tokens; ++i) {
    const auto length = std::min(tokens.size(), context);
    Tensor input = model.stream().make({1, static_cast<std::int64_t>(length)}, DType::i32);
    std::copy(tokens.end() - static_cast<std::ptrdiff_t>(length), tokens.end(),
              input.data<std::int32_t>());
    const Tensor logits = model.evaluate(std::move(input));
    const auto classes = static_cast<std::size_t>(model.model().classes);
    const std::span last(logits.f32() + logits.count() - static_cast<std::int64_t>(classes),
                         classes);
    const auto word = RandomKey{.seed = arguments.seed}.words(static_cast<std::uint32_t>(i))[0];
    tokens.push_back(draw(last, arguments.temperature, arguments.top_k, uniform(word)));
    std::fputs(script->write(tokens.back()).c_str(), stdout);
    std::fflush(stdout);
  }
  std::fputc('\n', stdout);
  return ExitCode::done;
}

}  // namespace

void add_sample(Program& program) {
  auto [command, arguments] =
      add_command(program, program.app, "sample", "generate text with a language model", sample);
  command
      ->add_option("checkpoint", arguments.checkpoint,
                   "a run's name or folder, a folder of checkpoints, or a checkpoint; RUN@best "
                   "is the one with the lowest validation loss")
      ->required();
  command->add_option("--prompt", arguments.prompt,
                      "text to continue; token numbers if there is no tokenizer");
  command->add_option("--tokenizer", arguments.tokenizer,
                      "tokenizer.json, or vocab.json beside merges.txt (default: the one in the "
                      "run's folder)");
  command->add_option("--tokens", arguments.tokens, "number of tokens to generate (default: 100)")
      ->check(CLI::Range(std::int64_t{0}, std::int64_t{1} << 24));
  command
      ->add_option("--temperature", arguments.temperature,
                   "sampling temperature; 0 always takes the likeliest token (default: 1)")
      ->check(CLI::Range(0.0, 100.0));
  command
      ->add_option("--top-k", arguments.top_k,
                   "sample from the k likeliest tokens; 0 means all (default: 0)")
      ->check(CLI::Range(std::int64_t{0}, std::int64_t{1} << 24));
  command->add_option("--seed", arguments.seed,
                      "random seed; equal seeds generate equal texts (default: 1)");
}

}  // namespace troupe::apps
