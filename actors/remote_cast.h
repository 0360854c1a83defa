#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "actors/cast.h"
#include "actors/lineup.h"
#include "actors/mesh.h"
#include "actors/node_pool.h"
#include "actors/set_aside.h"
#include "kernels/linear.h"

namespace troupe::actors {

struct RemoteOrder {
  std::string run;
  Value config;    // With everything in it that was chosen for the run.
  int fewest = 1;  // Nodes without which an attempt does not begin,
  int most = 1;    // and how many it takes,
  kernels::Precision least = kernels::Precision::fp32;  // with so good products at least.
  std::chrono::milliseconds node_patience{60'000};      // Until there are as many at first,
  std::chrono::milliseconds suspend_patience{60'000};   // and once it has played, where some go.
  std::chrono::milliseconds prepare_patience{60'000};   // Until they have prepared.
  std::string interface = "127.0.0.1";
  Carriers carriers = Carriers::shm_and_tcp;
  /// Where its players are, once that is known; on a thread of its own.
  std::function<void(const Lineup&)> placed;
};

/// The head's side of a run whose players are on nodes: envoys stand for all of them, so that its
/// supervisor leads them as if they were here. Each attempt takes the nodes that are there then.
class RemoteCasting final : public Casting {
 public:
  RemoteCasting(NodePool& nodes, transport::ChannelThread& channels, RemoteOrder order);
  /// All actors of the run have ended.
  ~RemoteCasting() override;

  Company begin(caf::actor_system& system, const Backstage& backstage, int attempt,
                Origin origin) override;
  std::optional<std::string> set_aside(PlayerId player, const std::string& why) override;
  void over(Outcome::How how) override;
  /// Of the nodes that a run could use those that it is to use now.
  std::vector<NodeHere> choose(std::vector<NodeHere> nodes) const;

  /// Where the run is stopped now, the next life of its head goes on with it: nodes keep what they
  /// have of it. Any thread.
  void leave() { comes_back_ = true; }

  /// From the next attempt on; any thread.
  void change(RemoteOrder order);

  /// What a node says about this run; any thread.
  void heard(std::uint64_t node, transport::Message message);
  /// A node is gone.
  void lost(std::uint64_t node, const std::string& why);

 private:
  class Attempt;
  std::shared_ptr<Attempt> current();
  RemoteOrder order() const;

  NodePool& nodes_;
  transport::ChannelThread& channels_;
  RemoteOrder order_;
  MemoryPool memory_;  // Of states on their way; outlives all attempts.
  std::atomic<bool> has_played_ = false;
  std::atomic<bool> comes_back_ = false;
  SetAside set_aside_;
  mutable std::mutex mutex_;
  std::weak_ptr<Attempt> attempt_;  // Its envoys hold it.
};

}  // namespace troupe::actors
