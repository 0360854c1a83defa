#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <deque>
#include <fstream>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "bench/child.h"
#include "core/value.h"
#include "storage/files/temporary_folder.h"

namespace troupe::bench {

/// Returns seconds since 1970, the clock of event times.
double now();
bool is_type(const Value& event, const char* type);

/// The events of a run, read from its file while it grows.
class Story {
 public:
  explicit Story(std::string path) : path_(std::move(path)) {}

  /// Returns the next wanted event and skips earlier ones. Returns nothing if it does not come in
  /// time.
  std::optional<Value> find(const std::function<bool(const Value&)>& wanted,
                            std::chrono::duration<double> within = std::chrono::seconds(60));
  /// Reads all events written so far.
  void catch_up();

  std::int64_t step() const { return step_; }
  /// Returns the names of the nodes in the plan.
  const std::vector<std::string>& players() const { return players_; }
  /// Returns the median seconds of the newest steps.
  double usual() const;
  /// Returns the share of the run's time that went into useful steps.
  double goodput() const { return goodput_; }

 private:
  std::optional<Value> next();
  void learn(const Value& event);

  std::string path_;
  std::ifstream file_;
  std::string line_;
  std::int64_t step_ = 0;
  double goodput_ = 0;
  std::vector<std::string> players_;
  std::deque<double> steps_;
};

/// Seconds since a fault.
struct Recovery {
  double noticed = 0;  // Until the run notices it.
  double goes_on = 0;  // Until a step beyond the last one is done.
  double paused = 0;   // goes_on without the time of the repeated steps and the new one.
  std::int64_t redone = 0;
};

/// Follows a run from a fault at `fault` (see now()), when it had done `before` steps, until it is
/// a step further. Returns nothing if it does not go on.
std::optional<Recovery> follow_recovery(Story& story, double fault, std::int64_t before);

struct ClusterOptions {
  int nodes = 1;
  std::string config;                        // The run's.
  int cores = 1;                             // Cores that each node offers.
  int machine_cores = 0;                     // All processes share the first ones; 0: all cores.
  std::vector<std::string> head_words = {};  // More arguments of `troupe head`.
};

/// A head, a daemon for each node, and a run, all in a folder of their own.
class LiveCluster {
 public:
  explicit LiveCluster(ClusterOptions options);
  ~LiveCluster();
  LiveCluster(const LiveCluster&) = delete;
  LiveCluster& operator=(const LiveCluster&) = delete;

  /// Submits the run with more arguments of `troupe submit`.
  bool submit(std::vector<std::string> words = {});
  bool ask(std::vector<std::string> words);
  Story& story() { return *story_; }
  /// Returns the head's address; empty if it has not started.
  std::string head() const;

  pid_t process_of(const std::string& node) const;
  pid_t process_of_head() const;
  /// Freezes a host's processes as if the host had failed, or replaces them by a fresh daemon.
  void take_away(const std::string& node);
  void bring_back(const std::string& node);
  /// Starts a node of another name, then asks `node` to end, as an operator does who must give a
  /// machine back. `node` leaves the list of nodes; its daemon ends by itself.
  void replace(const std::string& node);

  /// Waits, within limits, until all nodes take part and some steps are done.
  bool settle(std::mt19937& random);
  std::string some_player(std::mt19937& random) const;

 private:
  struct Node {
    std::string name;
    std::unique_ptr<Background> daemon;
  };

  void start_node();
  Node& named(const std::string& node);
  ChildOrder order(std::vector<std::string> words) const;
  std::unique_ptr<Background> start(std::vector<std::string> words) const;

  storage::TemporaryFolder folder_ = *storage::TemporaryFolder::make();
  std::string program_;
  ClusterOptions options_;
  std::unique_ptr<Background> head_;
  std::vector<Node> nodes_;
  std::vector<std::unique_ptr<Background>> leaving_;
  int started_ = 0;  // Names are never used twice.
  std::unique_ptr<Story> story_;
};

}  // namespace troupe::bench
