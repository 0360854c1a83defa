#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "actors/nodes/measured.h"
#include "transport/wire/fields.h"

/// Messages between a head and the processes of a host that are about no run.
namespace troupe::actors {

/// States of a run that a process still has in memory from an earlier life of the head.
struct KeptRun {
  std::string run;
  int nodes = 1;  // The number of nodes on which it ran.

  static constexpr auto fields() {
    return std::tuple(transport::required("run", &KeptRun::run),
                      transport::required("nodes", &KeptRun::nodes).at_least(1));
  }
};

/// A network interface of a host.
struct Network {
  std::string name;                      // "eth0"
  std::string address;                   // The address of the host in that network.
  std::optional<std::int64_t> megabits;  // Megabits a second, if known.

  static constexpr auto fields() {
    return std::tuple(transport::required("name", &Network::name),
                      transport::required("address", &Network::address),
                      transport::optional("megabits", &Network::megabits));
  }
};

/// The machine of a node, its abilities, and the states that the node has in memory.
struct Inventory {
  std::string host;
  std::int64_t pid = 0;
  std::string version;  // The version of this program; a run needs one version everywhere.
  int cores = 1;
  int numa_nodes = 1;       // NUMA nodes of the host.
  std::int64_t memory = 0;  // Bytes.
  std::string precision;    // The best precision of its products, as a configuration names it.
  std::vector<Network> networks;
  std::vector<KeptRun> kept;
  std::optional<Speed> speed = {};  // Unset: nobody has measured it.

  static constexpr auto fields() {
    return std::tuple(transport::required("host", &Inventory::host),
                      transport::required("pid", &Inventory::pid),
                      transport::required("version", &Inventory::version),
                      transport::required("cores", &Inventory::cores).at_least(1),
                      transport::optional("numa_nodes", &Inventory::numa_nodes).at_least(1),
                      transport::required("memory", &Inventory::memory).at_least(0),
                      transport::required("precision", &Inventory::precision),
                      transport::optional("networks", &Inventory::networks),
                      transport::optional("kept", &Inventory::kept),
                      transport::optional("speed", &Inventory::speed));
  }
};

/// Node to head: joins. The envelope has the highest term that the node knows, and acknowledges the
/// messages of this head.
struct Join {
  static constexpr std::string_view type = "node.join";

  std::string name;  // The wanted name; the head may choose another one.
  Inventory inventory;
  bool again = false;      // The head welcomed it before, and the connection ended since.
  std::string term_proof;  // The proof of the head with that term (transport/control/term_seal.h).
  /// A secret that the process shares with the daemon that started it. The daemon's exit notice
  /// shows it. 0: there is no daemon.
  std::int64_t life = 0;

  static constexpr auto fields() {
    return std::tuple(transport::required("name", &Join::name),
                      transport::required("inventory", &Join::inventory),
                      transport::optional("again", &Join::again),
                      transport::optional("term_proof", &Join::term_proof),
                      transport::optional("life", &Join::life).at_least(0));
  }
};

/// Head to node: accepts the node. From now on both number their messages.
struct Welcome {
  static constexpr std::string_view type = "node.welcome";

  std::string name;
  std::string term_proof;  // Proves the term in the envelope to other heads.

  static constexpr auto fields() {
    return std::tuple(transport::required("name", &Welcome::name),
                      transport::optional("term_proof", &Welcome::term_proof));
  }
};

/// Node to head: the process is alive. Only the newest heartbeat counts.
struct Heartbeat {
  static constexpr std::string_view type = "node.heartbeat";

  static constexpr auto fields() { return std::tuple<>(); }
};

/// The state of a GPU as its driver reports it. Values that the driver does not report are absent.
struct GpuReading {
  int number = 0;                      // The driver's number.
  std::optional<std::string> name;     // "NVIDIA H200"
  std::optional<double> busy;          // The share of recent time in which it computed.
  std::optional<std::int64_t> used;    // Bytes of memory in use.
  std::optional<std::int64_t> memory;  // Bytes of memory.
  std::optional<double> watts;
  std::optional<std::int64_t> megahertz;  // The clock of the compute units.
  std::optional<std::int64_t> celsius;
  std::optional<std::vector<std::string>> slowed_by;  // "power cap"; empty if nothing slows it.
  std::optional<std::string> fault;                   // Why the GPU does not answer.

