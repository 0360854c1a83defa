#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace troupe::bench {

/// Another library that carries bytes between two processes of this machine, where it is installed.
class OtherPeer {
 public:
  virtual ~OtherPeer() = default;

  virtual std::string name() const = 0;
  /// Seconds that each of `sizes` takes one way; empty where it failed.
  virtual std::vector<double> measure() const = 0;
};

struct FoundPeers {
  std::vector<std::unique_ptr<OtherPeer>> usable;
  std::vector<std::string> missing;  // A sentence each.
};

/// OpenMPI, which is compiled for it (mpicc, mpirun), and Gloo, which comes with PyTorch.
FoundPeers find_other_peers();

}  // namespace troupe::bench
