#include <signal.h>
#include <sys/resource.h>
#include <time.h>

#include <algorithm>
#include <random>

#include "apps/program.h"
#include "catch.h"
#include "core/json.h"

using namespace troupe;
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

/// The digest of the final weights, as the last save told it.
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

TEST_CASE("a run that was killed at any moment goes on to the same bytes", "[apps]") {
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
    // Killed again and again until it gets to its end.
    bool resume = false;
    for (int life = 0;; ++life) {
      REQUIRE(life < 200);
      const long microseconds = std::uniform_int_distribution<long>(1'000, 120'000)(random);
      Launch launch;
      launch.arguments = {"train", "run.toml", "--output", "json"};
      if (resume) launch.arguments.push_back("--resume");
      // A few lives at random lengths; then it may finish.
      if (life < 3) {
        launch.while_it_runs = [&](pid_t child) {
          const timespec pause{0, microseconds * 1'000};
          nanosleep(&pause, nullptr);  // The moment of the kill is what is being tested.
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

TEST_CASE("an interrupted run saves its state and says how to go on", "[apps]") {
  const Workplace here;
  here.write("run.toml", small_run);
  Launch launch;
  launch.arguments = {"train", "run.toml", "--set", "train.steps=100000"};
  launch.while_it_runs = [&](pid_t child) {
    // As soon as it trains: its first event is there.
    while (here.read("runs/small/events.jsonl").find("\"step\"") == std::string::npos) {
      const timespec pause{0, 1'000'000};
      nanosleep(&pause, nullptr);
    }
    kill(child, SIGINT);
  };
  const Ended ended = troupe::tests::troupe(here, launch);
  CHECK(ended.code == 75);
  CHECK(ended.err.find("stopped: after step") != std::string::npos);
  CHECK(ended.err.find("go on with: troupe train run.toml --set 'train.steps=100000' --resume") !=
        std::string::npos);
  CHECK(std::filesystem::exists(here.path() / "runs/small/checkpoints"));
}

TEST_CASE("a full disk does not stop training, and the last good checkpoint stays", "[apps]") {
  const Workplace here;
  here.write("run.toml", small_run);
  REQUIRE(train(here, {"--set", "train.steps=5"}).code == 0);
  Launch launch;
  launch.arguments = {"train", "run.toml", "--output", "json", "--resume"};
  launch.before_start = [] {
    // Files beyond 64 KiB cannot be written: checkpoints fail, events do not.
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
  CHECK(ended.code == 1);  // The final state could not be saved either.
  CHECK(troupe::tests::troupe(here, {"checkpoint", "verify", "runs/small/checkpoints"}).code == 0);
}

TEST_CASE("a run that has saved steps and finds none is refused, and begins anew if told to",
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
  // The folder is back.
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
