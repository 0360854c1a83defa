#pragma once

#include <string>

#include "bench/train/rows.h"
#include "core/result.h"

namespace troupe::bench {

/// A Python with the PyTorch that the comparison is made with.
struct TorchPeer {
  std::string python;
  std::string script;     // bench/peers/peer_torch.py
  std::string version;    // The version that bench/peers/requirements.txt pins.
  std::string libraries;  // "oneDNN, MKL"
  std::string full_version;
};

/// Returns the Python in build/peer-venv of this program's sources, and makes it first if it is
/// missing (scripts/peer-venv). `python` names another one to use instead; empty: none. The error
/// is one line.
Result<TorchPeer> find_torch(const std::string& python);

}  // namespace troupe::bench
