#include "simulation/machine/caf_scheduler.h"

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "catch.h"

using namespace troupe;
using namespace troupe::simulation;
using namespace std::chrono_literals;

namespace caf_shim = troupe::actors::caf_shim;

namespace {

using Manner = Scheduler::Manner;

/// One talker to another: this many messages are still to be sent. `held` counts its copies.
struct Word {
  int rest = 0;
  std::shared_ptr<int> held = {};
};
struct Later {
  int rest = 0;
};
/// The actors that a talker talks to.
struct Others {
  std::vector<caf::actor> actors;
};

}  // namespace

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(Word)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(Later)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(Others)

namespace {

/// Passes words on to drawn actors, sometimes after a time.
class Talker {
 public:
  static constexpr const char* name = "talker";

  Talker(caf_shim::Base* self, Scheduler* scheduler, std::string* text, char letter)
      : self_(self), scheduler_(scheduler), text_(text), letter_(letter) {}

  caf::behavior make_behavior() {
    return {
        [this](Others& others) { others_ = std::move(others.actors); },
        [this](const Word& word) { pass_on(word.rest); },
        [this](const Later& later) {
          if (self_->now() != scheduler_->now()) *text_ += '!';
          pass_on(later.rest);
        },
    };
  }

 private:
  void pass_on(int rest) {
    *text_ += letter_;
    if (rest == 0) return;
    if (rest % 4 == 0)
      self_->tell_self_after(scheduler_->draw_time(1us, 1ms), Later{rest - 1});
    else
      self_->tell(others_.at(scheduler_->draw(others_.size())), Word{rest - 1});
  }

  caf_shim::Base* self_;
  Scheduler* scheduler_;
  std::string* text_;
  char letter_;
  std::vector<caf::actor> others_;
};

/// Two processes of three talkers each.
struct Talks {
  Talks(std::uint64_t seed, Manner manner) : scheduler({.seed = seed, .manner = manner}) {
    for (char letter = 'a'; letter <= 'f'; ++letter)
      actors.push_back(
          caf_shim::spawn<Talker>((letter <= 'c' ? one : two).caf(), &scheduler, &text, letter));
    for (std::size_t i = 0; i < actors.size(); ++i) {
      const auto first = actors.begin() + (i < 3 ? 0 : 3);
      caf_shim::post(actors[i], Others{{first, first + 3}});
      caf_shim::post(actors[i], Word{20});
    }
  }

  Scheduler scheduler;
  std::string text;
  CafScheduler one{scheduler, scheduler.add_process("one")};
  CafScheduler two{scheduler, scheduler.add_process("two")};
  std::vector<caf::actor> actors;
};

/// Does what each message says, which is a function.
struct Task {
  std::function<void(caf_shim::Base&)> run;
};

}  // namespace

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(Task)

namespace {

/// Counts how many of it exist, which includes its state.
class Doer {
 public:
  static constexpr const char* name = "doer";

  Doer(caf_shim::Base* self, std::shared_ptr<int> held) : self_(self), held_(std::move(held)) {}
  caf::behavior make_behavior() {
    return {[this](const Task& task) { task.run(*self_); },
            [this](Others& others) { others_ = std::move(others.actors); },
            [](const Word&) { FAIL_CHECK("a message was run"); },
            [](const Later&) { FAIL_CHECK("a timeout was run"); }};
  }

 private:
  caf_shim::Base* self_;
  std::shared_ptr<int> held_;
  std::vector<caf::actor> others_;
};

/// A process with an actor system.
struct ActorProcess {
  Scheduler scheduler{{.seed = 1}};
  std::optional<Ending> ending;
  ProcessId process =
      scheduler.add_process("process", [this](const Ending& ended) { ending = ended; });
  CafScheduler actors{scheduler, process};
  std::shared_ptr<int> held = std::make_shared<int>();

  caf::actor spawn() { return caf_shim::spawn<Doer>(actors.caf(), held); }
};

}  // namespace

TEST_CASE("actors of simulated processes run equally for equal seeds", "[sim]") {
  std::set<std::string> texts;
  for (const auto manner : {Manner::evenly, Manner::by_priorities, Manner::in_order})
    for (std::uint64_t seed = 0; seed < 100; ++seed) {
      Talks talks(seed, manner), again(seed, manner);
      CHECK(talks.scheduler.run_all() == Scheduler::Stopped::idle);
      CHECK(again.scheduler.run_all() == Scheduler::Stopped::idle);
      CHECK(talks.text.size() == 6 * 21);
      CHECK(talks.text.find('!') == std::string::npos);
      CHECK(talks.text == again.text);
      CHECK(talks.scheduler.trace_hash() == again.scheduler.trace_hash());
      texts.insert(talks.text);
    }
  CHECK(texts.size() == 300);
}

