#include <signal.h>
#include <sys/resource.h>
#include <time.h>

#include <algorithm>
#include <filesystem>
#include <random>

#include "apps/events/event.h"
#include "apps/events/event_backlog.h"
#include "apps/events/file_sink.h"
#include "apps/program.h"
#include "apps/report/run_events.h"
#include "catch.h"
#include "core/json.h"
#include "core/threads/real_env.h"

using namespace troupe;
using namespace troupe::apps;
using namespace troupe::tests;

namespace {

const std::string small_run = R"(
name = "small"
seed = 3
[model]
kind    = "gpt2"
vocab   = 32
context = 16
width   = 32
heads   = 2
layers  = 2
dropout = 0.1
[data]
train = "made:markov?states=32"
[batch]
global = 8
micro  = 2
[optimizer]
kind = "adamw"
lr   = 3e-3
[checkpoint]
every = "5 steps"
[train]
steps  = 60
export = "final.safetensors"
)";

/// Returns the digest of the final weights from the last save event.
std::string final_digest(const Ended& ended) {
  const auto saved = ended.events("checkpoint.saved");
  REQUIRE(!saved.empty());
  return *saved.back().find("weights")->text();
}

Ended train(const Workplace& here, std::vector<std::string> more = {}) {
  std::vector<std::string> arguments{"train", "run.toml", "--output", "json"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return troupe::tests::troupe(here, arguments);
}

std::string final_checkpoint(const Workplace& here) {
  std::string all;
  const auto folder = here.path() / "runs/small/checkpoints/step-000000000060";
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  for (const auto& file : files)
    all += file.filename().string() + "\n" +
           here.read(std::filesystem::relative(file, here.path()).string());
  return all;
}

}  // namespace

