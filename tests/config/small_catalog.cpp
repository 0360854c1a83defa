#include "small_catalog.h"

#include <utility>

using namespace troupe;

namespace {

using Type = models::Option::Type;

const models::Option gpt2_options[] = {
    {"vocab", Type::integer, {}, 1, 1e9, "How many tokens there are."},
    {"context", Type::integer, {}, 1, 1e6, "Tokens in one sample."},
    {"width", Type::integer, {}, 1, 1e6, "Numbers for each token."},
    {"layers", Type::integer, {}, 1, 1e4, "Transformer blocks."},
    {"heads", Type::integer, {}, 1, 1e4, "Attention heads of a block."},
    {"tied", Type::boolean, true, 0, 1, "Whether the head is the embedding."},
};
const models::Option mlp_options[] = {
    {"dims", Type::integers, {}, 1, 1e6, "Sizes of the layers, input and output included."},
};

models::Model of_units(std::size_t count) {
  models::Model model;
  model.units.resize(count);
  return model;
}

Result<models::Model> build_gpt2(const Value& options) {
  const auto width = *options.find("width")->integer();
  const auto heads = *options.find("heads")->integer();
  if (width % heads != 0)
    return Error{"width = " + std::to_string(width) +
                 " is not divisible by heads = " + std::to_string(heads)};
  return of_units(static_cast<std::size_t>(*options.find("layers")->integer()));
}

Result<models::Model> build_mlp(const Value& options) {
  return of_units(options.find("dims")->list()->size() - 1);
}

const models::ModelKind kinds[] = {
    {"gpt2", "A GPT.", gpt2_options, build_gpt2},
    {"mlp", "A perceptron.", mlp_options, build_mlp},
};

}  // namespace

config::Catalog small_catalog() { return {kinds}; }

const std::string good_run = R"([model]
kind = "gpt2"
layers = 6
width = 384
heads = 6
context = 256
vocab = 4096

[data]
train = "made:markov"

[batch]
global = 32
micro = 4

[pipeline]
stages = 2

[train]
steps = 1000
)";

config::ReadText in_memory(std::map<std::string, std::string> files) {
  return [files = std::move(files)](const std::string& path) -> Result<std::string> {
    const auto file = files.find(path);
    if (file == files.end()) return Error{"cannot read '" + path + "'"};
    return file->second;
  };
}

Result<config::Loaded> load_text(const std::string& text, std::vector<std::string> settings) {
  return config::load({.path = "run.toml",
                       .settings = std::move(settings),
                       .read = in_memory({{"run.toml", text}})},
                      small_catalog());
}

std::string complaints(std::vector<std::string> settings) {
  const auto loaded = load_text(good_run, std::move(settings));
  return loaded ? loaded->warnings : loaded.error().text;
}

std::string complaint(std::vector<std::string> settings) {
  const std::string all = complaints(std::move(settings));
  for (const std::string mark : {"error: ", "warning: "})
    if (const auto at = all.find(mark); at != all.npos)
      return all.substr(at, all.find('\n', at) - at);
  return all;
}
