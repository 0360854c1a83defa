#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "catch.h"

namespace fs = std::filesystem;

namespace {

using Folders = std::set<std::string>;

/// The folders that each folder may include.
const std::map<std::string, Folders> allowed = {
    {"core", {}},
    {"kernels", {"core"}},
    {"models", {"core", "kernels"}},
    {"storage", {"core"}},
    {"schedules", {"core"}},
    {"transport", {"core"}},
    {"config", {"core", "models", "schedules"}},
    {"actors", {"core", "kernels", "models", "storage", "schedules", "transport", "config"}},
    {"simulation", {"core", "storage", "schedules", "transport", "actors"}},
    {"apps",
     {"simulation", "core", "kernels", "models", "storage", "schedules", "transport", "config",
      "actors", "bench"}},
    {"bench",
     {"core", "kernels", "models", "storage", "schedules", "transport", "config", "actors"}},
};

/// The other subfolders that a subfolder may include. A folder that is missing here has no
/// restriction among its subfolders.
const std::map<std::string, Folders> allowed_within = {
    {"core", {}},
    {"core/memory", {"core"}},
    {"core/threads", {"core"}},
    {"kernels", {"kernels/cpu/parts"}},
    {"kernels/cpu", {"kernels", "kernels/cpu/parts"}},
    {"kernels/cpu/parts", {"kernels"}},
    {"kernels/cuda",
     {"kernels", "kernels/cuda/machine", "kernels/cuda/cublas_lt", "kernels/cuda/cudnn"}},
    {"kernels/cuda/attention", {"kernels", "kernels/cuda", "kernels/cuda/machine"}},
    {"kernels/cuda/experts", {"kernels", "kernels/cuda", "kernels/cuda/machine"}},
    {"kernels/cuda/machine", {}},
    {"kernels/cuda/cublas_lt", {"kernels", "kernels/cuda/machine"}},
    {"kernels/cuda/cudnn", {"kernels", "kernels/cuda/machine"}},
    {"kernels/products", {"kernels", "kernels/cpu/parts"}},
    {"kernels/rehearsed", {"kernels"}},
    {"models", {}},
    {"models/layers", {"models"}},
    {"models/layers/images", {"models", "models/layers"}},
    {"models/layers/attention", {"models", "models/layers"}},
    {"models/layers/losses", {"models", "models/layers"}},
    {"models/layers/networks", {"models", "models/layers"}},
    {"models/description",
     {"models", "models/layers", "models/layers/attention", "models/layers/images",
      "models/layers/losses", "models/layers/networks"}},
    {"models/description/expansion",
     {"models", "models/description", "models/layers", "models/layers/losses"}},
    {"models/train", {"models", "models/layers"}},
    {"models/stale", {"models", "models/train"}},
    {"storage/files", {}},
    {"storage/unicode", {}},
    {"storage/tokenizer", {"storage/files", "storage/unicode"}},
    {"storage/data", {"storage/files", "storage/tokenizer"}},
    {"storage/checkpoint", {"storage/files", "storage/data"}},
    {"schedules", {}},
    {"schedules/check", {"schedules"}},
    {"schedules/generators", {"schedules", "schedules/check"}},
    {"schedules/simulate", {"schedules"}},
    {"schedules/search", {"schedules", "schedules/generators", "schedules/simulate"}},
    {"schedules/partition", {"schedules", "schedules/simulate"}},
    {"schedules/plan",
     {"schedules", "schedules/check", "schedules/generators", "schedules/simulate",
      "schedules/search", "schedules/partition"}},
    {"schedules/formats", {"schedules", "schedules/simulate", "schedules/plan"}},
    {"transport/keys", {}},
    {"transport/wire", {}},
    {"transport/control", {"transport/keys", "transport/wire"}},
    {"transport/channels", {"transport/keys"}},
    {"transport/links", {"transport/channels"}},
    {"transport", {"transport/channels", "transport/control"}},
    {"config/toml", {}},
    {"config/schema", {}},
    {"config/section", {"config/schema"}},
    {"config/huggingface", {"config/toml", "config/schema"}},
    {"config", {"config/toml", "config/schema", "config/section", "config/huggingface"}},
    {"config/pages", {"config", "config/toml"}},
    {"actors", {}},
    {"actors/decide", {"actors"}},
    {"actors/play", {"actors"}},
    {"actors/lead", {"actors", "actors/decide", "actors/play"}},
    {"actors/nodes", {"actors", "actors/decide", "actors/lead", "actors/play"}},
    {"actors/nodes/node", {"actors", "actors/decide", "actors/nodes", "actors/play"}},
    {"simulation/machine", {}},
    {"apps", {}},
    {"apps/machine", {"apps"}},
    {"apps/events", {"apps"}},
    {"apps/report", {"apps/page"}},
    {"apps/hosts", {"apps/machine"}},
    {"apps/gpu", {"apps/hosts"}},
    {"apps/client", {"apps", "apps/machine", "apps/events", "apps/hosts"}},
    {"apps/weights", {}},
    {"apps/samples", {"apps/events", "apps/weights"}},
    {"apps/run",
     {"apps", "apps/machine", "apps/events", "apps/gpu", "apps/samples", "apps/weights"}},
    {"apps/head",
     {"apps", "apps/client", "apps/events", "apps/gpu", "apps/machine", "apps/report", "apps/run"}},
    {"apps/page", {"apps/client", "apps/events", "apps/run"}},
    {"apps/telemetry", {"apps/events", "apps/run"}},
    {"apps/real", {"apps", "apps/hosts", "apps/machine", "apps/run"}},
    {"apps/node",
     {"apps", "apps/client", "apps/gpu", "apps/head", "apps/hosts", "apps/machine", "apps/real",
      "apps/run"}},
    {"apps/commands",
     {"apps", "apps/client", "apps/events", "apps/gpu", "apps/head", "apps/hosts", "apps/machine",
      "apps/node", "apps/page", "apps/real", "apps/report", "apps/run", "apps/samples",
      "apps/telemetry", "apps/weights"}},
};

/// The program's main file, which includes all commands.
const std::string main_function = "apps/troupe.cpp";

constexpr std::size_t most_files = 40;

/// The only folders that may include a library. apps/run/version.cpp includes all of them to print
/// their versions.
const std::map<std::string, Folders> library_belongs_to = {
    {"caf/", {"actors", "apps", "bench", "simulation/machine/caf_"}},
    {"zmq", {"transport", "bench/crowd.cpp", "bench/peers/zmq_peer.cpp"}},
    {"msgpack", {"transport", "apps/run/version.cpp"}},
    {"nccl", {"transport/links/nccl_"}},
    {"cuda", {"kernels/cuda", "transport/links/nccl_"}},
    {"cudnn", {"kernels/cuda/cudnn"}},
    {"cublasLt", {"kernels/cuda/cublas_lt"}},
    {"nvtx3/", {"kernels/cuda"}},
    {"oneapi/dnnl/", {"bench/peers/onednn_product.cpp"}},
    {"hwy/", {"kernels", "apps/run/version.cpp"}},
    {"toml++/", {"config", "apps/run/version.cpp"}},
    {"nlohmann/", {"core", "apps/run/version.cpp"}},
    {"xxhash.h", {"core", "apps/run/version.cpp"}},
    {"CLI/", {"apps"}},
};

struct Include {
  std::string file;  // Relative to the root: "models/train/stage.cpp".
  std::string what;
  bool ours = false;
};

std::string folder_of(const std::string& path) { return path.substr(0, path.find('/')); }
std::string subfolder_of(const std::string& path) { return path.substr(0, path.rfind('/')); }

std::vector<Include> all_includes() {
  std::vector<Include> found;
  const fs::path root = TROUPE_ROOT;
  for (const auto& [folder, unused] : allowed) {
    if (!fs::exists(root / folder)) continue;
    for (const auto& entry : fs::recursive_directory_iterator(root / folder)) {
      const auto extension = entry.path().extension();
      if (extension != ".h" && extension != ".cpp" && extension != ".cu") continue;
      std::ifstream file(entry.path());
      for (std::string line; std::getline(file, line);) {
        if (!line.starts_with("#include ")) continue;
        const auto end = line.find(line[9] == '"' ? '"' : '>', 10);
        const std::string what = line.substr(10, end - 10);
        found.push_back(
            {fs::relative(entry.path(), root).string(), what, allowed.contains(folder_of(what))});
      }
    }
  }
  return found;
}

}  // namespace

