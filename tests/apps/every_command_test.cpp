#include <filesystem>
#include <string>
#include <vector>

#include "apps/program.h"
#include "catch.h"
#include "core/json.h"

using namespace troupe;
using namespace troupe::tests;

// Commands that no other test runs: tests/house/promises_test.py wants one for each.

namespace {

constexpr const char* tiny_run = R"(
name = "a"
[model]
kind = "mlp"
dims = [16, 4, 2]
[data]
train = "made:gaussians?classes=2"
[batch]
global = 4
micro = 2
[pipeline]
stages = 2
[train]
steps = 3
)";

}  // namespace

TEST_CASE("made data is written as a shard of tokens, which reads back", "[apps]") {
  const Workplace here;
  const Ended made = troupe::tests::troupe(
      here, {"data", "make", "made:markov?states=16", "--to", "m.bin", "--context", "8"});
  INFO(made.err);
  REQUIRE(made.code == 0);
  const Ended seen = troupe::tests::troupe(here, {"data", "inspect", "m.bin"});
  REQUIRE(seen.code == 0);
  const auto facts = parse_json(seen.out);
  REQUIRE(facts.ok());
  CHECK(*facts->find("kind")->text() == "token shard");
  CHECK(*facts->find("largest_token")->integer() == 15);

  const Ended absent = troupe::tests::troupe(here, {"data", "inspect", "nothing.bin"});
  CHECK(absent.code == 3);
  CHECK(absent.err == "error: nothing.bin: cannot open: No such file or directory\n");
}

TEST_CASE("a text becomes shards of bytes", "[apps]") {
  const Workplace here;
  here.write("t.txt", "hello hello hello");
  const Ended ended = troupe::tests::troupe(here, {"data", "prepare", "t.txt", "--to", "words"});
  INFO(ended.err);
  REQUIRE(ended.code == 0);
  CHECK(ended.out.find("1 document, 17 tokens") != std::string::npos);
  const Ended seen = troupe::tests::troupe(here, {"data", "inspect", "words_000000.bin"});
  REQUIRE(seen.code == 0);
  CHECK(*parse_json(seen.out)->find("tokens")->integer() == 17);
}

TEST_CASE("a share of a text is kept apart for validation", "[apps]") {
  const Workplace here;
  std::string text;
  for (int i = 100; i < 300; ++i) text += "this is line number " + std::to_string(i) + "\n";
  here.write("t.txt", text);
  const Ended ended =
      troupe::tests::troupe(here, {"data", "prepare", "t.txt", "--to", "t", "--validate", "5%"});
  INFO(ended.err);
  REQUIRE(ended.code == 0);
  CHECK(ended.out ==
        "t_000000.bin\n1 document, 4,560 tokens\n"
        "t-valid_000000.bin\nfor validation: 1 document, 240 tokens\n");
  for (const std::string wrong : {"60%", "0", "five", "5 %"}) {
    const Ended refused =
        troupe::tests::troupe(here, {"data", "prepare", "t.txt", "--to", "t", "--validate", wrong});
    CHECK(refused.code == 2);
    CHECK(refused.err.find("wanted a share up to 50%, such as 5%") != std::string::npos);
  }
}

TEST_CASE("the checkpoints of a run are listed", "[apps]") {
  const Workplace here;
  here.write("a.toml", tiny_run);
  REQUIRE(troupe::tests::troupe(here, {"train", "a.toml", "-q"}).code == 0);
  const Ended listed = troupe::tests::troupe(here, {"checkpoint", "ls", "runs/a/checkpoints"});
  REQUIRE(listed.code == 0);
  CHECK(listed.out.starts_with("runs/a/checkpoints/step-000000000003  step 3  "));
}

TEST_CASE("a configuration is shown complete, and the reference lists its keys", "[apps]") {
  const Workplace here;
  here.write("a.toml", tiny_run);
  const Ended shown =
      troupe::tests::troupe(here, {"config", "show", "a.toml", "--set", "batch.micro=4"});
  REQUIRE(shown.code == 0);
  CHECK(shown.out.find("global = 4") != std::string::npos);
  CHECK(shown.out.find("micro = 4") != std::string::npos);
  const Ended reference = troupe::tests::troupe(here, {"config", "reference"});
  REQUIRE(reference.code == 0);
  CHECK(reference.out.find("| `stages` |") != std::string::npos);
}

