#include "simulation/machine/scheduler.h"

#include <array>
#include <cstdlib>
#include <map>
#include <memory>
#include <set>
#include <stdexcept>

#include "catch.h"

using namespace troupe;
using namespace troupe::simulation;
using namespace std::chrono_literals;

namespace {

using Manner = Scheduler::Manner;
using Stopped = Scheduler::Stopped;

constexpr auto manners = {Manner::evenly, Manner::by_priorities, Manner::in_order};

/// Three processes whose queues post to each other, with timers, until all have run often enough.
class Talk {
 public:
  explicit Talk(const Scheduler::Options& options) : scheduler_(options) {
    for (char name = 'a'; name <= 'f'; ++name) {
      const auto process = scheduler_.add_process(std::string(1, name));
      queues_.push_back(scheduler_.add_queue(process, std::string(1, name)));
    }
    for (std::size_t i = 0; i < queues_.size(); ++i)
      scheduler_.post(queues_[i], [this, i] { say(i, 20); });
    stopped_ = scheduler_.run_all();
  }

  Scheduler& scheduler() { return scheduler_; }
  Stopped stopped() const { return stopped_; }
  const std::string& text() const { return text_; }

 private:
  void say(std::size_t who, int rest) {
    text_ += static_cast<char>('a' + who);
    if (rest == 0) return;
    const auto next = (who + 1) % queues_.size();
    if (rest % 3 == 0)
      scheduler_.after(queues_[next], scheduler_.draw_time(1us, 1ms),
                       [=, this] { say(next, rest - 1); });
    else
      scheduler_.post(queues_[next], [=, this] { say(next, rest - 1); });
  }

  Scheduler scheduler_;
  std::vector<QueueId> queues_;
  std::string text_;
  Stopped stopped_{};
};

/// A source whose things write letters. It may have a timeout that makes one more ready.
class Letters final : public Source {
 public:
  Letters(Scheduler& scheduler, std::string letters, std::string& text)
      : scheduler_(scheduler), letters_(std::move(letters)), text_(text) {}

  std::size_t ready() override { return letters_.size(); }
  void run(std::size_t which) override {
    const char letter = letters_[which];
    letters_.erase(which, 1);
    text_ += letter;
    if (action) action(letter);
  }
  std::uint64_t identity(std::size_t which) override {
    return static_cast<std::uint64_t>(letters_[which]);
  }
  std::string name(std::size_t which) const override { return {letters_[which]}; }
  void stall(std::uint64_t identity, std::chrono::nanoseconds time) override {
    text_ += "[" + std::string(1, static_cast<char>(identity)) + " stalls for " +
             std::to_string(time.count()) + " ns]";
  }
  std::optional<Time> next_timeout() override { return timeout; }
  void advance(Time now) override {
    CHECK(now == scheduler_.now());
    if (!timeout || *timeout > now) return;
    timeout.reset();
    letters_ += 't';
  }

  std::optional<Time> timeout;
  std::function<void(char)> action;

 private:
  Scheduler& scheduler_;
  std::string letters_;
  std::string& text_;
};

/// A scheduler with two processes of one queue each.
struct TwoProcesses {
  explicit TwoProcesses(Manner manner = Manner::evenly, std::uint64_t seed = 1)
      : scheduler({.seed = seed, .manner = manner, .most_events = 1000}) {}

  Scheduler::Task adds(char letter) {
    return [this, letter] { text += letter; };
  }
  /// Notes the end of a process as text.
  std::function<void(const Ending&)> notes(std::string name) {
    return [this, name = std::move(name)](const Ending& ending) {
      text += "[" + name + " " + std::to_string(static_cast<int>(ending.how)) + " " +
              std::to_string(ending.code) + " " + ending.last_words + "]";
    };
  }

  std::string text;
  Scheduler scheduler;
  ProcessId one = scheduler.add_process("one", notes("one"));
  ProcessId two = scheduler.add_process("two", notes("two"));
  QueueId first = scheduler.add_queue(one, "first");
  QueueId second = scheduler.add_queue(two, "second");
};

}  // namespace

