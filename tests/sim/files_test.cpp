#include "simulation/machine/files.h"

#include <array>
#include <set>

#include "catch.h"
#include "simulation/machine/env.h"
#include "storage/files/records.h"
#include "tests/storage/files_contract.h"

using namespace troupe;
using namespace troupe::simulation;
using namespace std::chrono_literals;
using storage::Survival;
using storage::write_and_sync;

namespace {

/// A machine with a disk and one process.
struct OneMachine {
  explicit OneMachine(std::uint64_t seed = 1) : scheduler({.seed = seed}) {}

  Scheduler scheduler;
  SimulatedDisk disk{scheduler, "node-1 disk"};
  ProcessId process = scheduler.add_process("node-1");
  SimulatedFiles files{disk, process};
};

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

}  // namespace

TEST_CASE("simulated files keep the contract of files", "[sim]") {
  OneMachine machine;
  storage::check_files_contract(machine.files, "root");
}

TEST_CASE("a disk survives the end of a process with all that was written", "[sim]") {
  OneMachine machine;
  auto open = machine.files.create("file");
  REQUIRE(open);
  REQUIRE((*open)->write(bytes_of("unsynced")));
  auto lock = machine.files.lock("lock", "the first");
  REQUIRE(lock);
  machine.scheduler.kill(machine.process);
  CHECK_FALSE((*open)->write(bytes_of("more")));
  CHECK_FALSE((*open)->sync());
  CHECK_FALSE((*open)->close());
  CHECK_FALSE(machine.files.create("other"));
  CHECK_FALSE(machine.files.remove("file"));
  const auto read = machine.files.read("file");
  REQUIRE_FALSE(read);
  CHECK(read.error().text == "file: the process has ended");
  *lock = nullptr;  // The owner of the process destroys its objects.

  SimulatedFiles next(machine.disk, machine.scheduler.add_process("node-1 again"));
  CHECK(next.read("file")->text() == "unsynced");
  CHECK(next.lock("lock", "the second"));
}

TEST_CASE("a crash of the machine loses, keeps or tears what was not synced", "[sim]") {
  std::set<std::string> seen;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    OneMachine machine(seed);
    write_and_sync(machine.files, "synced", "synced");
    REQUIRE(machine.files.sync_directory("."));
    auto open = machine.files.append("synced");
    REQUIRE((*open)->write(bytes_of("0123")));
    machine.scheduler.kill(machine.process);
    machine.disk.crash();
    SimulatedFiles next(machine.disk, machine.scheduler.add_process("node-1 again"));
    const auto text = std::string(next.read("synced")->text());
    CHECK(text.starts_with("synced"));
    seen.insert(text);
  }
  CHECK(seen == std::set<std::string>{"synced", "synced0", "synced01", "synced012", "synced0123"});
}

TEST_CASE("a full disk stays full after a crash until it has room", "[sim]") {
  OneMachine machine;
  machine.disk.set_capacity(10);
  auto open = machine.files.create("file");
  CHECK_FALSE((*open)->write(bytes_of("0123456789abcdef")));
  CHECK(*machine.files.free_space(".") == 0);
  machine.disk.crash({Survival::Entries::kept, Survival::Contents::kept});
  open = machine.files.append("file");
  CHECK_FALSE((*open)->write(bytes_of("x")));
  machine.disk.set_capacity({});
  CHECK((*open)->write(bytes_of("x")));
  CHECK(machine.files.read("file")->text() == "0123456789x");
}

TEST_CASE("one call of a disk fails", "[sim]") {
  OneMachine machine;
  machine.disk.fail_call(1);
  CHECK(machine.files.make_directory("one"));
  const auto failed = machine.files.make_directory("two");
  REQUIRE_FALSE(failed);
  CHECK(failed.error().text == "two: Input/output error");
  CHECK(machine.files.make_directory("two"));

  machine.disk.fail_look(0);
  CHECK_FALSE(machine.files.inspect("one"));
  CHECK(machine.files.inspect("one"));
}

TEST_CASE("a lost disk fails for ever", "[sim]") {
  OneMachine machine;
  write_and_sync(machine.files, "file", "text");
  const auto reader = machine.files.open("file");
  const auto writer = machine.files.append("file");
  machine.disk.lose();
  CHECK(machine.files.read("file").error().text == "file: Input/output error");
  CHECK_FALSE(machine.files.exists("file").ok());
  CHECK_FALSE(machine.files.create("other"));
  CHECK_FALSE((*writer)->write(bytes_of("more")));
  std::array<std::byte, 1> byte{};
  CHECK_FALSE((*reader)->read(0, byte));
  machine.disk.crash({});
  CHECK_FALSE(machine.files.read("file"));
}

