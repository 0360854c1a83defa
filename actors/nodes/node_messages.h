#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "transport/wire/fields.h"

/// What a head and the processes of a host tell each other, of no run.
namespace troupe::actors {

/// States of a run that a process has in its memory, from an earlier life of the head.
struct KeptRun {
  std::string run;
  int nodes = 1;  // That it was played on.

  static constexpr auto fields() {
    return std::tuple(transport::required("run", &KeptRun::run),
                      transport::required("nodes", &KeptRun::nodes).at_least(1));
  }
};

/// A way to other machines.
struct Network {
  std::string name;                      // "eth0"
  std::string address;                   // Of this host, there.
  std::optional<std::int64_t> megabits;  // A second, where that is known.

  static constexpr auto fields() {
    return std::tuple(transport::required("name", &Network::name),
                      transport::required("address", &Network::address),
                      transport::optional("megabits", &Network::megabits));
  }
};

/// What a process with devices can do, and what it has.
struct Inventory {
  std::string host;
  std::int64_t pid = 0;
  std::string version;  // Of this program: all processes of a run are of one.
  int cores = 1;
  int numa_nodes = 1;       // That its host has.
  std::int64_t memory = 0;  // Bytes.
  std::string precision;    // The best in which it has products, as a configuration names it.
  std::vector<Network> networks;
  std::vector<KeptRun> kept;

  static constexpr auto fields() {
    return std::tuple(transport::required("host", &Inventory::host),
                      transport::required("pid", &Inventory::pid),
                      transport::required("version", &Inventory::version),
                      transport::required("cores", &Inventory::cores).at_least(1),
                      transport::optional("numa_nodes", &Inventory::numa_nodes).at_least(1),
                      transport::required("memory", &Inventory::memory).at_least(0),
                      transport::required("precision", &Inventory::precision),
                      transport::optional("networks", &Inventory::networks),
                      transport::optional("kept", &Inventory::kept));
  }
};

/// Node to head: here I am. Its envelope has the highest term that the node knows, and all that it
/// has heard from this head.
struct Join {
  static constexpr std::string_view type = "node.join";

  std::string name;  // Wanted; the head may choose another one.
  Inventory inventory;
  bool again = false;      // It was welcome before, and its connection has ended since.
  std::string term_proof;  // By the head that told it the term (transport/control/term_seal.h).
  /// A secret of the process and of the daemon that started it; the latter's notice of the end
  /// shows it. 0: nobody gives notice.
  std::int64_t life = 0;

  static constexpr auto fields() {
    return std::tuple(transport::required("name", &Join::name),
                      transport::required("inventory", &Join::inventory),
                      transport::optional("again", &Join::again),
                      transport::optional("term_proof", &Join::term_proof),
                      transport::optional("life", &Join::life).at_least(0));
  }
};

/// Head to node: be welcome. From now on what both say is numbered.
struct Welcome {
  static constexpr std::string_view type = "node.welcome";

  std::string name;
  std::string term_proof;  // Of the term in its envelope, for other heads.

  static constexpr auto fields() {
    return std::tuple(transport::required("name", &Welcome::name),
                      transport::optional("term_proof", &Welcome::term_proof));
  }
};

/// Node to head: the process lives. Only the newest counts.
struct Heartbeat {
  static constexpr std::string_view type = "node.heartbeat";

  static constexpr auto fields() { return std::tuple<>(); }
};

/// What a GPU's driver tells of it. What it does not tell is absent.
struct GpuReading {
  int number = 0;                      // As its driver counts.
  std::optional<std::string> name;     // "NVIDIA H200"
  std::optional<double> busy;          // The share of the last moments in which it computed.
  std::optional<std::int64_t> used;    // Bytes of its memory,
  std::optional<std::int64_t> memory;  // of so many.
  std::optional<double> watts;
  std::optional<std::int64_t> megahertz;  // Of what computes.
  std::optional<std::int64_t> celsius;
  std::optional<std::vector<std::string>> slowed_by;  // "power cap"; empty where nothing does.
  std::optional<std::string> fault;                   // Why it does not answer, where that is so.

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

/// Node to head: how the GPUs of its machine are. Only the newest counts; a node without says
/// nothing.
struct GpuReadings {
  static constexpr std::string_view type = "node.gpus";

  std::vector<GpuReading> gpus;

  static constexpr auto fields() {
    return std::tuple(transport::required("gpus", &GpuReadings::gpus));
  }
};

/// Head to node: not here.
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

/// Head to node: it does not know this one, which it has given up, or which belonged to an earlier
/// life of it. What it plays goes on without it; it is welcome as a new one.
struct Retire {
  static constexpr std::string_view type = "retire";

  std::string reason;

  static constexpr auto fields() {
    return std::tuple(transport::required("reason", &Retire::reason));
  }
};

/// Head to node: leave all runs, then end for good. No other process shall take its place.
struct Dismiss {
  static constexpr std::string_view type = "dismiss";

  std::string reason;

  static constexpr auto fields() {
    return std::tuple(transport::required("reason", &Dismiss::reason));
  }
};

/// Head to node: a run gives it no part, and why. It may serve others.
struct Unfit {
  static constexpr std::string_view type = "node.unfit";

  std::string run;
  std::string why;

  static constexpr auto fields() {
    return std::tuple(transport::required("run", &Unfit::run),
                      transport::required("why", &Unfit::why));
  }
};

/// Node to head: take its part in all runs away, at the next moment at which nothing is lost.
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

  std::int64_t life = 0;   // As the process had it in its Join.
  std::string how;         // "was ended by signal 9 (Killed)"
  std::string last_words;  // The end of what it wrote to its stderr.
  int signal = 0;          // By which it was ended; 0: it ended by itself.

  static constexpr auto fields() {
    return std::tuple(transport::required("life", &ExitNotice::life).at_least(1),
                      transport::required("how", &ExitNotice::how),
                      transport::required("last_words", &ExitNotice::last_words),
                      transport::optional("signal", &ExitNotice::signal).at_least(0));
  }
};

}  // namespace troupe::actors
