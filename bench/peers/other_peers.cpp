#include "bench/peers/other_peers.h"

#include <unistd.h>

#include <cstdlib>
#include <system_error>
#include <utility>

#include "bench/child.h"
#include "bench/half_round_trip.h"

namespace troupe::bench {
namespace {

namespace fs = std::filesystem;

constexpr const char* mpi_source = TROUPE_ROOT "/bench/peers/peer_mpi.c";
constexpr const char* gloo_source = TROUPE_ROOT "/bench/peers/peer_gloo.py";
// scripts/peer-venv makes it.
constexpr const char* peer_python = TROUPE_ROOT "/build/peer-venv/bin/python";

/// Runs a program with all sizes as arguments. It prints a line "BYTES microseconds" for each.
std::vector<double> measure_by(std::vector<std::string> command) {
  for (const auto& size : sizes) {
    command.push_back(std::to_string(size.bytes));
    command.push_back(std::to_string(size.turns));
  }
  std::vector<double> seconds;
  const auto ran = run_child({std::move(command), {}, 2});
  if (!ran || ran->exit_status != 0) return {};
  for (const auto& line : ran->lines)
    seconds.push_back(std::strtod(line.c_str() + line.find(' '), nullptr) * 1e-6);
  if (seconds.size() != sizes.size()) return {};
  return seconds;
}

class Mpi final : public OtherPeer {
 public:
  Mpi()
      : folder_(fs::temp_directory_path() / ("troupe-bench-" + std::to_string(getpid()))),
        program_((folder_ / "peer_mpi").string()) {
    std::error_code ignored;
    fs::create_directory(folder_, ignored);
    const auto compiled = run_child({{"mpicc", "-O2", mpi_source, "-o", program_}, {}, 2});
    is_made_ = compiled && compiled->exit_status == 0;
  }
  ~Mpi() override {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }

  std::string name() const override { return "OpenMPI"; }
  std::vector<double> measure() const override {
    if (!is_made_) return {};
    return measure_by({"mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "core",
                       "-n", "2", program_});
  }

 private:
  fs::path folder_;
  std::string program_;
  bool is_made_ = false;
};

class Gloo final : public OtherPeer {
 public:
  std::string name() const override { return "Gloo, by PyTorch"; }
  std::vector<double> measure() const override { return measure_by({peer_python, gloo_source}); }
};

}  // namespace

FoundPeers find_other_peers() {
  FoundPeers found;
  const auto look = [&](std::unique_ptr<OtherPeer> peer, const std::string& wants) {
    if (peer->measure().empty())
      found.missing.push_back(peer->name() + " is not measured: it wants " + wants + ".");
    else
      found.usable.push_back(std::move(peer));
  };
  look(std::make_unique<Mpi>(),
       "mpicc and mpirun (libopenmpi-dev, openmpi-bin), and this program's sources");
  look(
      std::make_unique<Gloo>(),
      "the sources of troupe, with PyTorch in build/peer-venv (scripts/peer-venv build/peer-venv)");
  return found;
}

}  // namespace troupe::bench
