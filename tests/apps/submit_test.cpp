// A submitted run reads files from the folder of whoever submits it.

#include <string>
#include <vector>

#include "apps/program.h"
#include "apps/small_cluster.h"
#include "catch.h"
#include "core/json.h"

using namespace troupe;
using namespace troupe::tests;

namespace {

constexpr const char* text_run = R"(
name = "own"
[model]
kind = "gpt2"
vocab = 256
context = 16
width = 16
heads = 2
layers = 1
[data]
train = "book.txt"
[batch]
global = 4
[train]
steps = 2
)";

std::string short_book() {
  std::string text;
  for (int i = 0; i < 100; ++i) text += "to be or not to be ";
  return text;
}

}  // namespace

TEST_CASE("submit finds data beside the user, although the head was started elsewhere", "[apps]") {
  const SmallCluster cluster;
  const Workplace mine;
  mine.write("own.toml", text_run);
  mine.write("book.txt", short_book());
  const Ended ended = cluster.run_in(mine, {"submit", "own.toml", "--wait"});
  INFO(ended.err << ended.out);
  CHECK(ended.code == 0);
  // The run lies beside the head, and knows where its data is.
  CHECK(mentions(cluster.here().read("runs/own/config.toml"), mine.path().string() + "/book.txt"));
}

TEST_CASE("submit without its data names both folders that were searched", "[apps]") {
  const SmallCluster cluster;
  const Workplace mine;
  mine.write("own.toml", text_run);
  const Ended ended = cluster.run_in(mine, {"submit", "own.toml"});
  CHECK(ended.code == 3);
  INFO(ended.err);
  CHECK(mentions(ended.err, "book.txt"));
  CHECK(mentions(ended.err, cluster.here().path().string()));
  CHECK(mentions(ended.err, "and in " + mine.path().string()));
}

TEST_CASE("submit says that it moved an earlier run of the name aside", "[apps]") {
  const SmallCluster cluster;
  cluster.here().write("own.toml", text_run);
  cluster.here().write("book.txt", short_book());
  REQUIRE(cluster.run({"submit", "own.toml", "--wait"}).code == 0);
  const Ended again = cluster.run({"submit", "own.toml"});
  CHECK(again.code == 0);
  CHECK(mentions(again.err, "the earlier run of this name was moved to runs/own.1"));
}

TEST_CASE("submit --extend trains a run longer that has ended", "[apps]") {
  const SmallCluster cluster;
  cluster.here().write("own.toml",
                       text_run + std::string("[optimizer]\nschedule = { kind = \"cosine\" }\n"));
  cluster.here().write("book.txt", short_book());
  // There is nothing to extend yet.
  const Ended early = cluster.run({"submit", "own.toml", "--resume", "--extend", "3"});
  CHECK(early.code == 3);
  CHECK(mentions(early.err, "runs/own/config.toml: a run that is extended leaves"));
  REQUIRE(cluster.run({"submit", "own.toml", "--wait"}).code == 0);
  const Ended longer = cluster.run(
      {"submit", "own.toml", "--resume", "--extend", "3", "--wait", "--output", "json"});
  INFO(longer.err << longer.out);
  REQUIRE(longer.code == 0);
  const auto steps = longer.events("step");
  REQUIRE(steps.size() == 3);
  CHECK(integer_in(steps.front(), "step") == 3);
  CHECK(integer_in(steps.back(), "step") == 5);
  const auto config = cluster.here().read("runs/own/config.toml");
  CHECK(mentions(config, "steps = 5"));
  CHECK(mentions(config, "total_steps = 2"));
  // The head goes on with the longer run, and the program refuses what cannot be extended.
  CHECK(mentions(cluster.run({"runs"}).out, "5/5"));
  CHECK(cluster.run({"submit", "own.toml", "--extend", "3"}).code == 2);
}