TEST_CASE("a seed gives this hash with actors in each process", "[sim]") {
  // Computed once. It changes with the scheduler, never with the process or the machine.
  Talks talks(1, Manner::evenly);
  talks.scheduler.run_all();
  CHECK(talks.scheduler.trace_hash() == 0xe0a2ef490b09c4fcu);
}

TEST_CASE("an actor's messages of one sender stay in order", "[sim]") {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    Scheduler scheduler({.seed = seed});
    CafScheduler actors(scheduler, scheduler.add_process("process"));
    std::string text;
    const auto held = std::make_shared<int>();
    const auto one = caf_shim::spawn<Doer>(actors.caf(), held);
    const auto other = caf_shim::spawn<Doer>(actors.caf(), held);
    for (const char letter : {'a', 'b', 'c'}) {
      caf_shim::post(one, Task{[&text, letter](caf_shim::Base&) { text += letter; }});
      caf_shim::post(other, Task{[](caf_shim::Base&) {}});
    }
    scheduler.run_all();
    CHECK(text == "abc");
  }
}

TEST_CASE("an actor with more mail waits for the others if all run in order", "[sim]") {
  Scheduler scheduler({.manner = Manner::in_order});
  CafScheduler actors(scheduler, scheduler.add_process("process"));
  std::string text;
  const auto held = std::make_shared<int>();
  const std::vector made = {caf_shim::spawn<Doer>(actors.caf(), held),
                            caf_shim::spawn<Doer>(actors.caf(), held)};
  scheduler.run_all();
  for (int i = 0; i < 3; ++i)
    for (std::size_t which = 0; which < 2; ++which)
      caf_shim::post(made[which], Task{[&text, which](caf_shim::Base&) { text += "ab"[which]; }});
  scheduler.run_all();
  CHECK(text == "ababab");
}

TEST_CASE("a frozen process runs no actor, and its timeouts come later", "[sim]") {
  ActorProcess one;
  std::vector<Scheduler::Duration> times;
  const auto actor = one.spawn();
  const auto note = [&](caf_shim::Base& self) { times.push_back(self.now() - Scheduler::start); };
  caf_shim::post(actor, Task{[&](caf_shim::Base& self) {
                   self.tell_self_after(1s, Task{note});
                   self.tell_self_after(3s, Task{note});
                 }});
  one.scheduler.run_all();
  times.clear();
  caf_shim::post(actor, Task{[&](caf_shim::Base& self) {
                   self.tell_self_after(1s, Task{note});
                   self.tell_self_after(3s, Task{note});
                   one.scheduler.freeze(one.process);
                 }});
  const auto people = one.scheduler.add_queue(Scheduler::world, "people");
  one.scheduler.after(people, 2s, [&] { one.scheduler.thaw(one.process); });
  CHECK(one.scheduler.run_all() == Scheduler::Stopped::idle);
  CHECK(times == std::vector<Scheduler::Duration>{5s, 6s});
}

TEST_CASE("a frozen actor hangs, and the others go on", "[sim]") {
  ActorProcess one;
  const auto stuck = one.spawn(), other = one.spawn();
  std::string text;
  one.scheduler.run_all();
  one.actors.freeze(stuck);
  for (int i = 0; i < 2; ++i) {
    caf_shim::post(stuck, Task{[&](caf_shim::Base&) { text += 's'; }});
    caf_shim::post(other, Task{[&](caf_shim::Base&) { text += 'o'; }});
  }
  CHECK(one.scheduler.run_all() == Scheduler::Stopped::idle);
  CHECK(text == "oo");
  one.actors.thaw(stuck);
  CHECK(one.scheduler.run_all() == Scheduler::Stopped::idle);
  CHECK(text == "ooss");
}

TEST_CASE("an actor that waits for something slow is stalled alone", "[sim]") {
  ActorProcess one;
  const auto slow = one.spawn(), other = one.spawn();
  std::vector<Scheduler::Duration> times;
  const auto note = [&](caf_shim::Base&) {
    times.push_back(one.scheduler.now() - Scheduler::start);
  };
  one.scheduler.run_all();
  caf_shim::post(slow, Task{[&](caf_shim::Base&) {
                   one.scheduler.stall(2ms);
                   one.scheduler.stall(3ms);
                 }});
  caf_shim::post(slow, Task{note});
  (void)one.scheduler.run_until([] { return false; }, one.scheduler.now() + 1ms);
  caf_shim::post(other, Task{note});
  CHECK(one.scheduler.run_all() == Scheduler::Stopped::idle);
  CHECK(times == std::vector<Scheduler::Duration>{1ms, 5ms});
}

