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

/// Who may include whom.
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

/// The only places where a library may be named. apps/run/version.cpp says the versions of all.
const std::map<std::string, Folders> library_belongs_to = {
    {"caf/", {"actors", "apps", "bench"}},
    {"zmq", {"transport", "bench/peers/zmq_peer.cpp"}},
    {"msgpack", {"transport", "apps/run/version.cpp"}},
    {"nccl", {"transport/nccl_"}},
    {"cuda", {"kernels/cuda", "core/cuda_device.cpp", "transport/nccl_"}},
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
  std::string file;  // From the root: "models/train/stage.cpp".
  std::string what;
  bool ours = false;
};

std::string folder_of(const std::string& path) { return path.substr(0, path.find('/')); }

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
