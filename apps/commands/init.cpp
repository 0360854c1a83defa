// `troupe init`: from a text to a configuration that trains a language model on it.

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <optional>
#include <string>
#include <string_view>

#include "apps/command.h"
#include "apps/events/number_text.h"
#include "apps/events/terminal_width.h"
#include "apps/machine/machine_share.h"
#include "apps/machine/measure_units.h"
#include "apps/machine/this_machine.h"
#include "apps/run/plan_request.h"
#include "config/load.h"
#include "schedules/plan/plan.h"
#include "storage/data/data_tools.h"
#include "storage/data/token_shard.h"

namespace troupe::apps {
namespace {

struct InitArguments {
  std::string text;
  std::string name;
  std::string size;
  std::optional<std::int64_t> vocabulary;
  std::optional<std::int64_t> steps;
};

struct ModelSize {
  std::string_view name;
  std::int64_t layers, width, heads, context, batch;
  std::int64_t tokens;  // The fewest tokens for which this size is chosen.
};

// The learning rates of small models on small texts fall with their width.
constexpr std::array<ModelSize, 4> model_sizes{{
    {"tiny", 2, 64, 4, 64, 16, 0},
    {"small", 4, 128, 4, 128, 16, 1'000'000},
    {"medium", 6, 384, 6, 256, 32, 20'000'000},
    {"large", 12, 768, 12, 1024, 64, 500'000'000},
}};

constexpr std::int64_t passes = 8;  // Over a text by default, within the bounds below.
constexpr std::int64_t fewest_steps = 100;
constexpr std::int64_t most_steps = 5000;
constexpr double kept_apart = 0.05;
constexpr std::int64_t bytes_alone = 256;    // A vocabulary of bytes wants no tokenizer.
constexpr std::int64_t tokens_of_bytes = 3;  // About as many bytes has a token of a tokenizer.

/// Returns the vocabulary for a text of this many bytes.
std::int64_t vocabulary_for(std::int64_t bytes) {
  if (bytes < 50'000) return bytes_alone;
  if (bytes < 2'000'000) return 1024;
  return bytes < 100'000'000 ? 4096 : 16384;
}

const ModelSize& size_for(std::int64_t tokens) {
  const ModelSize* chosen = model_sizes.begin();
  for (const auto& size : model_sizes)
    if (tokens >= size.tokens) chosen = &size;
  return *chosen;
}

/// Returns a name for the run of a text: "my book.txt" gives "my-book".
std::string name_of_text(const std::string& path) {
  std::string name = std::filesystem::path(path).stem().string();
  for (char& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '_' && c != '-' && c != '.') c = '-';
  while (!name.empty() && name.front() == '.') name.erase(0, 1);
  return name.empty() ? "own" : name.substr(0, 64);
}

/// Asks on the terminal. Returns the answer, or `usual` for an empty one.
std::string ask_person(const std::string& question, const std::string& usual) {
  std::fprintf(stderr, "%s%s: ", question.c_str(),
               usual.empty() ? "" : (" [" + usual + "]").c_str());
  std::string answer;
  std::getline(std::cin, answer);
  return answer.empty() ? usual : answer;
}

/// Asks for what the arguments lack, if a person is there to answer.
void fill_in(InitArguments& arguments) {
  const bool has_person = isatty(STDIN_FILENO) && isatty(STDERR_FILENO);
  if (has_person && arguments.text.empty()) {
    arguments.text = ask_person("Text file to train on", "");
    if (arguments.name.empty())
      arguments.name = ask_person("Name of the run", name_of_text(arguments.text));
    if (arguments.size.empty())
      arguments.size = ask_person("Size of the model: auto, tiny, small, medium or large", "auto");
  }
  if (arguments.name.empty()) arguments.name = name_of_text(arguments.text);
  if (arguments.size.empty()) arguments.size = "auto";
}

/// The answers to all questions.
struct Draft {
  std::string name;
  std::string text;
  ModelSize size;
  std::int64_t vocabulary = 0;
  std::int64_t steps = 0;
  std::int64_t tokens = 0;  // For training.
};

std::string own_config(const Draft& draft) {
  const auto& size = draft.size;
  const std::int64_t every = std::max<std::int64_t>(draft.steps / 5, 1);
  const std::int64_t warmup = std::clamp<std::int64_t>(draft.steps / 20, 1, 200);
  const std::string lr = size.width <= 128 ? "3e-3" : size.width <= 384 ? "1e-3" : "6e-4";
  const std::string min_lr = size.width <= 128 ? "3e-4" : size.width <= 384 ? "1e-4" : "6e-5";
  const auto number = [](std::int64_t value) { return std::to_string(value); };
  return "# A language model on " + draft.text + ", made by `troupe init`.\n" +
         "# `troupe config reference` describes every key.\n"
         "name = \"" +
         draft.name + "\"\n\n[model]\nkind    = \"gpt2\"\nvocab   = " + number(draft.vocabulary) +
         "  # Tokens of the tokenizer.\ncontext = " + number(size.context) +
         "  # Tokens of a sample.\nwidth   = " + number(size.width) +
         "\nheads   = " + number(size.heads) + "\nlayers  = " + number(size.layers) +
         "\n\n[data]\ntrain    = \"" + draft.name + "_*.bin\"\nvalidate = \"" + draft.name +
         "-valid_*.bin\"\n\n[batch]\nglobal = " + number(size.batch) +
         "  # Samples in a step.\n\n[optimizer]\nkind      = \"adamw\"\nlr        = " + lr +
         "\nclip_norm = 1.0\nschedule  = { kind = \"cosine\", warmup_steps = " + number(warmup) +
         ", min_lr = " + min_lr + " }\n\n[checkpoint]\nevery = \"" + number(every) +
         " steps\"\n\n[train]\nsteps      = " + number(draft.steps) +
         "\neval_every = " + number(every) + "\n";
}

/// Writes the shards, and the tokenizer if there is one. Fills in what the draft lacks.
Status prepare_own(storage::Files& files, Draft& draft) {
  const auto bytes = files.read(draft.text);
  if (!bytes) return bytes.error();
  const auto text = bytes->text();
  std::optional<storage::Tokenizer> tokenizer;
  if (draft.vocabulary > bytes_alone) {
    auto trained = storage::train_tokenizer(text.substr(0, storage::split_point(text, kept_apart)),
                                            draft.vocabulary);
    if (!trained) return trained.error();
    tokenizer = std::move(*trained);
    const auto saved =
        storage::replace_file(files, draft.name + "_tokenizer.json", tokenizer->json());
    if (!saved) return saved;
  }
  const auto prepared = storage::prepare_tokens(
      files, {.input = draft.text, .prefix = draft.name, .validate = kept_apart},
      tokenizer ? &*tokenizer : nullptr);
  if (!prepared) return prepared.error();
  draft.tokens = prepared->train.tokens;
  if (prepared->validate.tokens <= draft.size.context)
    return Error{draft.text + ": it has " + thousands(static_cast<double>(text.size())) +
                 " bytes; 5 % of it are too short for a sample of " +
                 std::to_string(draft.size.context) + " tokens; give a longer text"};
  return Done{};
}

std::string plural(std::int64_t count, const std::string& what) {
  return thousands(static_cast<double>(count)) + " " + what + (count == 1 ? "" : "s");
}

/// Says what `troupe plan` says of the run, in two lines.
Status tell_plan(storage::Files& files, const config::RunConfig& config) {
  const auto setup = set_up(files, config);
  if (!setup) return setup.error();
  const Shares shares{1, devices_wanted(config), own_machine_share().memory()};
  const auto profile = measure_this_machine(
      shares.devices,
      kernels::is_on_tensor_cores(setup->precision) ? kernels::fastest_bf16() : setup->precision);
  const auto times = unit_times(config, *setup, profile, [&](const MeasuredModel& measured) {
    return measure_units_here(measured, shares.devices);
  });
  const auto request = plan_request(config, *setup, this_machine(shares, profile), profile, times);
  const auto plan = request ? schedules::make_plan(*request) : request.error();
  if (!plan) return plan.error();
  std::int64_t memory = 0;
  for (const auto& seat : plan->seats) memory += seat.memory.total();
  const double step = plan->step.count();
  print_wrapped("model: " + count_text(static_cast<double>(setup->parameters())) + " parameters; " +
                memory_text(static_cast<double>(memory)) +
                " of memory while it trains\ntime: about " +
                duration(step * static_cast<double>(config.train.steps)) + " for " +
                plural(config.train.steps, "step") + " on this machine\n");
  return Done{};
}

ExitCode start_own(const InitArguments& given, const CommonFlags& flags) {
  InitArguments arguments = given;
  fill_in(arguments);
  if (arguments.text.empty())
    return complain(ExitCode::usage,
                    "troupe init: name the text to train on, such as `troupe init book.txt`");
  const auto files = storage::disk_files();
  const std::string path = arguments.name + ".toml";
  const auto taken = files->exists(path);
  if (!taken.ok()) return invalid(taken.error());
  if (*taken) return invalid({path + ": is there already; remove it, or give another --name"});
  std::error_code error;
  const auto bytes = static_cast<std::int64_t>(std::filesystem::file_size(arguments.text, error));
  if (error) return invalid({arguments.text + ": " + error.message()});
  Draft draft{.name = arguments.name, .text = arguments.text, .size = model_sizes.front()};
  draft.vocabulary = arguments.vocabulary.value_or(vocabulary_for(bytes));
  const bool is_bytes = draft.vocabulary == bytes_alone;
  draft.size = size_for(is_bytes ? bytes : bytes / tokens_of_bytes);
  bool is_known = arguments.size == "auto";
  for (const auto& size : model_sizes)
    if (size.name == arguments.size) {
      draft.size = size;
      is_known = true;
    }
  if (!is_known)
    return complain(ExitCode::usage, "troupe init: found the size '" + arguments.size +
                                         "', wanted auto, tiny, small, medium or large");
  if (auto prepared = prepare_own(*files, draft); !prepared) return invalid(prepared.error());
  const std::int64_t in_step = draft.size.batch * draft.size.context;
  draft.steps = arguments.steps.value_or(
      std::clamp(passes * draft.tokens / in_step, fewest_steps, most_steps));
  if (auto written = storage::replace_file(*files, path, own_config(draft)); !written)
    return invalid(written.error());
  const auto loaded = config::load({path, {}});
  if (!loaded) return complain(ExitCode::invalid, loaded.error().text);
  if (flags.quiet) return ExitCode::done;
  const std::string tokenizer =
      is_bytes ? ""
               : "; " + draft.name + "_tokenizer.json has " + plural(draft.vocabulary, "token");
  print_wrapped("data: " + plural(draft.tokens, is_bytes ? "byte" : "token") +
                " for training, the last 5 % of the text for validation" + tokenizer + "\n");
  if (auto told = tell_plan(*files, loaded->config); !told) return invalid(told.error());
  std::printf("%s is written. Next:\n    troupe train %s\n    troupe sample %s\n", path.c_str(),
              path.c_str(), draft.name.c_str());
  return ExitCode::done;
}

}  // namespace

void add_init(Program& program) {
  auto [command, arguments] = add_command(program, program.app, "init",
                                          "make data and a configuration from a text", start_own);
  command->add_option("text", arguments.text,
                      "a text file or .jsonl (default: ask, if stdin is a terminal)");
  command->add_option("--name", arguments.name, "name of the run (default: that of the text)")
      ->check([](const std::string& name) {
        return name_of_text(name + ".txt") == name
                   ? std::string()
                   : "found '" + name + "', wanted letters, digits, dots, dashes and underscores";
      });
  command
      ->add_option("--size", arguments.size,
                   "size of the model: auto, tiny, small, medium or large (default: auto, by the "
                   "length of the text)")
      ->check(CLI::IsMember({"auto", "tiny", "small", "medium", "large"}));
  command
      ->add_option("--vocabulary", arguments.vocabulary,
                   "tokens of the tokenizer; 256 means bytes (default: by the length of the text)")
      ->check(CLI::Range(bytes_alone, std::int64_t{1} << 20));
  command
      ->add_option("--steps", arguments.steps,
                   "training steps (default: 8 passes over the text, from 100 to 5000)")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 40));
}

}  // namespace troupe::apps
