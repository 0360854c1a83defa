#pragma once

#include <caf/all.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "actors/nodes/envoy.h"
#include "actors/nodes/may.h"
#include "actors/nodes/mesh.h"
#include "actors/nodes/placement.h"
#include "actors/nodes/run_orders.h"
#include "actors/play/keep.h"
#include "actors/rt.h"
#include "actors/run_spec.h"

namespace troupe::actors {

/// A run as one process has it: what its configuration names, opened, and the executors of the
/// devices that are here.
class RunHome {
 public:
  virtual ~RunHome() = default;
  virtual RunSpecPtr spec() = 0;
  /// Of its devices those that have links, by device of the run, else null; or nothing at all.
  virtual std::vector<LinkedDevice*> linked() { return {}; }
  /// How long it waits for a head that is gone.
  virtual std::chrono::nanoseconds head_patience() const = 0;
};

struct SiteOrder {
  std::shared_ptr<RunHome> home;
  Prepare prepare;
  std::shared_ptr<Keep> keep;  // What this process keeps of the run; null: nothing.
  int attempt = 0;
  transport::Epoch epoch;
  std::string interface = "127.0.0.1";
  Carriers carriers = Carriers::shm_and_tcp;
  transport::EdgePatience edges = {};
  std::optional<transport::KeyPair> keys = {};  // Of this process.
  /// A device has failed, or does not let go of memory, so that the process can only end: does not
  /// return.
  std::function<void(const std::string& why)> stuck;
  /// To the head, from any thread, at once.
  std::function<Status(const transport::Message&)> tell_head;
};

/// Another process of the attempt that cannot be reached any more.
struct LostProcess {
  int process = 0;  // In the placement.
  std::string why;
};

/// What a node has of one attempt: its own players, envoys of all others, and the channels between.
/// One thread uses it; it waits where it says so.
class Site {
 public:
  static Result<std::unique_ptr<Site>> open(transport::ChannelThread& thread, SiteOrder order);
  /// Waits until all players have ended, and devices have let go of what was on its way.
  ~Site();

  MeshAddress address() const { return mesh_->address(); }

  /// Waits for channels, edges and state. Then the players play.
  Status start(const Start& start);
  /// The first process of the attempt that was lost.
  std::optional<LostProcess> lost() const;

  /// From the head to a player, once they play.
  Status deliver(transport::Message message);

 private:
  class State;
  explicit Site(SiteOrder order);

  bool is_here(PlayerId player) const;
  LinkedDevices linked() const;
  Way way();
  Status deliver(int from, PlayerId to, Dispatch dispatch);
  void arrived(int from, PlayerId to, Dispatch dispatch);
  Status check_start(const Start& start) const;
  Status give_states(const Start& start);
  Result<StartPoint> state_of(PlayerId optimizer, int from, std::int64_t step,
                              std::chrono::steady_clock::time_point end);

  SiteOrder order_;
  RunSpecPtr spec_;
  const RunBounds bounds_;
  std::unique_ptr<MemoryPool> memory_;  // Of what comes; outlives all below.
  std::unique_ptr<State> state_;        // What other threads touch.
  std::unique_ptr<Mesh> mesh_;
  rt::Config config_;  // Outlives the system.
  std::unique_ptr<caf::actor_system> system_;
};

/// What may be under way between two processes of a run at once.
transport::Bound bound_of(const RunSpec& spec);

}  // namespace troupe::actors
