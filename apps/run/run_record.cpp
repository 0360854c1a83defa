#include "apps/run/run_record.h"

#include <chrono>
#include <utility>

#include "apps/run/version.h"
#include "apps/weights/export_folder.h"
#include "config/pages/render.h"
#include "config/recipe.h"
#include "config/run_config.h"
#include "config/schema.h"
#include "config/toml/toml.h"
#include "core/json.h"
#include "storage/tokenizer/tokenizer.h"

namespace troupe::apps {
namespace {

constexpr JsonLimits about_limits = {.bytes = std::size_t{16} << 20, .depth = 8};

Value to_value(const RunLife& life) {
  const auto begun = std::chrono::floor<std::chrono::seconds>(life.begun);
  const auto& host = life.host;
  Value value;
  value.set("time", std::int64_t{begun.time_since_epoch().count()});
  value.set("step", life.step);
  value.set("command", Value::List(host.command.begin(), host.command.end()));
  value.set("directory", host.folder);
  value.set("host", host.host);
  value.set("version", TROUPE_VERSION);
  value.set("commit", commit);
  value.set("parameters", life.setup.parameters());
  value.set("data", life.setup.train->description());
  if (const auto least = life.setup.train->entropy_rate()) value.set("lowest_loss", *least);
  return value;
}

/// Returns the entries of about.json. Renames the file if it cannot be read.
Result<Value::List> earlier_lives(storage::Files& files, const std::string& path) {
  const auto there = files.exists(path);
  if (!there.ok()) return there.error();
  if (!*there) return Value::List{};
  const auto bytes = files.read(path);
  if (!bytes) return bytes.error();
  auto about = parse_json(bytes->text(), about_limits);
  const Value* lives = about ? about->find("lives") : nullptr;
  if (lives && lives->list()) return *lives->list();
  const std::string aside = path + ".damaged";
  if (auto moved = files.rename(path, aside); !moved) return moved.error();
  return Error{path + ": " + (about ? "found no list 'lives'" : about.error().text) +
               "; the file is now " + aside + ", and a new one is begun"};
}

Status add_life(storage::Files& files, const std::string& folder, const std::string& run,
                Value life, std::vector<std::string>& warnings) {
  const std::string path = folder + "/about.json";
  auto lives = earlier_lives(files, path);
  if (!lives) warnings.push_back(lives.error().text);
  Value::List all = lives ? std::move(*lives) : Value::List{};
  all.push_back(std::move(life));
  Value about;
  about.set("run", run);
  about.set("lives", std::move(all));
  return storage::replace_file(files, path, to_json_lines(about));
}

/// Returns the text of config.toml. `tree` contains the choices. Keys that decide numbers keep
/// their configured values, so that the run can resume with this configuration. The precision is
/// the chosen one, as in the run's checkpoints.
std::string config_text(const config::Loaded& loaded, Value tree) {
  const auto schema = config::schema_for(loaded.tree);
  for (const auto& key : schema->keys())
    if (const Value* asked = config::value_at(loaded.tree, key.name);
        asked && key.name != "precision.compute" && config::is_recipe(key, loaded.tree))
      config::set_at(tree, key.name, *asked);
  config::Loaded resolved = loaded;
  resolved.tree = std::move(tree);
  return "# The run's configuration with every key. `troupe train` repeats the run with it.\n" +
         config::show(resolved, config::Show::values);
}

/// Renames the configuration of an earlier life if this life's differs.
Status number_earlier_config(storage::Files& files, const std::string& folder,
                             const std::string& text) {
  const std::string path = folder + "/config.toml";
  const auto there = files.exists(path);
  if (!there.ok()) return there.error();
  if (!*there) return Done{};
  const auto before = files.read(path);
  if (!before) return before.error();
  if (before->text() == text) return Done{};
  const auto numbered = [&](int number) {
    return folder + "/config." + std::to_string(number) + ".toml";
  };
  for (int number = 1;; ++number) {
    const auto taken = files.exists(numbered(number));
    if (!taken.ok()) return taken.error();
    if (!*taken) return storage::replace_file(files, numbered(number), before->text());
  }
}

Status keep_tokenizer(storage::Files& files, const std::string& data, const std::string& path) {
  const auto source = tokenizer_for(files, data);
  if (!source) return source.error();
  if (source->empty()) return Done{};
  const auto tokenizer = storage::Tokenizer::open(files, *source);
  if (!tokenizer) return tokenizer.error();
  return storage::replace_file(files, path, tokenizer->json());
}

}  // namespace

Status keep_config(storage::Files& files, const std::string& folder, const config::Loaded& loaded,
                   Value tree) {
  return storage::replace_file(files, folder + "/config.toml",
                               config_text(loaded, std::move(tree)));
}

Result<std::vector<LongerKey>> keys_to_extend(storage::Files& files, const std::string& folder,
                                              std::int64_t more) {
  const std::string path = folder + "/config.toml";
  const auto unknown = [&](const Error& error) {
    return Error{path +
                 ": a run that is extended leaves its configuration there, but: " + error.text};
  };
  const auto text = files.read(path);
  if (!text) return unknown(text.error());
  auto tree = config::parse_toml(text->text());
  if (!tree) return unknown(tree.error());
  const auto kept = config::load_message(std::move(*tree), path);
  if (!kept) return unknown(kept.error());
  std::vector<LongerKey> keys = {{"train.steps", kept->config.train.steps + more}};
  const Value recipe = config::recipe_of(kept->tree);
  const std::string total_steps = "optimizer.schedule.total_steps";
  const Value* total = config::value_at(recipe, total_steps);
  if (total && total->integer() && *total->integer() > 0)
    keys.push_back({total_steps, *total->integer()});
  return keys;
}

std::vector<std::string> describe_run(storage::Files& files, const std::string& folder,
                                      const config::Loaded& loaded, Value tree,
                                      const RunLife& life) {
  std::vector<std::string> warnings;
  const auto note = [&](const Status& written) {
    if (!written) warnings.push_back(within("the run's description", written.error()).text);
  };
  note(number_earlier_config(files, folder, config_text(loaded, tree)));
  note(keep_config(files, folder, loaded, std::move(tree)));
  note(add_life(files, folder, loaded.config.name, to_value(life), warnings));
  const auto& data = loaded.config.data;
  const auto sources = training_data(data);
  const std::string train = sources ? sources->front() : "";
  note(keep_tokenizer(files, train, folder + "/tokenizer.json"));
  note(keep_beside_for_run(files, loaded.config.model.init, folder));
  if (data.validate && *data.validate != train)
    note(keep_tokenizer(files, *data.validate, folder + "/tokenizer-validate.json"));
  return warnings;
}

}  // namespace troupe::apps
