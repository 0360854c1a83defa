#include <chrono>
#include <list>
#include <map>
#include <memory>
#include <string>

#include "tests/sim/talk.h"

using namespace troupe;
using namespace troupe::simulation;
using namespace std::chrono_literals;

namespace {

/// A server on one machine and a client on another. Both are killed and started again.
class LivesUnderFaults {
 public:
  static constexpr std::uint64_t messages = 20;

  explicit LivesUnderFaults(std::uint64_t seed)
      : scheduler_({.seed = seed,
                    .manner = seed % 2 == 0 ? Scheduler::Manner::evenly
                                            : Scheduler::Manner::by_priorities}),
        wires_(scheduler_, {.kept = 16}) {
    start_server();
    start_client();
    for (int i = 0; i < 8; ++i)
      scheduler_.after(world_, scheduler_.draw_time(0ms, 10s), [this] { harm(); });
    say_more();
    scheduler_.after(world_, 12s, [this] {
      is_kind_ = true;
      wires_.heal(alpha_, beta_);
      if (!server_) start_server();
      if (!client_) start_client();
    });
  }

  bool play() {
    const auto stopped =
        scheduler_.run_until([this] { return has_all(); }, Scheduler::start + 5min);
    return stopped == Scheduler::Stopped::done;
  }

  /// Returns whether each life has heard the first messages of each other one, once and in order.
  bool all_in_order() const {
    const auto is_sane = [](const Heard& heard) {
      return heard.numbers == numbers_up_to(heard.numbers.size());
    };
    for (const auto& of_server : at_servers_)
      for (const auto& [life, heard] : of_server)
        if (!is_sane(heard)) return false;
    for (const auto& heard : at_clients_)
      if (!is_sane(heard)) return false;
    return true;
  }

  void end_all() {
    kill(server_life_);
    kill(client_life_);
  }

  std::size_t open_ends() const { return wires_.open_ends(); }
  std::size_t lives() const { return at_servers_.size() + at_clients_.size(); }
  std::uint64_t hash() const { return scheduler_.trace_hash(); }
  int failed_machines = 0;

 private:
  void start_server() {
    wires_.restart(alpha_);
    auto& process = processes_.emplace_back(scheduler_, wires_, alpha_, "server");
    server_life_ = process.id;
    server_ = &process.make<TalkingServer>(process, at_servers_.emplace_back(), "tcp://*:4711");
  }

  void start_client() {
    wires_.restart(beta_);
    auto& process = processes_.emplace_back(scheduler_, wires_, beta_, "client");
    client_life_ = process.id;
    client_ = &process.make<TalkingClient>(process, at_clients_.emplace_back(), "tcp://alpha:4711");
    client_->on_stranger = [this, &process] {
      client_ = nullptr;
      scheduler_.after(world_, 1ms, [this] {
        if (!client_) start_client();
      });
      process.env->end_process(1, "");
    };
  }

  void kill(ProcessId process) {
    if (process == server_life_) server_ = nullptr;
    if (process == client_life_) client_ = nullptr;
    scheduler_.kill(process);
  }

  bool has_all() const {
    if (!is_kind_ || !server_ || !client_) return false;
    const auto there = at_servers_.back().find(client_->incarnation);
    return there != at_servers_.back().end() && there->second.numbers.size() >= messages &&
           at_clients_.back().numbers.size() >= messages;
  }

  void say_more() {
    if (client_)
      client_->loop().post([client = client_] {
        if (client->said() < messages) client->say();
      });
    if (server_ && client_)
      server_->loop().post([server = server_, life = client_->incarnation] {
        if (server->said(life) < messages) server->say();
      });
    if (!has_all())
      scheduler_.after(world_, scheduler_.draw_time(0ms, 300ms), [this] { say_more(); });
  }

  void harm() {
    if (is_kind_) return;
    const auto later = scheduler_.draw_time(1ms, 2s);
    switch (scheduler_.draw(6)) {
      case 0:
        kill(server_life_);
        return restart_later(later);
      case 1:
        kill(client_life_);
        return restart_later(later);
      case 2:
        wires_.fail(alpha_);
        kill(server_life_);
        ++failed_machines;
        return restart_later(later);
      case 3:
        wires_.fail(beta_);
        kill(client_life_);
        ++failed_machines;
        return restart_later(later);
      case 4:
        return wires_.cut(alpha_, beta_, Wires::Ways::both, later);
      case 5:
        return wires_.end_between(alpha_, beta_);
    }
  }

  void restart_later(Scheduler::Duration time) {
    scheduler_.after(world_, time, [this] {
      if (!server_) start_server();
      if (!client_) start_client();
    });
  }

  Scheduler scheduler_;
  QueueId world_ = scheduler_.add_queue(Scheduler::world, "faults");
  Wires wires_;
  MachineId alpha_ = wires_.add_machine("alpha"), beta_ = wires_.add_machine("beta");
  // The messages that each life has heard, with the last life at the end.
  std::list<std::map<std::uint64_t, Heard>> at_servers_;
  std::list<Heard> at_clients_;
  std::list<WiredProcess> processes_;
  ProcessId server_life_{}, client_life_{};
  TalkingServer* server_ = nullptr;  // Null while there is none.
  TalkingClient* client_ = nullptr;
  bool is_kind_ = false;
};

}  // namespace

TEST_CASE("lives that are killed hear nothing more, and the next ones talk, over all seeds",
          "[sim]") {
  std::size_t lives = 0;
  int failed_machines = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    INFO("seed " << seed);
    LivesUnderFaults one(seed);
    REQUIRE(one.play());
    REQUIRE(one.all_in_order());
    const auto hash = one.hash();
    lives += one.lives();
    failed_machines += one.failed_machines;
    one.end_all();
    CHECK(one.open_ends() == 0);
    LivesUnderFaults again(seed);
    REQUIRE(again.play());
    REQUIRE(again.hash() == hash);
  }
  CHECK(lives > 1200);
  CHECK(failed_machines > 300);
}
