#pragma once

#include <algorithm>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "actors/decide/detector.h"
#include "actors/decide/reconciler.h"
#include "simulation/world.h"
#include "storage/checkpoint/checkpoint.h"
#include "storage/checkpoint/ledger.h"
#include "storage/files/records.h"

namespace troupe::simulation {

/// The planner of a head. The answer must carry the request's `number`.
using Planner = std::function<recon::PlanMade(const recon::MakePlan&)>;

/// Callbacks for observers of a head.
struct HeadHooks {
  std::function<void()> writes;  // Called before a journal write.
  std::function<void(const recon::Answer&)> answered;
  std::function<void(std::int64_t step)> decided;    // Called when a step is entered in the ledger.
  std::function<void(const recon::State&)> changed;  // Called after every answer.
};

/// A simulated head process. It uses the real reconciler, detector, records, ledger and
/// checkpoints, and carries out the reconciler's orders. It answers one event at a time: the next
/// event waits until the record of the last one is on disk.
class Head {
 public:
  Head(World& world, Network::Address address, const recon::Limits& limits, Planner planner,
       HeadHooks hooks);
  ~Head();
  Head(const Head&) = delete;
  Head& operator=(const Head&) = delete;

  const recon::State& state() const { return state_; }
  std::optional<recon::End> ended() const { return ended_; }
  Network::Address address() const { return address_; }

  void pause(Duration time) { paused_until_ = std::max(paused_until_, world_.clock.now() + time); }
  /// Reports the end of a process (from a daemon) or of a connection (from the system).
  void exited(Life life, const std::string& how);
  void closed(Life life);
  void hear(const recon::Event& event) { take(event); }
  /// Marks the head as superseded without its knowledge. Observers hear only its answers.
  void grow_old() { hooks_.decided = {}, hooks_.changed = {}; }

 private:
  struct Write {
    recon::Save save;
    std::set<Life> waits_for;
    std::vector<storage::Part> parts;
  };

  void later(Duration time, std::function<void()> what);
  void boot();
  void look();
  void receive(const transport::Message& message);
  void hear(const transport::Message& message);
  void take(const recon::Event& event);
  void answer_next();
  void carry_out(const recon::Answer& answer);
  Status write(const std::vector<recon::Record>& records);
  Status claim_term(recon::JournalRead& read);
  bool is_superseded() const;
  void check(const recon::Event& event, const recon::Answer& answer) const;
  void be_found();
  std::int64_t newest_kept();
  void enter_in_ledger(const transport::Message& message);
  void part_written(const transport::Message& message);
  Status commit(const recon::CommitSave& order);

  void on(const recon::SetTimer& set);
  void on(const recon::MakePlan& make);
  void on(const recon::Prepare& order);
  void on(const recon::Load& order);
  void on(const recon::Activate& order);
  void on(const recon::Adopt& order);
  void on(const recon::Freeze& order);
  void on(const recon::Abort& order);
  void on(const recon::AskSavePoint& order);
  void on(const recon::Save& order);
  void on(const recon::CommitSave& order);
  void on(const recon::AbortSave& order);
  void on(const recon::GoOn& order);
  void on(const recon::Retire& order) { tell({order.life}, order); }
  void on(const recon::Reject& order);
  void on(const recon::Warn&) {}
  void on(const recon::End& end);
  template <class Order>
  void tell(const std::vector<Life>& nodes, const Order& order);

  World& world_;
  Network::Address address_;
  recon::Limits limits_;
  Planner planner_;
  HeadHooks hooks_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
  Time paused_until_{};
  std::deque<transport::Message> unheard_;  // Arrived during a pause.

  recon::State state_;
  std::optional<recon::End> ended_;
  std::uint64_t term_ = 0;  // The term that it has claimed.
  std::deque<recon::Event> waiting_;
  bool answers_ = false;  // Whether a record is being written to disk.
  std::optional<storage::RecordWriter> journal_;
  std::optional<storage::Ledger> ledger_;
  std::int64_t entered_ = 0;  // Steps in the ledger.
  std::uint64_t begun_ = 0;   // The newest attempt whose start is in the ledger.
  std::map<std::string, actors::Evidence> evidence_;  // Keyed by life.
  std::set<std::string> suspected_;
  Time last_look_{};
  std::optional<Write> writes_;
};

}  // namespace troupe::simulation