TEST_CASE("living actors are known", "[sim]") {
  ActorProcess one;
  auto actor = one.spawn();
  const auto other = one.spawn();
  one.scheduler.run_all();
  REQUIRE(one.actors.living().size() == 2);
  CHECK(one.actors.living()[0].name == std::string("doer"));
  CHECK(one.actors.living()[0].actor == actor);
  caf_shim::stop(other);
  one.scheduler.run_all();
  CHECK(one.actors.living().size() == 1);
  actor = nullptr;  // Nobody refers to it any more.
  CHECK(one.actors.living().empty());
}

TEST_CASE("many short actors leave nothing behind", "[sim]") {
  ActorProcess one;
  for (int i = 0; i < 1000; ++i) {
    one.spawn();
    one.scheduler.run_all();
  }
  CHECK(one.actors.living().empty());
  CHECK(one.held.use_count() == 1);
}

TEST_CASE("an actor system full of mail and timers is destroyed without running them", "[sim]") {
  const auto held = std::make_shared<int>();
  for (const bool has_begun : {false, true}) {
    Scheduler scheduler({});
    const auto process = scheduler.add_process("process");
    {
      CafScheduler actors(scheduler, process);
      std::vector<caf::actor> made;
      for (int i = 0; i < 20; ++i) made.push_back(caf_shim::spawn<Doer>(actors.caf(), held));
      if (has_begun) {
        // Actors that refer to each other, to themselves by timers, and watch each other.
        for (std::size_t i = 0; i < made.size(); ++i) {
          const auto next = made[(i + 1) % made.size()];
          caf_shim::post(made[i], Others{{next, made[i]}});
          caf_shim::post(made[i], Task{[next](caf_shim::Base& self) {
                           self.watch(next);
                           self.tell_self_after(1h, Later{1});
                         }});
        }
        scheduler.run_until([] { return false; }, Scheduler::start + 1s);
      }
      for (const auto& actor : made)
        for (int i = 0; i < 10; ++i) caf_shim::post(actor, Word{i, held});
      scheduler.kill(process);
      CHECK(held.use_count() > 200);
      actors.kill_all();
      CHECK(held.use_count() == 1);
      CHECK(actors.living().empty());
      // Mail to dead actors is dropped.
      for (const auto& actor : made) caf_shim::post(actor, Word{0, held});
      CHECK(held.use_count() == 1);
      CHECK(actors.ready() == 0);
      CHECK_FALSE(actors.next_timeout());
    }
    CHECK(scheduler.run_all() == Scheduler::Stopped::idle);
  }
}

TEST_CASE("a state that spawns and sends while it is destroyed is no matter", "[sim]") {
  ActorProcess one;
  struct Spawns {
    ~Spawns() { caf_shim::post(one.spawn(), Word{1, one.held}); }
    ActorProcess& one;
  };
  const auto actor = one.spawn();
  caf_shim::post(actor,
                 Task{[spawns = std::shared_ptr<Spawns>(new Spawns{one})](caf_shim::Base& self) {
                   self.tell_self_after(1h, Task{[spawns](caf_shim::Base&) {}});
                 }});
  one.scheduler.run_until([] { return false; }, Scheduler::start + 1s);
  one.actors.kill_all();
  CHECK(one.actors.ready() == 0);
  CHECK(one.held.use_count() == 1);
}

TEST_CASE("an actor ends its process", "[sim]") {
  ActorProcess one;
  const auto actor = one.spawn();
  caf_shim::post(actor, Task{[&](caf_shim::Base&) {
                   caf_shim::post(one.spawn(), Word{});
                   one.scheduler.end(one.process, {Ending::How::crashed, 0, "lost"});
                 }});
  caf_shim::post(actor, Word{});
  CHECK(one.scheduler.run_all() == Scheduler::Stopped::idle);
  REQUIRE(one.ending);
  CHECK(one.ending->how == Ending::How::crashed);
  CHECK(one.ending->last_words == "lost");
  one.actors.kill_all();
  CHECK(one.held.use_count() == 1);
}
