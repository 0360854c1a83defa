#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "simulation/head.h"
#include "simulation/node.h"
#include "simulation/world.h"

namespace troupe::simulation {

/// How a process comes to its end.
enum class Death : std::uint8_t {
  process,  // Its host lives, and says so at once.
  host,     // Nobody says anything.
};

/// Hosts with a node each, and a head: whoever calls it makes them live and die.
class Cluster {
 public:
  Cluster(std::uint64_t seed, const NetworkFaults& faults, TinyModel model, recon::Limits limits);
  ~Cluster();

  World& world() { return *world_; }
  Clock& clock() { return world_->clock; }
  HeadEars& ears() { return ears_; }
  void plan_with(Planner planner) { planner_ = std::move(planner); }
  /// Where nodes send no heartbeats: after how much silence one is given up.
  void notice_silence_after(Duration time) { silence_ = time; }

  /// Of heads that start from now on.
  void set_limits(const recon::Limits& limits) { limits_ = limits; }

  void start_head();
  void kill_head();
  /// Somebody starts another one, who takes the first for dead; it is not.
  void start_rival();
  /// Those who were taken for dead are.
  void kill_rivals() { rivals_.clear(); }
  Head* head() { return head_.get(); }

  /// Another life of the node of that name, or its first.
  void start_node(const std::string& name);
  void kill_node(const std::string& name, Death death);
  Node* node(const std::string& name);
  std::vector<std::string> alive() const;

  /// How the last head has ended, if it has.
  std::optional<recon::End> ended() const;

 private:
  std::unique_ptr<World> world_;
  recon::Limits limits_;
  Planner planner_;
  HeadEars ears_;
  Duration silence_{};
  std::map<std::string, std::unique_ptr<Node>> nodes_;
  std::unique_ptr<Head> head_;
  std::vector<std::unique_ptr<Head>> rivals_;
  Life last_life_ = 0;
  Network::Address last_head_ = 0;
};

}  // namespace troupe::simulation