  static constexpr auto fields() {
    return std::tuple(transport::required("number", &GpuReading::number).at_least(0),
                      transport::optional("name", &GpuReading::name),
                      transport::optional("busy", &GpuReading::busy),
                      transport::optional("used", &GpuReading::used).at_least(0),
                      transport::optional("memory", &GpuReading::memory).at_least(0),
                      transport::optional("watts", &GpuReading::watts),
                      transport::optional("megahertz", &GpuReading::megahertz),
                      transport::optional("celsius", &GpuReading::celsius),
                      transport::optional("slowed_by", &GpuReading::slowed_by),
                      transport::optional("fault", &GpuReading::fault));
  }
};

/// Node to head: the state of the GPUs of its machine. Only the newest message counts. A node
/// without GPUs sends none.
struct GpuReadings {
  static constexpr std::string_view type = "node.gpus";

  std::vector<GpuReading> gpus;

  static constexpr auto fields() {
    return std::tuple(transport::required("gpus", &GpuReadings::gpus));
  }
};

/// Node to head: how much of the node's share of its machine is in use, by whatever programs. What
/// the machine does not tell is absent.
struct MachineLoad {
  static constexpr std::string_view type = "node.load";

  std::optional<double> busy;          // The share of the processors' time since the last report.
  std::optional<std::int64_t> memory;  // Bytes.

  static constexpr auto fields() {
    return std::tuple(transport::optional("busy", &MachineLoad::busy),
                      transport::optional("memory", &MachineLoad::memory).at_least(0));
  }
};

/// Head to node: rejects the node.
struct Rejected {
  static constexpr std::string_view type = "node.reject";

  std::string reason;
  std::string found;
  std::string wanted;

  static constexpr auto fields() {
    return std::tuple(transport::required("reason", &Rejected::reason),
                      transport::required("found", &Rejected::found),
                      transport::required("wanted", &Rejected::wanted));
  }
};

/// Head to node: the head does not know the node, because it has given the node up or is another
/// life of the head. The runs go on without it. The node may join as a new one.
struct Retire {
  static constexpr std::string_view type = "retire";

  std::string reason;

  static constexpr auto fields() {
    return std::tuple(transport::required("reason", &Retire::reason));
  }
};

/// Head to node: leave all runs and end for good. The daemon starts no other process in its place.
struct Dismiss {
  static constexpr std::string_view type = "dismiss";

  std::string reason;

  static constexpr auto fields() {
    return std::tuple(transport::required("reason", &Dismiss::reason));
  }
};

/// Head to node: a run gives the node no work, and why. Other runs may use it.
struct Unfit {
  static constexpr std::string_view type = "node.unfit";

  std::string run;
  std::string why;

  static constexpr auto fields() {
    return std::tuple(transport::required("run", &Unfit::run),
                      transport::required("why", &Unfit::why));
  }
};

/// Node to head: move its work in all runs away at the next step boundary.
struct Leaving {
  static constexpr std::string_view type = "node.leaving";

  std::string reason;

  static constexpr auto fields() {
    return std::tuple(transport::required("reason", &Leaving::reason));
  }
};

/// Daemon to head: a node process of its host has ended.
struct ExitNotice {
  static constexpr std::string_view type = "exit_notice";

  std::int64_t life = 0;   // The life in the Join of the process.
  std::string how;         // "was ended by signal 9 (Killed)"
  std::string last_words;  // The last lines of its stderr.
  int signal = 0;          // The signal that ended it; 0: it ended by itself.

  static constexpr auto fields() {
    return std::tuple(transport::required("life", &ExitNotice::life).at_least(1),
                      transport::required("how", &ExitNotice::how),
                      transport::required("last_words", &ExitNotice::last_words),
                      transport::optional("signal", &ExitNotice::signal).at_least(0));
  }
};

}  // namespace troupe::actors