TEST_CASE("tasks of one queue run in order in each manner", "[sim]") {
  for (const auto manner : manners)
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      TwoProcesses processes(manner, seed);
      for (const char letter : {'a', 'b', 'c'})
        processes.scheduler.post(processes.first, processes.adds(letter));
      for (const char letter : {'A', 'B', 'C'})
        processes.scheduler.post(processes.second, processes.adds(letter));
      CHECK(processes.scheduler.run_all() == Stopped::idle);
      std::string lower, upper;
      for (const char letter : processes.text) (letter >= 'a' ? lower : upper) += letter;
      CHECK(lower == "abc");
      CHECK(upper == "ABC");
      CHECK(processes.scheduler.events() == 6);
      if (manner == Manner::in_order) CHECK(processes.text == "abcABC");
    }
}

TEST_CASE("each order of two queues comes in some seed", "[sim]") {
  for (const auto manner : {Manner::evenly, Manner::by_priorities}) {
    std::set<std::string> seen;
    for (std::uint64_t seed = 0; seed < 200; ++seed) {
      TwoProcesses processes(manner, seed);
      for (const char letter : {'a', 'b'})
        processes.scheduler.post(processes.first, processes.adds(letter));
      for (const char letter : {'A', 'B'})
        processes.scheduler.post(processes.second, processes.adds(letter));
      processes.scheduler.run_all();
      seen.insert(processes.text);
    }
    CHECK(seen.contains("abAB"));
    CHECK(seen.contains("ABab"));
    if (manner == Manner::evenly) CHECK(seen.size() == 6);
  }
}

TEST_CASE("equal seeds give equal hashes and different seeds different ones", "[sim]") {
  for (const auto manner : manners) {
    std::set<std::uint64_t> hashes;
    constexpr std::uint64_t seeds = 50;
    for (std::uint64_t seed = 0; seed < seeds; ++seed) {
      Talk one({.seed = seed, .manner = manner});
      Talk other({.seed = seed, .manner = manner});
      CHECK(one.stopped() == Stopped::idle);
      CHECK(one.scheduler().events() == 6 * 21);
      CHECK(one.text() == other.text());
      CHECK(one.scheduler().trace_hash() == other.scheduler().trace_hash());
      hashes.insert(one.scheduler().trace_hash());
    }
    CHECK(hashes.size() == seeds);
  }
}

TEST_CASE("a seed gives this hash in each process", "[sim]") {
  // Computed once. It changes with the scheduler, never with the process or the machine.
  CHECK(Talk({.seed = 1}).scheduler().trace_hash() == 0xd9ed796e8e602a91u);
  CHECK(Talk({.seed = 1, .manner = Manner::by_priorities}).scheduler().trace_hash() ==
        0xadfbb8aaf76915e7u);
  CHECK(Talk({.seed = 1, .manner = Manner::in_order}).scheduler().trace_hash() ==
        0xdc4dd68768d24864u);
}

TEST_CASE("half of the seeds draw evenly, a quarter by priorities, a quarter in order", "[sim]") {
  std::map<Manner, int> counts;
  for (std::uint64_t seed = 1000; seed < 1100; ++seed) ++counts[Scheduler::manner_of(seed)];
  CHECK(counts[Manner::evenly] == 50);
  CHECK(counts[Manner::by_priorities] == 25);
  CHECK(counts[Manner::in_order] == 25);
}

TEST_CASE("a history does not change what happens", "[sim]") {
  Talk without({.seed = 7});
  Talk with({.seed = 7, .history = Scheduler::History::everything});
  CHECK(without.scheduler().trace_hash() == with.scheduler().trace_hash());
  CHECK(without.scheduler().history().empty());
  CHECK(with.scheduler().history().size() == 6 * 21);
}

TEST_CASE("the history has the time, who and what", "[sim]") {
  Scheduler scheduler({.history = Scheduler::History::told});
  const auto queue = scheduler.add_queue(scheduler.add_process("node-1"), "main");
  scheduler.after(queue, 12480ms, [&] { scheduler.trace("fault", "node-1 is killed"); });
  scheduler.run_all();
  CHECK(scheduler.history() ==
        std::vector<std::string>{"  12.480 s  fault         node-1 is killed"});
}

TEST_CASE("the history has the ends of processes", "[sim]") {
  Scheduler scheduler({.history = Scheduler::History::told});
  const auto run = [&](const std::string& name, const Ending& ending) {
    const auto process = scheduler.add_process(name);
    scheduler.post(scheduler.add_queue(process, "main"),
                   [&, process] { scheduler.end(process, ending); });
    scheduler.run_all();
  };
  run("head", {Ending::How::ended, 3, "no run"});
  run("node-1", {Ending::How::crashed, 0, {}});
  scheduler.kill(scheduler.add_process("node-2"));
  CHECK(scheduler.history() == std::vector<std::string>{
                                   "   0.000 s  head          ends with code 3: no run",
                                   "   0.000 s  node-1        crashes",
                                   "   0.000 s  node-2        is killed",
                               });
}

