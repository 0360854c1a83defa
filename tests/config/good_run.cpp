#include "good_run.h"

#include <utility>

using namespace troupe;

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
                       .read = in_memory({{"run.toml", text}})});
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
