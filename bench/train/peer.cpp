#include "bench/train/peer.h"

#include <filesystem>
#include <fstream>

#include "bench/child.h"

namespace troupe::bench {
namespace {

namespace fs = std::filesystem;

const fs::path sources = TROUPE_ROOT;

/// Returns the version that a line "torch==2.15.0" of the requirements names.
std::string pinned_version() {
  std::ifstream file(sources / "bench/peers/requirements.txt");
  const std::string begin = "torch==";
  for (std::string line; std::getline(file, line);)
    if (line.starts_with(begin)) return line.substr(begin.size());
  return "";
}

std::string last_line(const ChildResult& result) {
  return result.lines.empty() ? "" : result.lines.back();
}

}  // namespace

Result<TorchPeer> find_torch(const std::string& python) {
  TorchPeer peer;
  peer.script = sources / "bench/peers/peer_torch.py";
  peer.version = pinned_version();
  // Runs are started in folders of their own. A link of a virtual environment must stay a link.
  const bool is_path = python.find('/') != python.npos;
  peer.python = is_path ? fs::absolute(python).string() : python;
  if (peer.version.empty())
    return Error{"this needs the sources of troupe, which are not in " + sources.string()};
  if (python.empty()) {
    const fs::path folder = sources / "build/peer-venv";
    const auto made = run_child({.command = {sources / "scripts/peer-venv", folder}});
    if (!made || made->exit_status != 0)
      return Error{made ? last_line(*made) : "scripts/peer-venv could not be started"};
    peer.python = folder / "bin/python";
  }
  const auto said =
      run_child({.command = {peer.python, peer.script, "--steps", "0"}, .errors = "/dev/null"});
  if (!said || said->exit_status != 0 || said->lines.empty())
    return Error{peer.python + " cannot import torch"};
  const auto facts = torch_facts(said->lines.front());
  if (!facts) return facts.error();
  peer.full_version = facts->version;
  peer.libraries = facts->libraries;
  if (auto good = check_version(*facts, peer.version); !good) return good.error();
  return peer;
}

}  // namespace troupe::bench