TEST_CASE("a run that was killed at any moment resumes to the same bytes", "[apps]") {
  const Workplace undisturbed;
  undisturbed.write("run.toml", small_run);
  const Ended whole = train(undisturbed);
  INFO(whole.err);
  REQUIRE(whole.code == 0);
  const std::string wanted = final_checkpoint(undisturbed);
  const std::string exported = undisturbed.read("final.safetensors");

  std::mt19937 random(20);
  int killed = 0;
  for (int round = 0; round < 20; ++round) {
    const Workplace here;
    here.write("run.toml", small_run);
    // Kills the run repeatedly until it completes.
    bool resume = false;
    for (int life = 0;; ++life) {
      REQUIRE(life < 200);
      const long microseconds = std::uniform_int_distribution<long>(1'000, 120'000)(random);
      Launch launch;
      launch.arguments = {"train", "run.toml", "--output", "json"};
      if (resume) launch.arguments.push_back("--resume");
      // A few lives end at random times; then the run may complete.
      if (life < 3) {
        launch.while_it_runs = [&](pid_t child) {
          const timespec pause{0, microseconds * 1'000};
          nanosleep(&pause, nullptr);  // The test kills at a random time on purpose.
          kill(child, SIGKILL);
        };
      }
      const Ended ended = troupe::tests::troupe(here, launch);
      resume = true;
      if (ended.code == 128 + SIGKILL) {
        ++killed;
        continue;
      }
      INFO(ended.err);
      REQUIRE(ended.code == 0);
      break;
    }
    CHECK(final_checkpoint(here) == wanted);
    CHECK(here.read("final.safetensors") == exported);
  }
  CHECK(killed >= 20);
}

TEST_CASE("neither threads nor recomputation change a bit", "[apps]") {
  const Workplace here;
  here.write("run.toml", small_run);
  const auto with = [&](std::vector<std::string> settings) {
    std::vector<std::string> more;
    for (const auto& setting : settings) {
      more.push_back("--set");
      more.push_back(setting);
    }
    const Ended ended = train(here, more);
    INFO(ended.err);
    REQUIRE(ended.code == 0);
    return final_digest(ended);
  };
  const std::string one = with({"train.threads=1"});
  CHECK(one == with({"train.threads=2"}));
  CHECK(one == with({"train.threads=3"}));
  CHECK(one == with({"pipeline.recompute=true"}));
  CHECK(one == with({"pipeline.stages=2", "pipeline.schedule=zb-h1"}));
  CHECK(one != with({"seed=4"}));
}

TEST_CASE("an interrupted run saves its state and says how to resume", "[apps]") {
  const Workplace here;
  here.write("run.toml", small_run);
  Launch launch;
  launch.arguments = {"train", "run.toml", "--set", "train.steps=100000"};
  launch.while_it_runs = [&](pid_t child) {
    // Waits for the first step.
    while (here.read("runs/small/events.jsonl").find("\"step\"") == std::string::npos) {
      const timespec pause{0, 1'000'000};
      nanosleep(&pause, nullptr);
    }
    kill(child, SIGINT);
  };
  const Ended ended = troupe::tests::troupe(here, launch);
  CHECK(ended.code == 75);
  CHECK(ended.err.find("stopped: after step") != std::string::npos);
  CHECK(ended.err.find("to resume: troupe train run.toml --set 'train.steps=100000' --resume") !=
        std::string::npos);
  CHECK(std::filesystem::exists(here.path() / "runs/small/checkpoints"));
}

TEST_CASE("a run that resumes with other settings is told how to go on", "[apps]") {
  const Workplace here;
  here.write("run.toml", small_run);
  REQUIRE(train(here, {"--set", "optimizer.schedule.kind=cosine"}).code == 0);
  std::vector<std::string> longer{"--set", "optimizer.schedule.kind=cosine", "--set",
                                  "train.steps=70", "--resume"};
  const Ended refused = train(here, longer);
  INFO(refused.err);
  CHECK(refused.code == 3);
  CHECK(refused.err.find("total_steps: the checkpoint has 60, this run 70") != std::string::npos);
  const std::string way_on = "--resume --extend N";
  CHECK(refused.err.find(way_on + "\n") != std::string::npos);
  longer.insert(longer.end(), {"--set", "optimizer.schedule.total_steps=60"});
  CHECK(train(here, longer).code == 0);
  longer.insert(longer.end(), {"--set", "batch.global=16"});
  const Ended other = train(here, longer);
  CHECK(other.code == 3);
  CHECK(other.err.find(way_on) == std::string::npos);
  CHECK(other.err.find("\nto begin a new run with its weights: train without --resume, with "
                       "--set name=NEW --set model.init=run:small\n") != std::string::npos);
}

TEST_CASE("a finished run is extended, and again, at the last rate of its schedule", "[apps]") {
  const Workplace here;
  here.write("run.toml", small_run);
  const std::vector<std::string> cosine{"--set", "optimizer.schedule.kind=cosine",
                                        "--set", "optimizer.schedule.min_lr=1e-4",
                                        "--set", "train.steps=10"};
  REQUIRE(train(here, cosine).code == 0);
  auto longer = cosine;
  longer.insert(longer.end(), {"--resume", "--extend", "5"});
  for (const std::int64_t steps : {15, 20}) {
    const Ended ended = train(here, longer);
    INFO(ended.err);
    REQUIRE(ended.code == 0);
    const auto done = ended.events("step");
    REQUIRE(done.size() == 5);
    CHECK(*done.front().find("step")->integer() == steps - 4);
    CHECK(*done.back().find("step")->integer() == steps);
    CHECK(done.back().find("lr")->number() == Approx(1e-4));
  }
  // A run without a schedule is extended, too.
  REQUIRE(train(here, {"--set", "train.steps=5"}).code == 0);
  CHECK(
      train(here, {"--set", "train.steps=5", "--resume", "--extend", "2"}).events("step").size() ==
      2);
  const Ended alone = train(here, {"--extend", "5"});
  CHECK(alone.code == 2);
  const Ended nothing = train(here, {"--set", "name=other", "--resume", "--extend", "5"});
  CHECK(nothing.code == 3);
  CHECK(nothing.err.find("--extend: runs/other/config.toml") != std::string::npos);
}

TEST_CASE("a run begins with the weights of another one by its name", "[apps]") {
  const Workplace here;
  here.write("run.toml", small_run);
  REQUIRE(train(here, {"--set", "train.steps=10"}).code == 0);
  REQUIRE(troupe::tests::troupe(here, {"checkpoint", "export", "small", "--to", "w.safetensors"})
              .code == 0);
  const auto tuned = [&](const std::string& init) {
    const Ended ended = train(here, {"--set", "name=tuned", "--set", "train.steps=5", "--set",
                                     "optimizer.lr=1e-4", "--set", "model.init=" + init});
    INFO(ended.err);
    REQUIRE(ended.code == 0);
    return final_digest(ended);
  };
  CHECK(tuned("run:small") == tuned("w.safetensors"));
  const Ended nobody = train(here, {"--set", "model.init=run:nobody", "--set", "name=x"});
  CHECK(nobody.code == 3);
  CHECK(nobody.err.find("runs/nobody/checkpoints: there is no checkpoint") != std::string::npos);
  const Ended wider =
      train(here, {"--set", "model.init=run:small", "--set", "name=x", "--set", "model.width=64"});
  CHECK(wider.code == 3);
}

TEST_CASE("a full disk does not stop training, and the last good checkpoint survives", "[apps]") {
  const Workplace here;
  here.write("run.toml", small_run);
  REQUIRE(train(here, {"--set", "train.steps=5"}).code == 0);
  Launch launch;
  launch.arguments = {"train", "run.toml", "--output", "json", "--resume"};
  launch.before_start = [] {
    // Files cannot grow beyond 64 KiB: checkpoints fail, events do not.
    signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{65536, 65536};
    setrlimit(RLIMIT_FSIZE, &limit);
  };
  const Ended ended = troupe::tests::troupe(here, launch);
  INFO(ended.err);
  CHECK(ended.events("step").size() == 55);
  const auto warnings = ended.events("warn");
  CHECK(std::any_of(warnings.begin(), warnings.end(), [](const Value& warning) {
    return warning.find("text")->text()->find("was not saved") != std::string::npos;
  }));
  CHECK(ended.code == 1);  // Saving the final state failed too.
  CHECK(troupe::tests::troupe(here, {"checkpoint", "verify", "runs/small/checkpoints"}).code == 0);
}

TEST_CASE("a run that has saved steps but finds no checkpoint is refused without --from-scratch",
          "[apps]") {
  const Workplace here;
  here.write("run.toml", small_run);
  REQUIRE(train(here, {"--set", "train.steps=10"}).code == 0);
  const auto root = here.path() / "runs/small/checkpoints";
  const auto away = here.path() / "not-mounted";
  std::filesystem::rename(root, away);
  const Ended refused = train(here, {"--resume"});
  CHECK(refused.code == 3);
  CHECK(refused.err.find("runs/small/ledger: step 10 was saved below runs/small/checkpoints, but "
                         "below runs/small/checkpoints there is no checkpoint now") !=
        std::string::npos);
  CHECK(refused.err.find("--from-scratch") != std::string::npos);
  // Restores the folder.
  std::filesystem::remove_all(root);
  std::filesystem::rename(away, root);
  const Ended resumed = train(here, {"--resume", "--set", "train.steps=20"});
  INFO(resumed.err);
  CHECK(resumed.code == 0);
  CHECK(resumed.events("step").size() == 10);

  std::filesystem::remove_all(root);
  const Ended anew = train(here, {"--resume", "--from-scratch", "--set", "train.steps=4"});
  INFO(anew.err);
  CHECK(anew.code == 0);
  CHECK(anew.events("step").size() == 4);
  CHECK(troupe::tests::troupe(here, {"audit", "small"}).code == 0);
}

TEST_CASE("a run is refused if another process writes its folder or checkpoints", "[apps]") {
  const Workplace here;
  here.write("run.toml", small_run);
  Launch launch;
  launch.arguments = {
      "train", "run.toml", "--set", "train.steps=100000", "--set", "checkpoint.dir=saved"};
  std::vector<Ended> refused;
  Ended pruned;
  launch.while_it_runs = [&](pid_t child) {
    while (here.read("runs/small/events.jsonl").find("checkpoint.saved") == std::string::npos) {
      const timespec pause{0, 1'000'000};
      nanosleep(&pause, nullptr);
    }
    const std::vector<std::string> dir = {"--set", "checkpoint.dir=saved"};
    refused.push_back(train(here, {dir[0], dir[1], "--resume"}));
    refused.push_back(train(here, dir));
    refused.push_back(train(here, {dir[0], dir[1], "--set", "name=other"}));
    pruned = troupe::tests::troupe(here, {"checkpoint", "prune", "saved", "--keep", "1"});
    kill(child, SIGINT);
  };
  const Ended ended = troupe::tests::troupe(here, launch);
  INFO(ended.err);
  CHECK(ended.code == 75);
  for (const auto& each : refused) {
    INFO(each.err);
    CHECK(each.code != 0);
    CHECK(each.err.find("/lock: is locked by process ") != std::string::npos);
  }
  CHECK(pruned.code == 3);
  CHECK(pruned.err.find("saved/lock: is locked by process ") != std::string::npos);
  CHECK_FALSE(std::filesystem::exists(here.path() / "runs/small.1"));
  CHECK(troupe::tests::troupe(here, {"audit", "small"}).code == 0);
}

TEST_CASE("a run whose data file was replaced does not resume", "[apps]") {
  const Workplace here;
  here.write("run.toml", small_run);
  std::string text;
  for (int i = 0; i < 3'000; ++i) text += "a line of a book, " + std::to_string(i % 9);
  here.write("book.txt", text);
  const auto go = [&](const std::string& steps, std::vector<std::string> more) {
    more.insert(more.end(), {"--set", "data.train=book.txt", "--set", "model.vocab=256", "--set",
                             "train.steps=" + steps});
    return train(here, more);
  };
  const Ended whole = go("5", {});
  INFO(whole.err);
  REQUIRE(whole.code == 0);
  std::string other = text;
  other[17'000] = static_cast<char>(other[17'000] ^ 1);
  here.write("book.txt", other);
  const Ended refused = go("10", {"--resume"});
  CHECK(refused.code == 3);
  CHECK(refused.err.find("data.files.book.txt: the checkpoint has ") != std::string::npos);
  here.write("book.txt", text);
  CHECK(go("10", {"--resume"}).code == 0);
}

TEST_CASE("events that a full disk refuses are counted, and the file contains only whole lines",
          "[apps]") {
  const Workplace here;
  here.write("run.toml", small_run);
  Launch launch;
  launch.arguments = {"train", "run.toml",           "--output", "plain",
                      "--set", "train.steps=100000", "--set",    "checkpoint.every=100000 steps",
                      "--set", "log.every=1"};
  constexpr rlim_t room = 5'000;
  launch.before_start = [] {
    // Files cannot grow beyond this length, as on a full disk, until there is room again.
    signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{room, RLIM_INFINITY};
    setrlimit(RLIMIT_FSIZE, &limit);
  };
  launch.while_it_runs = [&](pid_t child) {
    const auto wait_until = [&](const std::function<bool()>& is_so) {
      while (!is_so()) {
        const timespec pause{0, 1'000'000};
        nanosleep(&pause, nullptr);
      }
    };
    wait_until([&] { return here.read("runs/small/events.jsonl").size() == room; });
    // The write that filled the file may still go on. An event is printed once the file is done
    // with it, so the next line tells that the disk has refused an event.
    const auto printed = here.read(".err").size();
    wait_until([&] { return here.read(".err").size() > printed; });
    const rlimit limit{RLIM_INFINITY, RLIM_INFINITY};
    REQUIRE(prlimit(child, RLIMIT_FSIZE, &limit, nullptr) == 0);
    wait_until([&] {
      return here.read("runs/small/events.jsonl").find("lost_events") != std::string::npos;
    });
    kill(child, SIGINT);
  };
  const Ended ended = troupe::tests::troupe(here, launch);
  INFO(ended.err);
  CHECK(ended.code == 75);
  std::string events = here.read("runs/small/events.jsonl");
  int torn = 0;
  std::int64_t lost = 0;
  CHECK(events.ends_with("\n"));
  while (!events.empty()) {
    const auto end = events.find('\n');
    const auto event = parse_json(std::string_view(events).substr(0, end));
    if (!event)
      ++torn;
    else if (const Value* count = event->find("lost_events"))
      lost += *count->integer();
    events.erase(0, end + 1);
  }
  // The file ends with a part of the refused event until the warning begins on a new line. That
  // part is no event, unless the file was full just before the end of the line: then the line is
  // whole. Later refused events leave nothing in a full file.
  CHECK(torn <= 1);
  CHECK(lost >= 1);
  CHECK(troupe::tests::troupe(here, {"report", "small"}).code == 0);
}

TEST_CASE("an events file that was cut is read from the oldest event that is left", "[apps]") {
  const Workplace here;
  const std::string folder = (here.path() / "runs/r").string(), path = folder + "/events.jsonl";
  std::filesystem::create_directories(folder);
  const auto files = storage::disk_files();
  RealEnv env;
  constexpr std::int64_t most = 2'000;
  std::int64_t told = 0;
  const auto tell = [&](int count) {
    const auto sink = *FileSink::open(env, *files, path, most);
    for (int i = 0; i < count; ++i) {
      Value step = event("step", "r");
      step.set("step", ++told);
      sink->event(told_at(env.wall_time(), step));
    }
  };
  // Returns the steps that a reader finds from a place on.
  const auto read = [&](std::int64_t from) {
    std::vector<std::int64_t> steps;
    for (;;) {
      const auto page = read_page(*files, path, from);
      REQUIRE(page);
      if (page->lines.empty()) break;
      CHECK(page->next > from);
      from = page->next;
      for (std::string_view rest = page->lines; !rest.empty();) {
        const auto end = rest.find('\n');
        const auto event = parse_json(rest.substr(0, end));
        REQUIRE(event);
        if (const Value* step = event->find("step")) steps.push_back(*step->integer());
        rest.remove_prefix(end + 1);
      }
    }
    CHECK(from == end_of_events(*files, path));
    return steps;
  };
  const auto are_in_turn = [&](const std::vector<std::int64_t>& steps) {
    for (std::size_t i = 1; i < steps.size(); ++i)
      if (steps[i] != steps[i - 1] + 1) return false;
    return !steps.empty() && steps.back() == told;
  };
  tell(10);
  const auto tenth = end_of_events(*files, path);
  CHECK(read(0).size() == 10);
  // A reader reads each new event once, even if the file was cut meanwhile.
  tell(20);
  const auto seen = end_of_events(*files, path);
  CHECK(read(tenth).front() == 11);
  tell(15);
  CHECK(are_in_turn(read(seen)));
  CHECK(read(seen).front() == 31);
  for (int life = 0; life < 20; ++life) tell(7);
  CHECK(std::filesystem::file_size(path) < 2 * most);
  CHECK(std::filesystem::file_size(older_events(path)) < 2 * most);
  CHECK(are_in_turn(read(0)));
  CHECK(read(0).front() > 1);
  CHECK(are_in_turn(read(seen)));
  const auto end = end_of_events(*files, path);
  tell(1);
  CHECK(read(end) == std::vector<std::int64_t>{told});
  const auto all = read_events(*files, folder);
  REQUIRE(all);
  CHECK(parse_events(*all).steps.size() == read(0).size());
}