TEST_CASE("what is traced changes the hash", "[sim]") {
  const auto hash_of = [](const std::string& who, const std::string& what) {
    Scheduler scheduler({});
    scheduler.trace(who, what);
    return scheduler.trace_hash();
  };
  CHECK(hash_of("a", "bc") == hash_of("a", "bc"));
  CHECK(hash_of("a", "bc") != hash_of("ab", "c"));
  CHECK(hash_of("a", "b") != hash_of("a", "c"));
  CHECK(hash_of("a", "123456789") != hash_of("a", "123456780"));
}

TEST_CASE("time moves only if nothing is ready", "[sim]") {
  TwoProcesses processes;
  auto& scheduler = processes.scheduler;
  std::vector<Scheduler::Duration> times;
  const auto note = [&] { times.push_back(scheduler.now() - Scheduler::start); };
  scheduler.after(processes.first, 3ms, note);
  scheduler.after(processes.second, 2ms, [&] {
    note();
    scheduler.post(processes.first, note);
    scheduler.after(processes.second, 0ms, note);
    scheduler.after(processes.second, -1ms, note);
  });
  scheduler.post(processes.first, note);
  CHECK(scheduler.run_all() == Stopped::idle);
  CHECK(times == std::vector<Scheduler::Duration>{0ms, 2ms, 2ms, 2ms, 2ms, 3ms});
  CHECK(scheduler.now() == Scheduler::start + 3ms);
}

TEST_CASE("run_until() says why it stopped", "[sim]") {
  TwoProcesses processes;
  auto& scheduler = processes.scheduler;
  const auto second = Scheduler::start + 1s;
  CHECK(scheduler.run_until([] { return true; }, second) == Stopped::done);
  CHECK(scheduler.run_until([] { return false; }, second) == Stopped::idle);
  CHECK(scheduler.now() == Scheduler::start);

  scheduler.after(processes.first, 1s, processes.adds('a'));
  scheduler.after(processes.first, 2s, processes.adds('b'));
  CHECK(scheduler.run_until([&] { return processes.text == "a"; }, second) == Stopped::done);
  CHECK(scheduler.run_until([] { return false; }, second + 500ms) == Stopped::late);
  CHECK(scheduler.now() == second + 500ms);
  CHECK(processes.text == "a");
  CHECK(scheduler.run_until([] { return false; }, second + 1s) == Stopped::idle);
  CHECK(processes.text == "ab");

  // The end of time never comes.
  scheduler.after(processes.first, Scheduler::Duration::max(), processes.adds('x'));
  CHECK(scheduler.run_all() == Stopped::idle);
  CHECK(scheduler.now() == second + 1s);
}

TEST_CASE("a simulation stops after its most events", "[sim]") {
  for (const auto manner : manners) {
    TwoProcesses processes(manner);
    std::function<void()> again = [&] { processes.scheduler.post(processes.first, again); };
    again();
    CHECK(processes.scheduler.run_all() == Stopped::too_many_events);
    CHECK(processes.scheduler.events() == 1000);
    CHECK(processes.scheduler.now() == Scheduler::start);
  }
}

TEST_CASE("a busy queue does not stop another one for ever", "[sim]") {
  for (const auto manner : manners)
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      Scheduler scheduler({.seed = seed, .manner = manner});
      const auto busy = scheduler.add_queue(Scheduler::world, "busy");
      const auto other = scheduler.add_queue(Scheduler::world, "other");
      std::function<void()> again = [&] { scheduler.post(busy, again); };
      again();
      bool ran = false;
      scheduler.post(other, [&] { ran = true; });
      CHECK(scheduler.run_until([&] { return ran; }, Scheduler::Time::max()) == Stopped::done);
    }
}

