#include <memory>
#include <optional>
#include <set>
#include <string>

#include "catch.h"
#include "simulation/machine/caf_scheduler.h"
#include "simulation/machine/env.h"
#include "simulation/machine/files.h"
#include "storage/files/records.h"

using namespace troupe;
using namespace troupe::simulation;
using namespace std::chrono_literals;

namespace caf_shim = troupe::actors::caf_shim;

// Plays a process that has loops, actors and files, with drawn faults, until its work is done.

namespace {

constexpr std::int64_t last_number = 12;

/// The loop to the counting actor: this number is on the disk.
struct Written {
  std::int64_t number = 0;
};

}  // namespace

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(Written)

namespace {

/// Tells its owner of each number after a while.
class Echo {
 public:
  static constexpr const char* name = "echo";

  Echo(caf_shim::Base* self, std::function<void(std::int64_t)> heard)
      : self_(self), heard_(std::move(heard)) {}
  caf::behavior make_behavior() {
    return {[this](const Written& written) {
      if (waits_)
        heard_(written.number);
      else
        self_->tell_self_after(1ms, written);
      waits_ = !waits_;
    }};
  }

 private:
  caf_shim::Base* self_;
  std::function<void(std::int64_t)> heard_;
  bool waits_ = false;
};

/// Writes the numbers up to the last one, each into a record of its own, and ends its process.
class Service {
 public:
  Service(Scheduler& scheduler, ProcessId process, const MachineConditions& machine,
          SimulatedDisk& disk, std::shared_ptr<int> held)
      : held_(std::move(held)),
        actors_(scheduler, process),
        env_(scheduler, process, machine),
        files_(disk, process),
        loop_(env_.make_loop({"main"})) {
    // The function holds the counter, so that a leak is seen.
    echo_ = caf_shim::spawn<Echo>(actors_.caf(), [this, held = held_](std::int64_t number) {
      loop_->post([this, number, held] { write(number + 1); });
    });
    loop_->aside(
        "disk", [this] { open(); }, [this] { write(next_); });
  }
  ~Service() { actors_.kill_all(); }

 private:
  void open() {
    auto records = storage::RecordWriter::open(files_, "records");
    if (!records || !files_.sync_directory(".")) env_.crash("cannot open the records");
    if (const auto& last = records->last_before()) next_ = *last->find("number")->integer() + 1;
    records_ = std::move(*records);
  }

  void write(std::int64_t number) {
    if (number > last_number) env_.end_process(0, "done");
    loop_->aside(
        "disk",
        [this, number, held = held_] {
          if (!records_->append(Value::Map{{"number", number, {}}}) || !records_->sync())
            env_.crash("cannot write");
        },
        [this, number, held = held_] { caf_shim::post(echo_, Written{number}); });
  }

  std::shared_ptr<int> held_;
  CafScheduler actors_;
  SimulatedEnv env_;
  SimulatedFiles files_;
  std::int64_t next_ = 1;
  std::optional<storage::RecordWriter> records_;
  caf::actor echo_;
  std::unique_ptr<Loop> loop_;
};

/// A machine whose service starts again whenever it ends too early.
class Play {
 public:
  Play(std::uint64_t seed, Scheduler::Manner manner)
      : scheduler_({.seed = seed, .manner = manner, .history = Scheduler::History::told}) {
    start();
    const auto faults = scheduler_.draw(6);
    for (std::uint64_t i = 0; i < faults; ++i)
      scheduler_.after(people_, scheduler_.draw_time(0ms, 60ms), [this] { strike(); });
    stopped_ = scheduler_.run_until([this] { return is_done_; }, Scheduler::start + 1h);
  }

  Scheduler& scheduler() { return scheduler_; }
  Scheduler::Stopped stopped() const { return stopped_; }
  int lives() const { return lives_; }
  /// Returns whether the process and everything in it was destroyed.
  bool is_clean() const { return !service_ && held_.use_count() == 1; }
  std::string records() { return std::string(disk_.files().read("records")->text()); }

 private:
  void start() {
    ++lives_;
    const auto name = "service " + std::to_string(lives_);
    process_ = scheduler_.add_process(name, [this](const Ending& ending) {
      service_.reset();
      if (crashes_) disk_.crash();
      crashes_ = false;
      is_done_ = ending.how == Ending::How::ended;
      if (!is_done_) scheduler_.after(people_, scheduler_.draw_time(0ms, 5ms), [this] { start(); });
    });
    service_ = std::make_unique<Service>(scheduler_, process_, machine_, disk_, held_);
  }

  void strike() {
    switch (scheduler_.draw(5)) {
      case 0:
        return scheduler_.kill(process_);
      case 1:
        crashes_ = scheduler_.is_alive(process_);
        return scheduler_.kill(process_);
      case 2:
        return disk_.fail_call(0);
      case 3:
        return disk_.on_call([this](const SimulatedDisk::Call& call) {
          disk_.on_call(nullptr);
          scheduler_.kill(call.process);
        });
      default:
        scheduler_.freeze(process_);
        scheduler_.after(people_, 7ms, [this, process = process_] { scheduler_.thaw(process); });
    }
  }

  Scheduler scheduler_;
  std::shared_ptr<int> held_ = std::make_shared<int>();
  MachineConditions machine_;
  SimulatedDisk disk_{scheduler_, "disk"};
  QueueId people_ = scheduler_.add_queue(Scheduler::world, "people");
  ProcessId process_{};
  std::unique_ptr<Service> service_;
  int lives_ = 0;
  bool crashes_ = false;
  bool is_done_ = false;
  Scheduler::Stopped stopped_{};
};

}  // namespace

TEST_CASE("a process that is struck at any moment finishes its work, and equally again", "[sim]") {
  using Manner = Scheduler::Manner;
  constexpr std::uint64_t seeds = 50;
  int lives = 0;
  for (const auto manner : {Manner::evenly, Manner::by_priorities, Manner::in_order}) {
    std::set<std::uint64_t> hashes;
    for (std::uint64_t seed = 0; seed < seeds; ++seed) {
      Play play(seed, manner);
      INFO("manner " << static_cast<int>(manner) << ", seed " << seed);
      REQUIRE(play.stopped() == Scheduler::Stopped::done);
      CHECK(play.is_clean());
      const auto records = storage::read_records(play.records());
      CHECK(records.flaw == "");
      REQUIRE(records.good.size() == last_number);
      for (std::size_t i = 0; i < records.good.size(); ++i)
        CHECK(*records.good[i].value.find("number")->integer() == static_cast<std::int64_t>(i + 1));
      lives += play.lives();

      Play again(seed, manner);
      CHECK(again.scheduler().trace_hash() == play.scheduler().trace_hash());
      CHECK(again.scheduler().history() == play.scheduler().history());
      hashes.insert(play.scheduler().trace_hash());
    }
    CHECK(hashes.size() == seeds);
  }
  CHECK(lives > 240);
}
