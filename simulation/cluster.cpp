#include "simulation/cluster.h"

#include <utility>

namespace troupe::simulation {
namespace {

// The delay until a daemon notices that its process ended.
constexpr Duration exit_notice = std::chrono::milliseconds(2);

}  // namespace

Cluster::Cluster(std::uint64_t seed, const NetworkFaults& faults, TinyModel model,
                 recon::Limits limits)
    : world_(std::make_unique<World>(seed, faults, std::move(model))), limits_(limits) {
  (void)world_->files.make_directory(std::string(folder) + "/checkpoints");
}

Cluster::~Cluster() = default;

void Cluster::start_head() {
  if (head_) return;
  // Life numbers of nodes count up from 1, addresses of heads count down.
  head_ = std::make_unique<Head>(*world_, --last_head_, limits_, planner_, hooks_);
}

void Cluster::kill_head() { head_.reset(); }

void Cluster::start_rival() {
  if (head_) {
    head_->grow_old();
    rivals_.push_back(std::move(head_));
    // Nodes cannot dial any head until the new one leads.
    world_->head = 0;
  }
  start_head();
}

void Cluster::start_node(const std::string& name) {
  if (nodes_.contains(name)) return;
  nodes_.emplace(name, std::make_unique<Node>(*world_, ++last_life_, name));
}

void Cluster::kill_node(const std::string& name, Death death) {
  const auto found = nodes_.find(name);
  if (found == nodes_.end()) return;
  const Life life = found->second->life();
  nodes_.erase(found);
  world_->copies.lose(life);
  switch (death) {
    case Death::process:
      clock().after(exit_notice, [this, life] {
        if (head_) head_->exited(life, "signal 9");
      });
      return;
    case Death::host:
      // With heartbeats the head detects the silence itself; otherwise it is simulated here.
      if (!world_->beats)
        clock().after(silence_, [this, life] {
          if (head_) head_->exited(life, "silent for too long");
        });
      return;
  }
}

Node* Cluster::node(const std::string& name) {
  const auto found = nodes_.find(name);
  return found == nodes_.end() ? nullptr : found->second.get();
}

std::vector<std::string> Cluster::alive() const {
  std::vector<std::string> names;
  for (const auto& [name, node] : nodes_) names.push_back(name);
  return names;
}

std::optional<recon::End> Cluster::ended() const { return head_ ? head_->ended() : std::nullopt; }

}  // namespace troupe::simulation
