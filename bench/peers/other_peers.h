#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace troupe::bench {

/// Another library, if installed, that carries bytes between two processes of this machine.
class OtherPeer {
 public:
  virtual ~OtherPeer() = default;

  virtual std::string name() const = 0;
  /// Returns the seconds that each of `sizes` takes one way, or nothing after a failure.
  virtual std::vector<double> measure() const = 0;
};

struct FoundPeers {
  std::vector<std::unique_ptr<OtherPeer>> usable;
  std::vector<std::string> missing;  // A sentence for each missing library.
};

/// Finds OpenMPI, whose peer it compiles (mpicc, mpirun), and Gloo, which comes with PyTorch.
FoundPeers find_other_peers();

}  // namespace troupe::bench
