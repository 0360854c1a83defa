#pragma once

#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "actors/decide/member.h"
#include "simulation/world.h"

namespace troupe::simulation {

/// A simulated node process. It uses the real node half of the protocol and simulates training and
/// writing. The first node of the plan decides a step from all contributions, without a head.
class Node {
 public:
  Node(World& world, Life life, std::string name);
  ~Node();
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  Life life() const { return member_.life; }
  const std::string& name() const { return name_; }
  const recon::Member& member() const { return member_; }
  bool has_left() const { return has_left_; }

  /// Suspends the process for a while, like SIGSTOP and SIGCONT.
  void pause(Duration time);
  void slow_down(double times) { slowness_ = times; }
  void fail_next_step() { fails_next_step_ = true; }
  void fail_prepares(int times) { prepares_to_fail_ = times; }
  void fail_next_load() { fails_next_load_ = true; }
  void fail_saves(int times) { saves_to_fail_ = times; }
  /// Makes the step fail on this node.
  void poison(std::int64_t step) { poisoned_step_ = step; }
  /// Makes the next load read wrong values that the node does not notice (bad memory).
  void misread_next() { misreads_next_ = true; }
  /// Tells the head that the process will end after `left`.
  void give_notice(Duration left);

 private:
  struct Contribution {
    std::map<int, std::uint64_t> gradients;  // Keyed by unit.
  };

  void later(Duration time, std::function<void()> what);
  Duration slowed(Duration time) const;
  void beat();
  void dial();
  void receive(Network::Address from, const transport::Message& message);
  void hear(Network::Address from, const transport::Message& message);
  void obey(const transport::Message& message);
  void act(const recon::MemberAnswer& answer);
  void on(const recon::StopWork&);
  void on(const recon::MakeReady& make);
  void on(const recon::ReadState& read);
  void on(const recon::PlayOn& play);
  void on(const recon::HoldSoon&);
  void on(const recon::WritePart& part);
  void on(const recon::DropPart& part) { dropped_.insert(part.save); }
  void on(const recon::Resume& resume);
  void on(const recon::TellAgain& again);
  void on(const recon::Leave&) { has_left_ = true; }
  void on(const recon::Tell& tell);
  void on(const recon::TellDeposed& deposed);

  void compute();
  void contribute();
  void add(const transport::Message& contribution);
  void decide();
  void apply(const transport::Message& decision);
  void reach_boundary();
  void write_pending();
  void tell_save_point();
  bool is_in_memory(std::int64_t step) const;
  recon::ReadOutcome read_state(std::int64_t step);
  recon::ReadOutcome read_checkpoint(std::int64_t step);
  recon::ReadOutcome read_copies(std::int64_t step);
  void give_copies();
  void tell_head(transport::Message message);
  template <class Said>
  void tell_head(const Said& said) {
    tell_head(transport::to_message(said));
  }
  void tell_peer(Life peer, transport::Message message);
  bool is_first() const {
    return !member_.plan.members.empty() && member_.plan.members[0] == life();
  }
  bool plays() const { return member_.doing == recon::Member::Doing::playing; }
  std::set<int> units() const;

  World& world_;
  recon::Member member_;
  std::string name_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
  Time paused_until_{};
  std::deque<std::pair<Network::Address, transport::Message>> unheard_;  // Arrived during a pause.
  double slowness_ = 1;
  bool has_left_ = false;
  bool fails_next_step_ = false;
  int prepares_to_fail_ = 0;
  int saves_to_fail_ = 0;
  bool fails_next_load_ = false;
  std::int64_t poisoned_step_ = 0;
  bool misreads_next_ = false;
  Network::Address head_ = 0;
  Network::Address speaker_ = 0;  // The sender of the newest order.
  std::uint64_t seq_ = 0;

  std::uint64_t work_ = 0;  // The current work; results of an earlier number are dropped.
  std::map<int, std::uint64_t> weights_;  // Keyed by unit.
  Duration copying_{};                    // Added to the time of its next step.
  bool holds_ = false;                    // Waits at a boundary.
  bool asked_to_hold_ = false;
  std::int64_t go_on_until_ = -1;  // The last step after which it need not hold.
  std::optional<recon::WritePart> pending_;
  std::set<std::uint64_t> dropped_;
  std::map<std::int64_t, std::map<Life, Contribution>> contributions_;  // Keyed by step.
  std::vector<transport::Message> told_;  // Decided steps of the attempt, repeated to a later head.
};

}  // namespace troupe::simulation
