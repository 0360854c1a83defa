#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "apps/hosts/hostfile.h"
#include "apps/hosts/node_scripts.h"

/// Job specifications: a run on machines that somebody else hands out. Each is a text that stands
/// for itself, with the run's configuration in it.
namespace troupe::apps {

struct JobOrder {
  std::string name;  // Of the run.
  std::string run;   // Its configuration, as JSON of several lines.
  int nodes = 2;
  int cores = 0;                    // Of each node; 0: all of a machine.
  std::string memory;               // Of each node: "16Gi" (Kubernetes), "16G" (Slurm).
  std::chrono::seconds grace{120};  // From the notice to the end: to finish a step and save.
  std::string program = "troupe";
};

struct SlurmOrder {
  JobOrder job;
  std::string time = "1-00:00:00";
  std::string partition;  // Empty: the cluster's own choice.
};
/// For sbatch, from a folder that all machines share. A job that is preempted, or whose time is
/// over, saves its run, goes back into the queue and goes on from there.
std::string render_slurm(const SlurmOrder& order);

struct KubernetesOrder {
  enum class Flavour : std::uint8_t { job, jobset, statefulset };

  JobOrder job;
  Flavour flavour = Flavour::job;
  std::string image;
  std::string shared_memory = "1Gi";  // Of /dev/shm.
  std::string storage = "20Gi";       // For runs/.
};
/// For kubectl apply. A Job and a JobSet end with the run; with StatefulSets a head and its nodes
/// stay, and take whatever is submitted. Keys come from a Secret, of which the text says how it is
/// made.
std::string render_kubernetes(const KubernetesOrder& order);

/// A script that starts the nodes of a hostfile over ssh and ends them: "up" and "down" without
/// this program on the machine where it runs.
std::string render_ssh(const std::vector<Host>& hosts, const NodesOrder& order);

/// Every line that is not empty, so many blanks further in.
std::string indented(const std::string& text, int blanks);

}  // namespace troupe::apps
