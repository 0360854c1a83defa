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

/// The ways in which a process ends.
enum class Death : std::uint8_t {
  process,  // Its host survives and reports the end at once.
  host,     // No process reports the end.
};

/// A simulated cluster: a head, and hosts with one node each. The caller starts and kills them.
class Cluster {
 public:
  Cluster(std::uint64_t seed, const NetworkFaults& faults, TinyModel model, recon::Limits limits);
  ~Cluster();

  World& world() { return *world_; }
  Clock& clock() { return world_->clock; }
  HeadHooks& hooks() { return hooks_; }
  void plan_with(Planner planner) { planner_ = std::move(planner); }
  /// Sets the silence after which a node counts as lost if nodes send no heartbeats.
  void notice_silence_after(Duration time) { silence_ = time; }

  /// Sets the limits of heads started later.
  void set_limits(const recon::Limits& limits) { limits_ = limits; }

  void start_head();
  void kill_head();
  /// Starts a second head, which believes that the first one is dead although it still runs.
  void start_rival();
  /// Ends all superseded heads.
  void kill_rivals() { rivals_.clear(); }
  Head* head() { return head_.get(); }

  /// Starts a node of that name if none is alive. Every start has a new life number.
  void start_node(const std::string& name);
  void kill_node(const std::string& name, Death death);
  Node* node(const std::string& name);
  std::vector<std::string> alive() const;

  /// Returns how the last head ended, if it did.
  std::optional<recon::End> ended() const;

 private:
  std::unique_ptr<World> world_;
  recon::Limits limits_;
  Planner planner_;
  HeadHooks hooks_;
  Duration silence_{};
  std::map<std::string, std::unique_ptr<Node>> nodes_;
  std::unique_ptr<Head> head_;
  std::vector<std::unique_ptr<Head>> rivals_;
  Life last_life_ = 0;
  Network::Address last_head_ = 0;
};

}  // namespace troupe::simulation