TEST_CASE("includes point downwards only", "[house]") {
  const auto includes = all_includes();
  REQUIRE(includes.size() > 100);
  for (const auto& [file, what, ours] : includes) {
    if (!ours) continue;
    const auto from = folder_of(file);
    const auto to = folder_of(what);
    INFO(file << " includes " << what);
    CHECK((from == to || allowed.at(from).contains(to)));
  }
}

TEST_CASE("includes between subfolders point downwards only", "[house]") {
  for (const auto& [file, what, ours] : all_includes()) {
    if (!ours || folder_of(file) != folder_of(what) || file == main_function) continue;
    const auto from = subfolder_of(file), to = subfolder_of(what);
    if (from == to) continue;
    INFO(file << " includes " << what);
    const auto may = allowed_within.find(from);
    CHECK(
        (folder_of(file) == "bench" || (may != allowed_within.end() && may->second.contains(to))));
  }
}

TEST_CASE("no folder of sources has too many files", "[house]") {
  std::map<std::string, std::size_t> files;
  const fs::path root = TROUPE_ROOT;
  for (const auto& [folder, unused] : allowed)
    for (const fs::path& top : {root / folder, root / "tests" / folder}) {
      if (!fs::exists(top)) continue;
      for (const auto& entry : fs::recursive_directory_iterator(top))
        if (entry.is_regular_file())
          ++files[fs::relative(entry.path(), root).parent_path().string()];
    }
  REQUIRE(files.size() > 40);
  for (const auto& [folder, count] : files) {
    INFO(folder << " has " << count << " files; move some into a subfolder");
    CHECK(count <= most_files);
  }
}

TEST_CASE("each library is named in its own place only", "[house]") {
  for (const auto& [file, what, ours] : all_includes()) {
    if (ours) continue;
    for (const auto& [library, places] : library_belongs_to) {
      if (!what.starts_with(library)) continue;
      bool at_home = false;
      for (const auto& place : places) at_home |= file.starts_with(place);
      INFO(file << " includes " << what);
      CHECK(at_home);
    }
  }
}
