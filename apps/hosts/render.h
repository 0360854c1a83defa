#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "apps/hosts/hostfile.h"
#include "apps/hosts/node_scripts.h"
#include "core/result.h"

/// Job specifications for cluster managers. Each is a self-contained text that includes the run's
/// configuration.
namespace troupe::apps {

struct JobOrder {
  std::string name;  // The run's name.
  std::string run;   // The run's configuration as JSON of several lines.
  int nodes = 2;
  int cores = 0;       // Cores of each node; 0: all of a machine.
  int gpus = 0;        // GPUs of each node.
  std::string memory;  // Memory of each node: "16Gi" (Kubernetes), "16G" (Slurm).
  // The time from the notice to the end, in which a run finishes its step and saves.
  std::chrono::seconds grace{120};
  std::string program = "troupe";
};

struct SlurmOrder {
  JobOrder job;
  std::string time = "1-00:00:00";
  // Empty: the cluster's default.
  std::string partition;
  std::string account;
  std::string qos;
  std::string constraint;
  std::vector<std::string> lines;  // More `#SBATCH` lines, such as "--mail-type=END", as they are.
};
/// Renders a script for sbatch, to be submitted from a folder that all machines share. A job that
/// is preempted or out of time saves its run and requeues itself. No text may have control
/// characters.
std::string render_slurm(const SlurmOrder& order);

/// Lets pods run on machines with a taint.
struct Toleration {
  enum class Effect : std::uint8_t { every, no_schedule, prefer_no_schedule, no_execute };

  std::string key;
  std::optional<std::string> value;  // Empty: any value.
  Effect effect = Effect::every;

  /// Reads "KEY[=VALUE][:EFFECT]", as `kubectl taint` writes a taint.
  static Result<Toleration> parse(const std::string& text);
};

/// No text may have control characters.
struct KubernetesOrder {
  enum class Flavour : std::uint8_t { job, jobset, statefulset };

  JobOrder job;
  Flavour flavour = Flavour::job;
  std::string image;
  std::string shared_memory = "1Gi";               // The size of /dev/shm.
  std::string storage = "20Gi";                    // The size of the volume for runs/.
  std::string name_space;                          // Empty: the one that kubectl chooses.
  std::string priority_class;                      // Empty: the cluster's default.
  std::map<std::string, std::string> node_labels;  // Labels that each machine must have.
  std::vector<Toleration> tolerations;
  int evicted = 1;  // The most nodes that voluntary evictions may take at once.
};
/// Renders a manifest for kubectl apply. A Job and a JobSet end with the run. With StatefulSets a
/// head and its nodes stay and accept submissions. Keys come from a Secret; the text says how to
/// create it.
std::string render_kubernetes(const KubernetesOrder& order);

/// Renders a script that starts the nodes of a hostfile over ssh and ends them. It offers "up" and
/// "down" on a machine without this program.
std::string render_ssh(const std::vector<Host>& hosts, const NodesOrder& order);

/// Indents every non-empty line by `blanks` spaces.
std::string indented(const std::string& text, int blanks);

}  // namespace troupe::apps