TEST_CASE("a cancelled task does not run and is destroyed at once", "[sim]") {
  TwoProcesses processes;
  auto& scheduler = processes.scheduler;
  auto held = std::make_shared<int>();
  const std::weak_ptr<int> lives = held;
  const auto timer = scheduler.after(processes.first, 1s, [held = std::move(held)] {});
  CHECK(scheduler.waiting(processes.first) == 1);
  CHECK(scheduler.cancel(timer));
  CHECK(lives.expired());
  CHECK(scheduler.waiting(processes.first) == 0);
  CHECK_FALSE(scheduler.cancel(timer));

  // A task that is due but has not begun is cancelled, too.
  Scheduler::Timer due{};
  scheduler.after(processes.first, 1s, [&] { CHECK(scheduler.cancel(due)); });
  due = scheduler.after(processes.first, 1s, processes.adds('x'));
  const auto at_once = scheduler.after(processes.first, 0s, processes.adds('y'));
  CHECK(scheduler.cancel(at_once));
  CHECK(scheduler.run_all() == Stopped::idle);
  CHECK(processes.text.empty());
  CHECK_FALSE(scheduler.cancel(due));
  CHECK_FALSE(scheduler.cancel(Scheduler::Timer{0}));
}

TEST_CASE("a removed queue drops its tasks and rejects others", "[sim]") {
  TwoProcesses processes;
  auto& scheduler = processes.scheduler;
  scheduler.post(processes.first, processes.adds('x'));
  scheduler.after(processes.first, 1s, processes.adds('x'));
  scheduler.post(processes.second, processes.adds('a'));
  scheduler.remove(processes.first);
  CHECK(scheduler.waiting(processes.first) == 0);
  CHECK_FALSE(scheduler.post(processes.first, processes.adds('x')));
  CHECK(scheduler.after(processes.first, 1s, processes.adds('x')) == Scheduler::Timer{0});
  CHECK(scheduler.run_all() == Stopped::idle);
  CHECK(processes.text == "a");
}

TEST_CASE("a task may remove its own queue", "[sim]") {
  TwoProcesses processes;
  processes.scheduler.post(processes.first, [&] {
    processes.scheduler.remove(processes.first);
    processes.text += 'a';
  });
  processes.scheduler.post(processes.first, processes.adds('x'));
  CHECK(processes.scheduler.run_all() == Stopped::idle);
  CHECK(processes.text == "a");
}

TEST_CASE("nothing of a frozen process runs until it is thawed", "[sim]") {
  for (const auto manner : manners) {
    TwoProcesses processes(manner);
    auto& scheduler = processes.scheduler;
    scheduler.post(processes.first, [&] {
      processes.text += 'a';
      scheduler.freeze(processes.one);
    });
    scheduler.post(processes.first, processes.adds('c'));
    scheduler.after(processes.first, 1ms, processes.adds('d'));
    scheduler.after(processes.second, 2ms, processes.adds('b'));
    CHECK(scheduler.run_all() == Stopped::idle);
    CHECK(processes.text == "ab");
    CHECK(scheduler.is_frozen(processes.one));
    scheduler.post(processes.first, processes.adds('e'));
    scheduler.thaw(processes.one);
    CHECK(scheduler.run_all() == Stopped::idle);
    CHECK(processes.text == "abcde");
  }
}

TEST_CASE("a frozen queue is stuck, and its process goes on", "[sim]") {
  TwoProcesses processes;
  auto& scheduler = processes.scheduler;
  const auto other = scheduler.add_queue(processes.one, "other");
  scheduler.freeze(processes.first);
  scheduler.post(processes.first, processes.adds('b'));
  scheduler.post(other, processes.adds('a'));
  scheduler.run_all();
  CHECK(processes.text == "a");
  scheduler.freeze(processes.one);
  scheduler.thaw(processes.first);
  scheduler.run_all();
  CHECK(processes.text == "a");
  scheduler.thaw(processes.one);
  scheduler.run_all();
  CHECK(processes.text == "ab");
}

TEST_CASE("a task that waits for something slow stalls its queue alone", "[sim]") {
  TwoProcesses processes;
  auto& scheduler = processes.scheduler;
  std::vector<Scheduler::Duration> times;
  const auto note = [&] { times.push_back(scheduler.now() - Scheduler::start); };
  scheduler.stall(1h);  // Outside of tasks.
  scheduler.post(processes.first, [&] {
    scheduler.stall(2ms);
    scheduler.stall(3ms);
    scheduler.stall(0ms);
    scheduler.post(processes.second, note);
    scheduler.after(processes.second, 4ms, note);
    scheduler.after(processes.second, 6ms, note);
  });
  scheduler.post(processes.first, [&] {
    note();
    scheduler.stall(2ms);
  });
  scheduler.after(processes.first, 1ms, note);
  CHECK(scheduler.run_all() == Stopped::idle);
  CHECK(times == std::vector<Scheduler::Duration>{0ms, 4ms, 5ms, 6ms, 7ms});
  // The end of a process ends its stalls.
  scheduler.post(processes.first, [&] {
    scheduler.stall(1h);
    scheduler.end(processes.one, {});
  });
  scheduler.post(processes.second, note);
  CHECK(scheduler.run_until([] { return false; }, scheduler.now() + 1s) == Stopped::idle);
}