TEST_CASE("a simulated run does its steps on the cluster of a file", "[apps]") {
  const Workplace here;
  here.write("a.toml", tiny_run);
  here.write("c.toml",
             "[[nodes]]\nname = \"a\"\nmemory = \"1GiB\"\n"
             "[[nodes]]\nname = \"b\"\nmemory = \"1GiB\"\n");
  const Ended ended = troupe::tests::troupe(
      here, {"sim", "a.toml", "--cluster", "c.toml", "--hours", "0.001", "--output", "json"});
  INFO(ended.err);
  REQUIRE(ended.code == 0);
  const auto told = parse_json(ended.out);
  REQUIRE(told.ok());
  CHECK(*told->find("steps")->integer() == 3);
  CHECK(*told->find("losses")->integer() == 0);
}

TEST_CASE("an order to a run finds no head where none listens", "[apps]") {
  const Workplace here;
  const Ended ended =
      troupe::tests::troupe(here, {"resume", "some", "--head", "tcp://127.0.0.1:1"});
  CHECK(ended.code == 5);
  CHECK(ended.err.find("no head answered at tcp://127.0.0.1:1") != std::string::npos);
}

TEST_CASE("a benchmark refuses numbers that it cannot use", "[apps]") {
  const Workplace here;
  const Ended link = troupe::tests::troupe(here, {"bench", "transport", "--rounds", "0"});
  CHECK(link.code == 2);
  CHECK(link.err.find("--rounds") != std::string::npos);
  const Ended gpu = troupe::tests::troupe(here, {"bench", "gpu", "--rounds", "0"});
  CHECK(gpu.code == 2);
  CHECK(gpu.err.find("--rounds") != std::string::npos);
}

TEST_CASE("commands on checkpoints take the name of a run, and its folder", "[apps]") {
  const Workplace here;
  here.write("a.toml", tiny_run);
  REQUIRE(troupe::tests::troupe(here, {"train", "a.toml", "-q"}).code == 0);
  const auto said = [&](const std::vector<std::string>& words) {
    const Ended ended = troupe::tests::troupe(here, words);
    INFO(ended.err);
    CHECK(ended.code == 0);
    return ended.out;
  };
  for (const std::string command : {"ls", "inspect", "verify"}) {
    const auto of = [&](const std::string& what) { return said({"checkpoint", command, what}); };
    const std::string full = of("runs/a/checkpoints");
    CHECK(full.find("runs/a/checkpoints/step-000000000003") != std::string::npos);
    CHECK(of("runs/a") == full);
    CHECK(of("a") == full);
  }
  // A folder of this name comes first.
  std::filesystem::create_directory(here.path() / "a");
  CHECK(said({"checkpoint", "ls", "a"}) == "no checkpoint in a\n");
}

TEST_CASE("a command that does not find its run names the one that is probably meant", "[apps]") {
  const Workplace here;
  here.write("other.toml", tiny_run);
  REQUIRE(troupe::tests::troupe(here, {"train", "other.toml", "-q", "--set", "name=other"}).code ==
          0);
  const auto said = [&](std::vector<std::string> words) {
    const Ended ended = troupe::tests::troupe(here, words);
    CHECK(ended.code == 3);
    CHECK(ended.out.empty());
    return ended.err;
  };
  using Words = std::vector<std::string>;
  for (const Words& words : {Words{"report"},
                             {"audit"},
                             {"trace", "export"},
                             {"checkpoint", "ls"},
                             {"checkpoint", "verify"},
                             {"eval"}}) {
    Words all = words;
    all.push_back("othre");
    CHECK(said(all) ==
          "error: othre: there is no such run in runs/, and no such folder; is other "
          "meant?; `troupe runs --local` lists runs\n");
  }
  const Ended out =
      troupe::tests::troupe(here, {"report", "other", "--out", "nowhere/report.html"});
  CHECK(out.code != 0);
  CHECK(out.err == "error: nowhere/report.html.new: cannot create: there is no folder nowhere\n");
}