TEST_CASE("a slow disk stalls the work that calls it and not the loop", "[sim]") {
  OneMachine machine;
  machine.disk.set_times(1s, 2s);
  MachineConditions conditions{.least_work = 0ms, .most_work = 0ms};
  SimulatedEnv env(machine.scheduler, machine.process, conditions);
  const auto loop = env.make_loop({"main"});
  Env::Time written, beaten;
  loop->aside(
      "disk", [&] { write_and_sync(machine.files, "file", "text"); }, [&] { written = env.now(); });
  loop->after(10ms, [&] { beaten = env.now(); });
  CHECK(machine.scheduler.run_all() == Scheduler::Stopped::idle);
  CHECK(beaten == Scheduler::start + 10ms);
  // The calls create, write, sync and close.
  CHECK(written >= Scheduler::start + 4s);
  CHECK(written <= Scheduler::start + 8s);
  const auto before = env.now();
  machine.disk.set_times(1s, 2s, "led");
  loop->aside(
      "disk", [&] { write_and_sync(machine.files, "other", "text"); },
      [&] { written = env.now(); });
  CHECK(machine.scheduler.run_all() == Scheduler::Stopped::idle);
  CHECK(written == before);
}

TEST_CASE("a flipped bit is in one of the files", "[sim]") {
  std::set<std::string> seen;
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    OneMachine machine(seed);
    CHECK_FALSE(machine.disk.flip_bit("root"));
    REQUIRE(machine.files.make_directory("root/a"));
    CHECK_FALSE(machine.disk.flip_bit("root"));
    write_and_sync(machine.files, "root/a/one", "0");
    write_and_sync(machine.files, "root/two", "22");
    write_and_sync(machine.files, "root/empty", "");
    const auto path = machine.disk.flip_bit("root");
    REQUIRE(path);
    seen.insert(*path);
    const auto one = machine.files.read("root/a/one")->text() == "0";
    const auto two = machine.files.read("root/two")->text() == "22";
    CHECK(one == (*path != "root/a/one"));
    CHECK(two == (*path != "root/two"));
  }
  CHECK(seen == std::set<std::string>{"root/a/one", "root/two"});
}

TEST_CASE("calls are traced, and the same for equal seeds", "[sim]") {
  const auto hash_of = [](const std::string& path) {
    OneMachine machine;
    write_and_sync(machine.files, path, "text");
    return machine.scheduler.trace_hash();
  };
  CHECK(hash_of("one") == hash_of("one"));
  CHECK(hash_of("one") != hash_of("two"));

  Scheduler scheduler({.history = Scheduler::History::told});
  SimulatedDisk disk(scheduler, "head disk");
  SimulatedFiles files(disk, scheduler.add_process("head"));
  write_and_sync(files, "decisions", "a record");
  REQUIRE(files.rename("decisions", "old"));
  CHECK(scheduler.history() == std::vector<std::string>{
                                   "   0.000 s  head disk     create decisions",
                                   "   0.000 s  head disk     write decisions, 8 bytes",
                                   "   0.000 s  head disk     sync decisions",
                                   "   0.000 s  head disk     close decisions",
                                   "   0.000 s  head disk     rename decisions, to old",
                               });
}

TEST_CASE("a machine that crashes at any call keeps every synced record", "[sim]") {
  constexpr int records = 5;
  // Writes records and returns how many of them were synced.
  const auto write_records = [](storage::Files& files) {
    auto writer = storage::RecordWriter::open(files, "records");
    if (!writer || !files.sync_directory(".")) return 0;
    for (int i = 1; i <= records; ++i)
      if (!writer->append(Value::Map{{"number", i, {}}}) || !writer->sync()) return i - 1;
    return records;
  };
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    bool finished = false;
    for (int crash_at = 0; !finished; ++crash_at) {
      OneMachine machine(seed);
      int calls = 0;
      machine.disk.on_call([&](const SimulatedDisk::Call& call) {
        CHECK(call.process == machine.process);
        if (calls++ == crash_at) machine.scheduler.kill(call.process);
      });
      const int synced = write_records(machine.files);
      finished = synced == records;
      machine.disk.crash();
      const auto text = machine.disk.files().read("records");
      INFO("seed " << seed << ", crash at call " << crash_at);
      if (!text) {
        CHECK(synced == 0);
        continue;
      }
      const auto read = storage::read_records(text->text());
      CHECK(read.flaw == "");
      CHECK(read.good.size() >= static_cast<std::size_t>(synced));
    }
  }
}
