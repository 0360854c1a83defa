#include "apps/run_folder.h"

#include <filesystem>
#include <system_error>

#include "apps/recorder.h"
#include "storage/safetensors.h"

namespace troupe::apps {
namespace {

/// A run's folder for a fresh start. What an earlier run of that name left is moved aside, not
/// overwritten.
Result<std::string> fresh_folder(const std::string& folder, std::string& moved) {
  namespace fs = std::filesystem;
  std::error_code error;
  if (fs::exists(folder, error)) {
    int number = 1;
    while (fs::exists(folder + "." + std::to_string(number), error)) ++number;
    moved = folder + "." + std::to_string(number);
    fs::rename(folder, moved, error);
    if (error) return Error{folder + ": cannot be moved to " + moved + ": " + error.message()};
  }
  fs::create_directories(folder, error);
  if (error) return Error{folder + ": cannot be made: " + error.message()};
  return folder;
}

}  // namespace

Result<std::string> run_folder(const config::RunConfig& config, bool resume, std::string& moved) {
  const std::string folder = "runs/" + config.name;
  if (!resume) return fresh_folder(folder, moved);
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return Error{folder + ": cannot be made: " + error.message()};
  return folder;
}

Value state_event(const config::RunConfig& config, const std::string& state,
                  const std::string& why) {
  Value value = event("run.state", config.name);
  value.set("state", state);
  if (!why.empty()) value.set("why", why);
  return value;
}

Value ended_event(const config::RunConfig& config, const std::string& state, const std::string& why,
                  std::int64_t skipped_steps) {
  Value value = state_event(config, state, why);
  if (skipped_steps > 0) value.set("skipped_steps", skipped_steps);
  return value;
}

Value warning_event(const config::RunConfig& config, const std::string& text) {
  Value value = event("warn", config.name);
  value.set("text", text);
  return value;
}

Status export_weights(storage::Files& files, const std::string& path,
                      const std::vector<NamedTensor>& tensors) {
  const std::string unfinished = path + ".part";
  if (auto removed = storage::remove_if_there(files, unfinished); !removed) return removed;
  std::vector<storage::TensorView> views;
  views.reserve(tensors.size());
  for (const auto& [name, tensor] : tensors) views.push_back(storage::view(name, tensor));
  storage::sort_as_ecosystem(views);
  if (auto written = storage::write_safetensors(files, unfinished, views); !written)
    return written.error();
  return files.rename(unfinished, path);
}

}  // namespace troupe::apps
