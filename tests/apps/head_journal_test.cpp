#include "apps/head/head_journal.h"

#include <random>

#include "apps/program.h"
#include "catch.h"
#include "core/threads/real_env.h"
#include "storage/files/memory_files.h"

using namespace troupe;
using namespace troupe::apps;
using namespace troupe::storage;
using troupe::tests::Workplace;

// The lock is on a real disk; everything else is on a disk in memory.

namespace {

using Entries = Survival::Entries;
using Contents = Survival::Contents;

/// An environment whose calendar a test moves.
class Calendar final : public Env {
 public:
  WallTime today{std::chrono::seconds(1'000'000'000)};

  Time now() override { return real_.now(); }
  WallTime wall_time() override { return today; }
  std::uint64_t random() override { return real_.random(); }
  std::unique_ptr<Loop> make_loop(LoopOptions options) override {
    return real_.make_loop(std::move(options));
  }
  [[noreturn]] void end_process(int code, const std::string& last_words) override {
    real_.end_process(code, last_words);
  }
  [[noreturn]] void crash(const std::string& last_words) override { real_.crash(last_words); }

 private:
  RealEnv real_;
};

/// The facts that a head was told are on disk.
struct Told {
  std::uint64_t term = 0;
  std::string listened;
  std::map<std::string, std::string> states;  // States by run.
};

Value config(const std::string& name) {
  Value value;
  value.set("name", name);
  return value;
}

/// Plays a head's life: two runs are submitted, and one of them ends. The life ends at once if the
/// journal cannot be opened.
void live(const std::string& folder, MemoryFiles& files, Told& told) {
  RealEnv env;
  auto journal = HeadJournal::open({env, "a test"}, files, folder);
  if (!journal) return;
  CHECK((*journal)->term() > told.term);
  told.term = (*journal)->term();
  if ((*journal)->listens("tcp://127.0.0.1:4700", "tcp://127.0.0.1:4701"))
    told.listened = "tcp://127.0.0.1:4700";
  std::uint64_t submission = 0;
  for (const std::string run : {"one", "two"}) {
    if ((*journal)->runs().contains(run)) continue;
    if ((*journal)->submitted(run, ++submission, config(run)))
      told.states[run] = "running";
    else
      // A run whose submission failed must not appear later.
      CHECK_FALSE((*journal)->runs().contains(run));
  }
  if (told.states.contains("one") && (*journal)->ended("one", "done", "all steps are done", 5, 5))
    told.states["one"] = "done";
}

void check(const std::string& folder, MemoryFiles& files, const Told& told) {
  RealEnv env;
  const auto journal = HeadJournal::open({env, "a test"}, files, folder);
  INFO((journal ? "" : journal.error().text));
  REQUIRE(journal);
  REQUIRE((*journal)->term() > told.term);
  if (!told.listened.empty()) REQUIRE((*journal)->listened() == told.listened);
  const auto runs = (*journal)->runs();
  for (const auto& [name, state] : told.states) {
    REQUIRE(runs.contains(name));
    const auto& run = runs.at(name);
    // The record that was being written during the crash may be complete.
    if (state == "done") REQUIRE(run.state == "done");
    if (run.state == "done")
      REQUIRE(run.step == 5);
    else
      REQUIRE(run.config == config(name));
  }
}

}  // namespace

TEST_CASE("a crash at any disk call loses nothing that a head was told is on disk", "[apps]") {
  const Workplace here;
  const std::string folder = (here.path() / "state").string();
  std::filesystem::create_directory(folder);
  MemoryFiles counting;
  Told all;
  live(folder, counting, all);
  REQUIRE(all.states.size() == 2);
  const auto calls = counting.calls();
  std::vector<Survival> survivals = {{Entries::lost, Contents::lost, 0},
                                     {Entries::kept, Contents::kept, 0},
                                     {Entries::kept, Contents::torn, 0}};
  for (std::uint64_t seed = 1; seed <= 10; ++seed)
    survivals.push_back({Entries::drawn, Contents::drawn, seed});
  for (const auto& survival : survivals)
    for (std::int64_t call = 0; call <= 2 * calls; ++call) {
      MemoryFiles files;
      Told told;
      if (call > calls) live(folder, files, told);  // The crash hits the second life.
      const auto first = call > calls ? files.calls() + call - calls : call;
      files.set_faults({.crash_at = first, .failing_call = {}, .capacity = {}});
      live(folder, files, told);
      files.restart(survival);
      INFO("crash at call " << call << ", seed " << survival.seed);
      check(folder, files, told);
    }
}

TEST_CASE("a head whose disk fails once refuses what it cannot record, and continues", "[apps]") {
  RealEnv env;
  const Workplace here;
  const std::string folder = (here.path() / "state").string();
  std::filesystem::create_directory(folder);
  MemoryFiles counting;
  Told all;
  live(folder, counting, all);
  for (std::int64_t call = 0; call < counting.calls(); ++call) {
    MemoryFiles files;
    files.set_faults({.crash_at = {}, .failing_call = call, .capacity = {}});
    Told told;
    live(folder, files, told);
    INFO("failing call " << call);
    const bool refused_two = told.term > 0 && !told.states.contains("two");
    files.restart({});
    check(folder, files, told);
    if (refused_two)
      CHECK_FALSE((*HeadJournal::open({env, "a test"}, files, folder))->runs().contains("two"));
  }
}

TEST_CASE("a head whose disk was full records again once there is room", "[apps]") {
  RealEnv env;
  const Workplace here;
  const std::string folder = (here.path() / "state").string();
  std::filesystem::create_directory(folder);
  MemoryFiles files;
  Told told;
  {
    auto journal = HeadJournal::open({env, "a test"}, files, folder);
    REQUIRE((*journal)->submitted("one", 1, config("one")));
    files.set_faults({.crash_at = {}, .failing_call = {}, .capacity = 0});
    CHECK_FALSE((*journal)->submitted("two", 2, config("two")));
    files.set_faults({});
    REQUIRE((*journal)->submitted("three", 3, config("three")));
  }
  files.restart({});
  const auto runs = (*HeadJournal::open({env, "a test"}, files, folder))->runs();
  CHECK(runs.contains("one"));
  CHECK_FALSE(runs.contains("two"));
  CHECK(runs.contains("three"));
}

TEST_CASE("a head does not start with a damaged journal, and the error names it", "[apps]") {
  RealEnv env;
  const auto disk = troupe::storage::disk_files();
  const Workplace here;
  const std::string folder = (here.path() / "state").string();
  const std::string path = folder + "/journal";
  {
    auto journal = HeadJournal::open({env, "a test"}, *disk, folder);
    REQUIRE((*journal)->submitted("one", 1, config("one")));
    REQUIRE((*journal)->ended("one", "done", "all steps are done", 5, 5));
  }
  const std::string good = here.read("state/journal");
  const auto refused = [&](const std::string& text) {
    here.write("state/journal", text);
    const auto opened = HeadJournal::open({env, "a test"}, *disk, folder);
    return !opened && opened.error().text.starts_with(path + ": ") &&
           opened.error().text.ends_with("or move it away to begin without its runs");
  };
  std::mt19937_64 random(7);
  for (int flip = 0; flip < 300; ++flip) {
    auto bad = good;
    const auto byte = random() % bad.size();
    bad[byte] = static_cast<char>(bad[byte] ^ (1 << random() % 8));
    INFO("byte " << byte << " of " << good.size());
    CHECK(refused(bad));
  }
  CHECK(refused(""));
  CHECK(refused(good.substr(0, 10)));
  CHECK(refused(std::string(good.size(), '\0')));
  here.write("state/journal", good);
  CHECK((*HeadJournal::open({env, "a test"}, *disk, folder))->runs().at("one").state == "done");
}

TEST_CASE("a journal keeps the newest ended runs for some time, and its size is bounded",
          "[apps]") {
  const Workplace here;
  const std::string folder = (here.path() / "state").string();
  Calendar env;
  const EndedBounds bounds{100, std::chrono::hours(24)};
  std::filesystem::create_directory(folder);
  std::uint64_t largest = 0;
  MemoryFiles files;
  auto journal = HeadJournal::open({env, "a test"}, files, folder, bounds);
  REQUIRE(journal);
  REQUIRE((*journal)->submitted("lasting", 1, config("lasting")));
  for (int i = 0; i < 10'000; ++i, env.today += std::chrono::seconds(1)) {
    const auto name = "r" + std::to_string(i);
    REQUIRE((*journal)->submitted(name, 2, config(name)));
    REQUIRE((*journal)->ended(name, "done", "", 5, 5));
    largest = std::max(largest, files.inspect(folder + "/journal")->bytes);
  }
  const auto check_newest = [&](const HeadJournal& of) {
    const auto runs = of.runs();
    CHECK(runs.size() == 101);
    CHECK(runs.at("lasting").state == "running");
    CHECK(runs.at("r9999").config.is_null());
    CHECK(runs.contains("r9900"));
    CHECK_FALSE(runs.contains("r9899"));
  };
  check_newest(**journal);
  CHECK(largest < 500'000);
  (*journal).reset();
  journal = HeadJournal::open({env, "a test"}, files, folder, bounds);
  REQUIRE(journal);
  check_newest(**journal);
  // Ended runs are forgotten after a day; the others are not.
  env.today += std::chrono::hours(24);
  REQUIRE((*journal)->ended("last", "failed", "it had to", 1, 5));
  CHECK((*journal)->runs().size() == 2);
  CHECK((*journal)->knows("lasting"));
  CHECK((*journal)->knows("last"));
}
