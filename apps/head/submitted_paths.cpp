#include "apps/head/submitted_paths.h"

#include <algorithm>
#include <string_view>

#include "config/schema/dotted.h"
#include "core/mixture.h"

namespace troupe::apps {
namespace {

/// Returns whether a file, or one that a star in its name stands for, is there.
bool is_there(storage::Files& files, const std::string& path) {
  const auto star = path.find('*');
  if (star == std::string::npos) {
    const auto there = files.exists(path);
    return there.ok() && *there;
  }
  const auto slash = path.rfind('/', star);
  const auto entries = files.list(path.substr(0, slash));
  if (!entries) return false;
  const auto begin = path.substr(slash + 1, star - slash - 1);
  for (const auto& entry : *entries)
    if (entry.name.starts_with(begin)) return true;
  return false;
}

/// Returns the absolute name of a file in the folder, or the name itself.
std::string resolved(storage::Files& files, const std::string& folder, const std::string& name) {
  if (name.empty() || name.starts_with('/')) return name;
  const std::string whole = folder + "/" + name;
  return is_there(files, whole) ? whole : name;
}

/// Resolves a data spec: "book.txt?tokenizer=words.json".
std::string resolved_data(storage::Files& files, const std::string& folder,
                          const std::string& spec) {
  if (spec.starts_with("made:")) return spec;
  const auto question = std::min(spec.find('?'), spec.size());
  std::string out = resolved(files, folder, spec.substr(0, question));
  for (auto at = question; at < spec.size();) {
    const auto end = std::min(spec.find('&', at + 1), spec.size());
    const std::string option = spec.substr(at + 1, end - at - 1);
    const auto equals = std::min(option.find('='), option.size() - 1) + 1;
    const auto key = option.substr(0, equals);
    const bool is_file = key == "tokenizer=" || key == "labels=";
    out += spec[at] + key +
           (is_file ? resolved(files, folder, option.substr(equals)) : option.substr(equals));
    at = end;
  }
  return out;
}

/// Resolves the sources of a mixture.
std::string resolved_mixture(storage::Files& files, const std::string& folder,
                             const std::string& text) {
  auto mixture = Mixture::parse(text);
  if (!mixture) return text;
  for (auto& source : mixture->sources) source = resolved_data(files, folder, source);
  return mixture->text();
}

}  // namespace

void resolve_inputs(storage::Files& files, const Submitter& from, Value& config) {
  if (from.folder.empty()) return;
  const auto replace = [&](std::string_view key, auto resolve) {
    const Value* value = config::value_at(config, key);
    if (!value || !value->text()) return;
    const std::string name = *value->text();
    if (const std::string whole = resolve(files, from.folder, name); whole != name)
      config::set_at(config, key, whole);
  };
  replace("data.train", resolved_data);
  replace("data.mix", resolved_mixture);
  replace("data.validate", resolved_data);
  const Value* init = config::value_at(config, "model.init");
  if (init && init->text() && init->text()->ends_with(".safetensors"))
    replace("model.init", resolved);
  // The name of a schedule is no path.
  const Value* schedule = config::value_at(config, "pipeline.schedule");
  if (schedule && schedule->text() && schedule->text()->find('/') != std::string::npos)
    replace("pipeline.schedule", resolved);
}

Error with_place(Error error, const HostFacts& head, const Submitter& from) {
  const bool is_absent = error.text.find("o such file") != std::string::npos;
  const bool is_here = from.host == head.host;
  if (!is_absent || from.host.empty() || (is_here && from.folder == head.folder)) return error;
  if (is_here) {
    error.text += ", and in " + from.folder;
  } else {
    error.text += " on " + head.host + ", where the head runs; files of " + from.host +
                  " must be copied there, or lie on a disk that both have";
  }
  return error;
}

}  // namespace troupe::apps
