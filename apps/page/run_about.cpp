#include "apps/page/run_about.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "apps/events/number_text.h"
#include "apps/run/timeline_file.h"
#include "config/toml/toml.h"
#include "core/json.h"
#include "core/units.h"
#include "schedules/schedule.h"
#include "schedules/text.h"

namespace troupe::apps {
namespace {

constexpr std::size_t most_bytes = std::size_t{1} << 20;
// A head reads the timeline of a run that somebody looks at, and has other things to do.
constexpr std::uint64_t most_timeline_bytes = std::uint64_t{16} << 20;
constexpr std::size_t most_spans = 4000;
constexpr JsonLimits limits = {.bytes = most_bytes, .depth = 16};

/// Reads a file that is not too long; nothing if it is absent or cannot be read.
std::optional<std::string> text_of_file(storage::Files& files, const std::string& path) {
  const auto file = files.open(path);
  if (!file || (*file)->size() > most_bytes) return {};
  const auto bytes = files.read(path);
  if (!bytes) return {};
  return std::string(bytes->text());
}

const Value& part_of(const Value& tree, std::string_view key) {
  static const Value none;
  const Value* found = tree.find(key);
  return found ? *found : none;
}

class Facts {
 public:
  void add(const char* name, std::string text) {
    if (!text.empty()) all_.emplace_back(Value::List{name, std::move(text)});
  }
  Value take() { return std::move(all_); }

 private:
  Value::List all_;
};

/// Writes a model: "gpt2, layers 2, width 64".
std::string model_text(const Value& model) {
  std::string text = text_of(model, "kind");
  if (!model.map()) return text;
  for (const auto& [key, value, position] : *model.map())
    if (value.integer() || value.list()) text += ", " + key + " " + to_json(value);
  return text;
}

std::string plan_text(const Value& pipeline) {
  std::string text = text_of(pipeline, "schedule");
  const Value& stages = part_of(pipeline, "stages");
  const auto count = stages.list()      ? std::ssize(*stages.list()) - 1
                     : stages.integer() ? *stages.integer()
                                        : 0;
  if (count > 0) text += ", " + counted(count, "stage");
  if (stages.list() && count > 1) text += " from layers " + to_json(stages);
  if (const auto replicas = integer_in(pipeline, "replicas"); replicas > 1)
    text += ", " + counted(replicas, "replica");
  return text;
}

void add_config(const Value& config, Facts& facts, const Value& life) {
  facts.add("model", model_text(part_of(config, "model")));
  if (const auto parameters = integer_in(life, "parameters"); parameters > 0)
    facts.add("parameters", count_text(static_cast<double>(parameters)));
  const std::string data = text_of(life, "data");
  facts.add("data", data.empty() ? text_of(part_of(config, "data"), "train") : data);
  const Value& batch = part_of(config, "batch");
  if (const auto samples = integer_in(batch, "global"); samples > 0)
    facts.add("batch",
              counted(samples, "sample") + (integer_in(batch, "micro") > 0
                                                ? ", micro-batches of " + text_of(batch, "micro")
                                                : ""));
  const Value& optimizer = part_of(config, "optimizer");
  const std::string rates = text_of(part_of(optimizer, "schedule"), "kind");
  if (const std::string kind = text_of(optimizer, "kind"); !kind.empty())
    facts.add("optimizer", kind + ", learning rate " + text_of(optimizer, "lr") +
                               (rates.empty() ? "" : ", " + rates));
  facts.add("precision", text_of(part_of(config, "precision"), "compute"));
  facts.add("plan", plan_text(part_of(config, "pipeline")));
}

void add_life(const Value& life, std::size_t lives, Facts& facts) {
  facts.add("host", text_of(life, "host"));
  const std::string commit = text_of(life, "commit");
  facts.add("version",
            text_of(life, "version") + (commit.empty() ? std::string() : " (" + commit + ")"));
  std::string command;
  if (const Value* words = life.find("command"); words && words->list())
    for (const auto& word : *words->list())
      if (word.text()) command += (command.empty() ? "" : " ") + *word.text();
  facts.add("command", command);
  if (lives > 1) facts.add("led by", counted(lives, "process", "es") + ", one after the other");
}

/// Keeps the newest spans of each device, so that the answer stays short.
Value to_value(schedules::Timeline timeline) {
  std::ranges::stable_sort(timeline.spans, {}, &schedules::Span::start);
  const auto each = most_spans / static_cast<std::size_t>(std::max(timeline.devices, 1));
  std::vector<std::size_t> left(static_cast<std::size_t>(timeline.devices),
                                std::max<std::size_t>(each, 1));
  Value::List spans;
  for (auto span = timeline.spans.rbegin(); span != timeline.spans.rend(); ++span) {
    auto& more = left[static_cast<std::size_t>(span->device)];
    if (more == 0) continue;
    --more;
    spans.emplace_back(Value::List{span->device, to_string(span->action), span->start, span->end});
  }
  std::ranges::reverse(spans);
  Value value;
  value.set("devices", timeline.devices);
  value.set("spans", std::move(spans));
  return value;
}

}  // namespace

Value about_run(storage::Files& files, const std::string& folder) {
  Value about = Value::Map{};
  Value::List flaws;
  Value life, config;
  std::size_t lives = 0;
  if (const auto text = text_of_file(files, folder + "/about.json")) {
    const auto read = parse_json(*text, limits);
    const Value* all = read ? read->find("lives") : nullptr;
    if (all && all->list() && !all->list()->empty()) {
      lives = all->list()->size();
      life = all->list()->back();
      if (const auto begun = number_in(all->list()->front(), "time"); begun > 0)
        about.set("begun", begun);
    }
    if (!read) flaws.emplace_back(folder + "/about.json: " + read.error().text);
  }
  if (auto read = config::parse_toml(config_of_run(files, folder)))
    config = std::move(*read);
  else
    flaws.emplace_back(folder + "/config.toml: " + read.error().text);
  Facts facts;
  add_config(config, facts, life);
  add_life(life, lives, facts);
  about.set("facts", facts.take());
  if (const auto steps = integer_in(part_of(config, "train"), "steps"); steps > 0)
    about.set("steps", steps);
  if (const Value* least = life.find("lowest_loss"); least && least->is_number())
    about.set("lowest_loss", least->number());
  const std::string timeline = folder + "/timeline.jsonl";
  if (const auto file = files.open(timeline); file && (*file)->size() > most_timeline_bytes) {
    flaws.emplace_back(timeline + ": found " + size_text((*file)->size()) + "; wanted at most " +
                       size_text(most_timeline_bytes) +
                       " to draw it; `troupe trace export` reads it");
  } else if (file) {
    if (auto read = read_timeline(files, timeline))
      about.set("timeline", to_value(std::move(*read)));
    else
      flaws.emplace_back(read.error().text);
  }
  if (!flaws.empty()) about.set("flaws", std::move(flaws));
  return about;
}

std::string config_of_run(storage::Files& files, const std::string& folder) {
  return text_of_file(files, folder + "/config.toml").value_or("");
}

}  // namespace troupe::apps
