#include "apps/run/live_changes.h"

#include "config/rate_changes.h"
#include "config/run_config.h"
#include "config/schema.h"
#include "config/toml/toml.h"

namespace troupe::apps {
namespace {

constexpr std::string_view key = "optimizer.changes";

std::string path_of(const config::Loaded& loaded) {
  return "runs/" + loaded.config.name + "/changes.toml";
}

}  // namespace

Status keep_changes(storage::Files& files, const config::Loaded& loaded) {
  const Value* changes = config::value_at(loaded.tree, key);
  if (!changes) return Done{};
  const std::string text =
      "# What was set while the run was under way. It is resumed with this; do not change it.\n" +
      std::string(key) + " = " + config::to_toml(*changes) + "\n";
  return storage::replace_file(files, path_of(loaded), text);
}

Status take_changes(storage::Files& files, config::Loaded& loaded) {
  const std::string path = path_of(loaded);
  const auto there = files.exists(path);
  if (!there.ok()) return there.error();
  if (!*there) return Done{};
  const auto bytes = files.read(path);
  if (!bytes) return bytes.error();
  const auto tree = config::parse_toml(bytes->text());
  if (!tree) return within(path, tree.error());
  const Value* changes = config::value_at(*tree, key);
  if (!changes || !changes->text())
    return Error{path + ": found no text " + std::string(key) +
                 "; it was written by another program"};
  if (auto good = config::parse_rate_changes(*changes->text()); !good)
    return within(path, good.error());
  config::set_at(loaded.tree, key, *changes);
  loaded.config = config::read_run_config(loaded.tree);
  return Done{};
}

}  // namespace troupe::apps
