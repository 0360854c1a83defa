#include <algorithm>
#include <chrono>
#include <string>

#include "tests/sim/talk.h"

using namespace troupe;
using namespace troupe::simulation;
using namespace std::chrono_literals;

namespace {

Scheduler::Options talk_options(std::uint64_t seed) {
  using Manner = Scheduler::Manner;
  constexpr Manner manners[] = {Manner::evenly, Manner::evenly, Manner::by_priorities,
                                Manner::in_order};
  return {.seed = seed, .manner = manners[seed % 4]};
}

/// Two machines whose processes talk while a seed draws what happens to the network.
class TalkUnderFaults {
 public:
  static constexpr std::uint64_t messages = 60;
  static constexpr int kinds = 9;  // The kinds of what happens to the network.

  explicit TalkUnderFaults(std::uint64_t seed)
      : scheduler_(talk_options(seed)),
        wires_(scheduler_, {.kept = 16}),
        server_(server_process_.make<TalkingServer>(server_process_, heard_, "tcp://*:4711")),
        client_(client_process_.make<TalkingClient>(client_process_, client_heard_,
                                                    "tcp://alpha:4711")) {
    for (auto& is_off : off_) is_off = scheduler_.draw(2) == 0;
    for (int i = 0; i < 12; ++i)
      scheduler_.after(world_, scheduler_.draw_time(0ms, 20s), [this] { harm(); });
    say_more();
    scheduler_.after(world_, 30s, [this] { be_kind(); });
  }

  bool has_all() const {
    const auto there = heard_.find(client_.incarnation);
    return is_kind_ && there != heard_.end() && there->second.numbers.size() >= messages &&
           client_heard_.numbers.size() >= messages;
  }

  void play() {
    stopped = scheduler_.run_until([this] { return has_all(); }, Scheduler::start + 10min);
  }
  /// Lets everything come that could come once too often.
  void play_on() {
    (void)scheduler_.run_until([] { return false; }, scheduler_.now() + 30s);
  }

  const Heard& at_server() { return heard_[client_.incarnation]; }
  const Heard& at_client() { return client_heard_; }
  std::uint64_t hash() const { return scheduler_.trace_hash(); }
  std::uint64_t events() const { return scheduler_.events(); }

  Scheduler::Stopped stopped = Scheduler::Stopped::idle;
  int harms[kinds] = {};

 private:
  void say_more() {
    // Several of these tasks may wait while a process is frozen.
    client_.loop().post([this] {
      if (client_.said() < messages) client_.say();
    });
    server_.loop().post([this] {
      if (server_.said(client_.incarnation) < messages) server_.say();
    });
    if (client_.said() < messages || server_.said(client_.incarnation) < messages)
      scheduler_.after(world_, scheduler_.draw_time(0ms, 600ms), [this] { say_more(); });
  }

  void harm() {
    if (is_kind_) return;
    const auto what = scheduler_.draw(kinds);
    if (off_[what]) return;
    ++harms[what];
    const auto some_time = scheduler_.draw_time(1ms, 3s);
    auto [from, to] = std::pair(alpha_, beta_);
    if (scheduler_.draw(2) == 0) std::swap(from, to);
    auto& process = scheduler_.draw(2) == 0 ? server_process_ : client_process_;
    switch (what) {
      case 0:
        return wires_.cut(from, to, Wires::Ways::one, some_time);
      case 1:
        return wires_.cut(from, to, Wires::Ways::both, some_time);
      case 2:
        return wires_.cut(from, to, Wires::Ways::one);
      case 3:
        return wires_.end_between(alpha_, beta_);
      case 4:
        return wires_.slow_down(alpha_, beta_, 10s, some_time);
      case 5:
        return wires_.refuse(alpha_, some_time);
      case 6:
        for (const auto& connection : wires_.connections())
          (void)wires_.repeat(connection.number,
                              scheduler_.draw(2) == 0 ? Side::dialing : Side::listening);
        return;
      case 7:
        scheduler_.freeze(process.id);
        scheduler_.after(world_, some_time, [this, id = process.id] { scheduler_.thaw(id); });
        return;
      case 8:
        return wires_.fill_queues(scheduler_.draw(2) == 0 ? alpha_ : beta_, some_time);
    }
  }

  void be_kind() {
    is_kind_ = true;
    wires_.heal(alpha_, beta_);
    keep_talking();
  }
  /// Says heartbeats: what a full queue did not take follows with them.
  void keep_talking() {
    client_.loop().post([this] { client_.pulse(); });
    if (!has_all()) scheduler_.after(world_, 1s, [this] { keep_talking(); });
  }

  Scheduler scheduler_;
  QueueId world_ = scheduler_.add_queue(Scheduler::world, "faults");
  Wires wires_;
  MachineId alpha_ = wires_.add_machine("alpha"), beta_ = wires_.add_machine("beta");
  std::map<std::uint64_t, Heard> heard_;
  Heard client_heard_;
  WiredProcess server_process_{scheduler_, wires_, alpha_, "server"};
  WiredProcess client_process_{scheduler_, wires_, beta_, "client"};
  TalkingServer& server_;
  TalkingClient& client_;
  bool off_[kinds] = {};
  bool is_kind_ = false;
};

}  // namespace

TEST_CASE("a conversation survives whatever a network does, over all seeds", "[sim]") {
  int harms[TalkUnderFaults::kinds] = {}, reconnected = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    INFO("seed " << seed);
    std::uint64_t hash = 0;
    {
      TalkUnderFaults talk(seed);
      talk.play();
      CHECK(talk.stopped == Scheduler::Stopped::done);
      hash = talk.hash();
      talk.play_on();
      REQUIRE(talk.at_server().numbers == numbers_up_to(TalkUnderFaults::messages));
      REQUIRE(talk.at_client().numbers == numbers_up_to(TalkUnderFaults::messages));
      CHECK(talk.at_server().flaw.value_or("") == "");
      CHECK(talk.at_client().flaw.value_or("") == "");
      for (int i = 0; i < TalkUnderFaults::kinds; ++i) harms[i] += talk.harms[i];
      reconnected += talk.at_client().lives > 1 ? 1 : 0;
    }
    TalkUnderFaults again(seed);
    again.play();
    REQUIRE(again.hash() == hash);
  }
  // The seeds did what they are for.
  for (const auto count : harms) CHECK(count > 50);
  CHECK(reconnected > 100);
}

TEST_CASE("other seeds give other talks", "[sim]") {
  TalkUnderFaults one(1), other(5);
  one.play();
  other.play();
  CHECK(one.hash() != other.hash());
}