TEST_CASE("what runs next of a process can be stalled, be it a task or a thing of a source",
          "[sim]") {
  TwoProcesses processes(Manner::in_order);
  auto& scheduler = processes.scheduler;
  std::vector<Scheduler::Duration> times;
  const auto note = [&] { times.push_back(scheduler.now() - Scheduler::start); };
  scheduler.stall_next(processes.one, 2ms);
  scheduler.post(processes.second, note);
  scheduler.post(processes.first, note);
  scheduler.post(processes.first, note);
  scheduler.run_all();
  CHECK(times == std::vector<Scheduler::Duration>{0ms, 0ms, 2ms});
  Letters letters(scheduler, "xy", processes.text);
  scheduler.add_source(processes.two, "letters", letters);
  letters.action = [&](char letter) {
    if (letter == 'y') scheduler.stall(3ns);
  };
  scheduler.stall_next(processes.two, 1ns);
  scheduler.run_all();
  CHECK(processes.text == "x[x stalls for 1 ns]y[y stalls for 3 ns]");
}

TEST_CASE("what runs next by a name can be stalled", "[sim]") {
  TwoProcesses processes(Manner::in_order);
  auto& scheduler = processes.scheduler;
  const auto third = scheduler.add_queue(processes.one, "third");
  scheduler.stall_next(processes.one, 2ms, "third");
  scheduler.stall_next(processes.two, 1ns, "y");
  for (const auto queue : {third, processes.first, processes.first, third})
    scheduler.post(queue, processes.adds(queue == third ? '3' : '1'));
  Letters letters(scheduler, "xyx", processes.text);
  scheduler.add_source(processes.two, "letters", letters);
  scheduler.run_all();
  CHECK(processes.text == "311xy[y stalls for 1 ns]x3");
}

TEST_CASE("nothing of a killed process runs, and its tasks are destroyed", "[sim]") {
  TwoProcesses processes;
  auto& scheduler = processes.scheduler;
  auto held = std::make_shared<int>();
  const std::weak_ptr<int> lives = held;
  scheduler.post(processes.first, [held] {});
  scheduler.after(processes.first, 1s, [held = std::move(held)] {});
  scheduler.post(processes.second, processes.adds('a'));
  scheduler.kill(processes.one);
  CHECK(lives.expired());
  CHECK(processes.text == "[one 2 0 ]");
  CHECK_FALSE(scheduler.is_alive(processes.one));
  CHECK_FALSE(scheduler.post(processes.first, processes.adds('x')));
  CHECK_FALSE(scheduler.post(scheduler.add_queue(processes.one, "late"), processes.adds('x')));
  scheduler.kill(processes.one);
  CHECK(scheduler.run_all() == Stopped::idle);
  CHECK(processes.text == "[one 2 0 ]a");
}

TEST_CASE("a process that one of its tasks kills is told of after that task", "[sim]") {
  TwoProcesses processes;
  auto& scheduler = processes.scheduler;
  auto held = std::make_shared<int>();
  const std::weak_ptr<int> lives = held;
  scheduler.post(processes.first, [&] {
    CHECK(scheduler.running() == processes.one);
    scheduler.kill(processes.two);
    scheduler.kill(processes.one);
    // The task may use what other tasks own.
    CHECK_FALSE(lives.expired());
    processes.text += 'a';
  });
  scheduler.post(processes.first, [held = std::move(held)] {});
  CHECK(scheduler.run_all() == Stopped::idle);
  CHECK(lives.expired());
  CHECK(processes.text == "a[two 2 0 ][one 2 0 ]");
  CHECK(scheduler.running() == Scheduler::world);
}

TEST_CASE("a process ends itself and its stack is unwound", "[sim]") {
  TwoProcesses processes;
  auto& scheduler = processes.scheduler;
  struct Unwound {
    ~Unwound() { text += 'u'; }
    std::string& text;
  };
  scheduler.post(processes.first, [&] {
    const Unwound unwound{processes.text};
    scheduler.end(processes.one, {Ending::How::ended, 3, "enough"});
  });
  scheduler.post(processes.first, processes.adds('x'));
  scheduler.after(processes.second, 1ms, processes.adds('a'));
  CHECK(scheduler.run_all() == Stopped::idle);
  CHECK(processes.text == "u[one 0 3 enough]a");
}

