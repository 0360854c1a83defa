#include "apps/machine/confinement.h"

#include <algorithm>
#include <system_error>
#include <utility>

#include "core/mixture.h"
#include "storage/checkpoint/checkpoint.h"
#include "storage/data/data_spec.h"

namespace troupe::apps {
namespace {

namespace fs = std::filesystem;

bool is_below(const fs::path& path, const fs::path& folder) {
  const auto [end, unused] = std::ranges::mismatch(folder, path);
  return end == folder.end();
}

}  // namespace

Result<Confinement> Confinement::to(const std::vector<std::string>& more) {
  Confinement confinement;
  std::vector<std::string> folders{"."};
  folders.insert(folders.end(), more.begin(), more.end());
  for (const auto& folder : folders) {
    std::error_code error;
    auto path = fs::canonical(folder, error);
    if (error || !fs::is_directory(path, error))
      return Error{"--allow-path " + folder + ": wanted a folder that is there"};
    confinement.folders_.push_back(std::move(path));
  }
  return confinement;
}

Status Confinement::check(const config::Loaded& loaded) const {
  if (folders_.empty()) return Done{};
  const auto& config = loaded.config;
  std::vector<std::pair<std::string, std::string>> paths{
      {"checkpoint.dir", config.checkpoint.directory}};
  if (config.train.export_path) paths.emplace_back("train.export", *config.train.export_path);
  if (config.model.init.starts_with("run:"))
    paths.emplace_back("model.init",
                       "runs/" + storage::wanted_checkpoint(config.model.init.substr(4)).of);
  else if (config.model.init != "random")
    paths.emplace_back("model.init", config.model.init);
  // A schedule name is no path; a schedule file may lie anywhere.
  if (config.pipeline.schedule.find('/') != std::string::npos)
    paths.emplace_back("pipeline.schedule", config.pipeline.schedule);
  const auto add_data = [&](const std::string& key, const std::string& text) {
    auto spec = storage::DataSpec::parse(text);
    if (!spec || spec->kind() == storage::DataSpec::Kind::made) return;
    paths.emplace_back(key, spec->name());
    if (const auto tokenizer = spec->text("tokenizer")) paths.emplace_back(key, *tokenizer);
  };
  if (!config.data.train.empty()) add_data("data.train", config.data.train);
  if (config.data.mix)
    if (const auto mixture = Mixture::parse(*config.data.mix))
      for (const auto& source : mixture->sources) add_data("data.mix", source);
  if (config.data.validate) add_data("data.validate", *config.data.validate);
  for (const auto& [key, path] : paths)
    if (auto inside = check(key, path); !inside) return inside;
  return Done{};
}

Status Confinement::check(const std::string& key, const std::string& path) const {
  std::error_code error;
  const auto whole = fs::weakly_canonical(fs::absolute(path), error);
  if (!error &&
      std::ranges::any_of(folders_, [&](const auto& folder) { return is_below(whole, folder); }))
    return Done{};
  std::string allowed;
  for (const auto& folder : folders_) allowed += (allowed.empty() ? "" : ", ") + folder.string();
  return Error{key + ": \"" + path + "\" leads out of the folders that this head may use (" +
               allowed + "); take a path below one of them, or start the head with --allow-path " +
               whole.parent_path().string()};
}

}  // namespace troupe::apps
