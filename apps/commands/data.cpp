#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string_view>

#include "apps/command.h"
#include "apps/events/number_text.h"
#include "core/json.h"
#include "storage/data/data_tools.h"

namespace troupe::apps {
namespace {

struct MakeArguments {
  std::string spec;
  std::string to;
  std::int64_t context = 256;
};

struct PrepareArguments {
  std::string input;
  std::string prefix;
  std::string tokenizer;
  std::int64_t train_tokenizer = 0;
  std::int64_t shard_tokens = 100'000'000;
  std::string validate;
};

struct InspectArguments {
  std::string spec;
};

ExitCode make(const MakeArguments& arguments, const CommonFlags& flags) {
  const auto files = storage::disk_files();
  const auto data = storage::open_dataset(arguments.spec, {arguments.context, 0}, *files);
  if (!data) return invalid(data.error());
  const auto written = storage::write_dataset(*files, **data, arguments.to);
  if (!written) return invalid(written.error());
  if (flags.quiet) return ExitCode::done;
  std::printf("%s\n", (*data)->description().c_str());
  for (const auto& file : *written) std::printf("%s\n", file.c_str());
  return ExitCode::done;
}

/// Parses a share: "5%" or "0.05".
std::optional<double> parse_share(const std::string& text) {
  char* end = nullptr;
  double share = std::strtod(text.c_str(), &end);
  const std::string_view unit = end;
  if (end == text.c_str() || (unit != "%" && !unit.empty())) return {};
  if (unit == "%") share /= 100;
  return share > 0 && share <= 0.5 ? std::optional(share) : std::nullopt;
}
std::string wrong_share(const std::string& text) {
  return parse_share(text) ? "" : "found '" + text + "', wanted a share up to 50%, such as 5%";
}

/// Returns the named tokenizer, or one that is trained on the text.
Result<storage::Tokenizer> open_or_train(storage::Files& files, const PrepareArguments& arguments) {
  if (!arguments.tokenizer.empty()) return storage::Tokenizer::open(files, arguments.tokenizer);
  const auto text = files.read(arguments.input);
  if (!text) return text.error();
  const auto all = text->text();
  const double kept_apart = parse_share(arguments.validate).value_or(0);
  return storage::train_tokenizer(all.substr(0, storage::split_point(all, kept_apart)),
                                  arguments.train_tokenizer);
}

/// Returns the tokenizer, if one is wanted, and writes it beside the shards.
Result<std::optional<storage::Tokenizer>> tokenizer_for(storage::Files& files,
                                                        const PrepareArguments& arguments) {
  if (arguments.tokenizer.empty() && arguments.train_tokenizer == 0)
    return std::optional<storage::Tokenizer>();
  auto tokenizer = open_or_train(files, arguments);
  if (!tokenizer) return tokenizer.error();
  const std::string path = arguments.prefix + "_tokenizer.json";
  if (auto saved = storage::replace_file(files, path, tokenizer->json()); !saved)
    return saved.error();
  std::printf("%s\n", path.c_str());
  return std::optional(std::move(*tokenizer));
}

ExitCode prepare(const PrepareArguments& arguments, const CommonFlags& flags) {
  const auto files = storage::disk_files();
  const auto tokenizer = tokenizer_for(*files, arguments);
  if (!tokenizer) return invalid(tokenizer.error());
  storage::PrepareOrder order;
  order.input = arguments.input;
  order.prefix = arguments.prefix;
  order.shard_tokens = arguments.shard_tokens;
  order.validate = parse_share(arguments.validate).value_or(0);
  const bool wide = *tokenizer && (*tokenizer)->vocabulary() > 65536;
  order.width = wide ? storage::TokenShard::Width::bits32 : storage::TokenShard::Width::bits16;
  const auto prepared = storage::prepare_tokens(*files, order, *tokenizer ? &**tokenizer : nullptr);
  if (!prepared) return invalid(prepared.error());
  if (flags.quiet) return ExitCode::done;
  const auto tell = [](const storage::PreparedPart& part, const char* what) {
    for (const auto& file : part.files) std::printf("%s\n", file.c_str());
    const double each = static_cast<double>(part.bytes) /
                        static_cast<double>(std::max<std::int64_t>(part.tokens, 1));
    std::printf(
        "%s%s %s, %s tokens%s\n", what, thousands(static_cast<double>(part.documents)).c_str(),
        part.documents == 1 ? "document" : "documents",
        thousands(static_cast<double>(part.tokens)).c_str(),
        part.tokens == part.bytes ? "" : (" of " + brief(each, 2) + " bytes on average").c_str());
  };
  tell(prepared->train, "");
  if (!prepared->validate.files.empty()) tell(prepared->validate, "for validation: ");
  return ExitCode::done;
}

ExitCode inspect_data(const InspectArguments& arguments, const CommonFlags& flags) {
  const auto files = storage::disk_files();
  const auto found = storage::inspect_data(*files, arguments.spec);
  if (!found) return invalid(found.error());
  std::printf("%s%s",
              flags.output == "json" ? to_json(*found).c_str() : to_json_lines(*found).c_str(),
              flags.output == "json" ? "\n" : "");
  return ExitCode::done;
}

}  // namespace

void add_data(Program& program) {
  CLI::App& group = add_group(program, "data", "generate, prepare and inspect data");
  auto making = add_command(program, group, "make", "write synthetic data to files", make);
  making.app
      ->add_option("spec", making.arguments.spec,
                   "made:markov?..., made:glyphs?..., made:gaussians?...")
      ->required();
  making.app
      ->add_option("--to", making.arguments.to,
                   "the file to write: .bin, .safetensors, or an IDX name")
      ->required();
  making.app->add_option("--context", making.arguments.context, "tokens in a sample (default: 256)")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 24));
  auto preparing =
      add_command(program, group, "prepare", "tokenize text into token shards", prepare);
  preparing.app->add_option("input", preparing.arguments.input, "a text file or .jsonl")
      ->required();
  preparing.app->add_option("--to", preparing.arguments.prefix, "prefix of the shards' names")
      ->required();
  auto* given = preparing.app->add_option(
      "--tokenizer", preparing.arguments.tokenizer,
      "tokenizer.json, or vocab.json beside merges.txt (default: one token per byte)");
  preparing.app
      ->add_option("--train-tokenizer", preparing.arguments.train_tokenizer,
                   "first train a tokenizer with this vocabulary size on the text")
      ->check(CLI::Range(std::int64_t{257}, std::int64_t{1} << 20))
      ->excludes(given);
  preparing.app
      ->add_option("--validate", preparing.arguments.validate,
                   "share at the end of the input to keep apart for validation, such as 5%, in "
                   "PREFIX-valid_*.bin (default: none)")
      ->check(wrong_share);
  preparing.app
      ->add_option("--shard-tokens", preparing.arguments.shard_tokens,
                   "maximum number of tokens per shard (default: 100 million)")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 40));
  auto inspecting = add_command(program, group, "inspect",
                                "show what a file or synthetic data contains", inspect_data);
  inspecting.app->add_option("data", inspecting.arguments.spec, "a data file, or made:...")
      ->required();
}

}  // namespace troupe::apps