TEST_CASE("an owner that hears of an end may start and kill processes", "[sim]") {
  Scheduler scheduler({});
  std::string text;
  std::vector<ProcessId> made;
  std::function<void()> make = [&] {
    const auto name = std::to_string(made.size());
    made.push_back(scheduler.add_process(name, [&text, &make, &made, name](const Ending&) {
      text += name;
      if (made.size() < 3) make();
    }));
    const auto process = made.back();
    scheduler.post(scheduler.add_queue(process, "main"), [&scheduler, process] {
      scheduler.end(process, {Ending::How::crashed, 0, {}});
    });
  };
  make();
  CHECK(scheduler.run_all() == Stopped::idle);
  CHECK(text == "012");
}

TEST_CASE("an exception of a task leaves run_until() and the scheduler goes on", "[sim]") {
  TwoProcesses processes;
  processes.scheduler.post(processes.first, [] { throw std::runtime_error("a mistake"); });
  processes.scheduler.post(processes.first, processes.adds('a'));
  CHECK_THROWS_WITH(processes.scheduler.run_all(), "a mistake");
  CHECK(processes.scheduler.running() == Scheduler::world);
  CHECK(processes.scheduler.run_all() == Stopped::idle);
  CHECK(processes.text == "a");
}

TEST_CASE("things of a source run among the tasks of queues", "[sim]") {
  std::set<std::string> seen;
  for (const auto manner : manners)
    for (std::uint64_t seed = 0; seed < 50; ++seed) {
      TwoProcesses processes(manner, seed);
      auto& scheduler = processes.scheduler;
      Letters letters(scheduler, "abc", processes.text);
      letters.action = [&](char) { CHECK(scheduler.running() == processes.one); };
      letters.timeout = Scheduler::start + 1ms;
      scheduler.add_source(processes.one, "letters", letters);
      scheduler.post(processes.second, processes.adds('A'));
      scheduler.after(processes.second, 2ms, processes.adds('B'));
      CHECK(scheduler.run_all() == Stopped::idle);
      CHECK(processes.text.substr(4) == "tB");
      if (manner == Manner::in_order) CHECK(processes.text == "AabctB");
      if (manner == Manner::evenly) seen.insert(processes.text.substr(0, 4));
    }
  CHECK(seen.size() > 12);
}

TEST_CASE("a source is frozen and ends with its process", "[sim]") {
  TwoProcesses processes;
  auto& scheduler = processes.scheduler;
  Letters letters(scheduler, "a", processes.text);
  letters.timeout = Scheduler::start + 1ms;
  scheduler.add_source(processes.one, "letters", letters);
  scheduler.freeze(processes.one);
  CHECK(scheduler.run_all() == Stopped::idle);
  scheduler.after(processes.second, 2ms, processes.adds('b'));
  CHECK(scheduler.run_all() == Stopped::idle);
  CHECK(processes.text == "b");
  scheduler.thaw(processes.one);
  letters.action = [&](char) { scheduler.end(processes.one, {}); };
  CHECK(scheduler.run_all() == Stopped::idle);
  CHECK(processes.text.size() == std::string("ba[one 2 0 ]").size());
}

TEST_CASE("draws are even", "[sim]") {
  Scheduler scheduler({.seed = 5});
  std::array<int, 3> counts{};
  for (int i = 0; i < 3000; ++i) ++counts.at(scheduler.draw(3));
  for (const int count : counts) CHECK(std::abs(count - 1000) < 100);
  for (int i = 0; i < 100; ++i) {
    const auto time = scheduler.draw_time(2ns, 4ns);
    CHECK(time >= 2ns);
    CHECK(time <= 4ns);
  }
}

TEST_CASE("a scheduler is destroyed with tasks whose destructors call it", "[sim]") {
  auto scheduler = std::make_unique<Scheduler>(Scheduler::Options{});
  const auto queue = scheduler->add_queue(scheduler->add_process("one"), "first");
  struct Calls {
    ~Calls() {
      CHECK_FALSE(scheduler.post(queue, [] {}));
    }
    Scheduler& scheduler;
    QueueId queue;
  };
  scheduler->post(queue, [calls = std::shared_ptr<Calls>(new Calls{*scheduler, queue})] {});
  scheduler->after(queue, 1s, [calls = std::shared_ptr<Calls>(new Calls{*scheduler, queue})] {});
  scheduler.reset();
}
