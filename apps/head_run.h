#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "actors/remote_cast.h"
#include "apps/bell.h"
#include "apps/head_service.h"
#include "apps/process_run.h"
#include "config/load.h"

namespace troupe::apps {

/// A run that the head leads: on a thread of its own, from a good configuration to its end.
class HeadRun {
 public:
  struct Surroundings {
    actors::NodePool& nodes;
    transport::ChannelThread& channels;
    std::string interface;
    std::function<void(const Value&)> publish;  // Every event; any thread.
  };

  HeadRun(config::Loaded loaded, RunSetup setup, bool resume, Surroundings around);
  ~HeadRun() { finish(); }

  /// Whether the plan can be made: before start().
  Status prepare();
  void start();

  RunStanding report() const;
  void drain() { bell_.ring(); }
  /// Drains it, and waits until it has ended.
  void finish();
  void stop_now();
  void pause(bool paused);
  /// What a node says.
  void heard(std::uint64_t peer, transport::Message message);
  void lost(std::uint64_t peer, const std::string& why);

 private:
  void run();
  void record(class Recorder& recorder, const Value& event);
  void end(const std::string& state, const std::string& why);
  void placed(const std::vector<actors::NodeHere>& nodes, const actors::Placement& placement);
  template <class Order>
  void tell_leader(Order order);

  config::Loaded loaded_;
  bool resume_;
  Surroundings around_;
  storage::Files* files_;
  RunSetup setup_;
  std::unique_ptr<ProcessRun> run_;
  std::unique_ptr<actors::RemoteCasting> casting_;
  Bell bell_;
  mutable std::mutex mutex_;
  RunStanding report_;
  caf::actor leader_;
  std::function<void(const Value&)> record_;
  std::thread thread_;
};

}  // namespace troupe::apps
