#include "catch.h"
#include "config/rate_changes.h"
#include "config/recipe.h"
#include "config/schema.h"
#include "good_run.h"

using namespace troupe;
using namespace troupe::config;

namespace {

Result<Loaded> set(const std::string& setting, std::int64_t steps = 100) {
  return set_live(*load_text(good_run), setting, steps);
}

}  // namespace

TEST_CASE("live keys can be set during a run", "[config]") {
  const auto changed = set("train.steps=2000");
  REQUIRE(changed.ok());
  CHECK(changed->config.train.steps == 2000);
  CHECK(changed->config.name == "run");
  CHECK(set("checkpoint.every=5 steps")->config.checkpoint.every == Interval{.steps = 5});
}

TEST_CASE("other keys cannot be set during a run, however they are written", "[config]") {
  const std::string said =
      "--set:1:15: error: optimizer.eps cannot be changed while the run is active\n    1 | "
      "optimizer.eps=0.5\n      |               ^~~\n";
  CHECK(set("optimizer.eps=0.5").error().text == said);
  CHECK(set("optimizer={ eps = 0.5 }").error().text.find("optimizer.eps cannot be changed") !=
        std::string::npos);
  CHECK(set("optimizer.eps=1e-8").ok());  // The value is the present one.
  // That it does not fit the number of heads is no matter.
  CHECK(set("model.width=3").error().text.find("model.width cannot be changed while the run") !=
        std::string::npos);
}

TEST_CASE("a live key is checked like any other key", "[config]") {
  CHECK(set("train.steps=0").error().text.find("train.steps wants") != std::string::npos);
  CHECK(set("train.stops=1").error().text.find("did you mean 'train.steps'?") != std::string::npos);
}

TEST_CASE("a live learning rate holds from a step on and changes no earlier step", "[config]") {
  const auto first = set("optimizer.lr=0.5", 100);
  REQUIRE(first.ok());
  CHECK(*value_at(first->tree, "optimizer.changes")->text() == "0.5 from 100");
  const auto second = set_live(*first, "optimizer.lr=0.25", 200);
  REQUIRE(second.ok());
  const auto back = set_live(*second, "optimizer.lr=0.001", 300);
  REQUIRE(back.ok());
  const auto before = load_text(good_run)->config.optimizer.rate;
  const auto& rate = back->config.optimizer.rate;
  CHECK(rate.changes.size() == 3);
  for (const std::int64_t step : {0, 50, 99, 300, 400}) CHECK(rate.at(step) == before.at(step));
  CHECK(rate.at(100) == 500 * before.at(100));
  CHECK(rate.at(200) == 250 * before.at(200));
}

TEST_CASE("a file with the same learning rate changes gives the same recipe", "[config]") {
  const auto live = set("optimizer.lr=0.5", 100);
  const auto file =
      load_text(std::string(good_run) + "\n[optimizer]\nchanges = \"5e-1 from 100\"\n");
  REQUIRE(live.ok());
  if (!file) FAIL(file.error().text);
  CHECK(file->config.optimizer.rate.changes == live->config.optimizer.rate.changes);
}

TEST_CASE("a live change cannot affect completed steps", "[config]") {
  const auto later = set("optimizer.lr=0.5", 100);
  CHECK(set_live(*later, "optimizer.lr=0.25", 50).error().text.find("was set already") !=
        std::string::npos);
  const auto follows =
      set_live(*load_text(good_run, {"optimizer.schedule.kind=cosine"}), "train.steps=2000", 10);
  REQUIRE(!follows.ok());
  CHECK(follows.error().text.find("would change the results of completed steps") !=
        std::string::npos);
}

TEST_CASE("malformed learning rate changes are refused", "[config]") {
  for (const std::string bad :
       {"0.5", "0.5 from", "x from 1", "0.5 from -1", "1 from 20, 1 from 10", "0.5 from 1,", ""})
    CHECK(!parse_rate_changes(bad).ok());
  CHECK(to_text(*parse_rate_changes(" 1e-3 from 120,5e-4   from 200 ")) ==
        "0.001 from 120, 5e-04 from 200");
}

TEST_CASE("a recipe contains the changes that have taken effect", "[config]") {
  const auto recipe = recipe_of(set("optimizer.lr=0.5", 100)->tree);
  const auto before = recipe_of(load_text(good_run)->tree);
  CHECK(recipe_changes(recipe_until(recipe, 100), before).empty());
  CHECK(recipe_changes(recipe_until(recipe, 101), recipe).empty());
}

namespace {

/// Returns a run of two sources.
std::string mixed_run() {
  std::string text = good_run;
  const std::string train = "train = \"made:markov\"";
  text.replace(text.find(train), train.size(), "mix = \"a.bin 14, /data/b.bin 4\"");
  return text;
}

Result<Loaded> set_mix(const std::string& weights, std::int64_t steps) {
  const auto running = load_text(mixed_run());
  INFO((running ? "" : running.error().text));
  REQUIRE(running);
  return set_live(*running, "data.mix=" + weights, steps);
}

}  // namespace

TEST_CASE("weights of a mixture can be set during a run, from a step on", "[config]") {
  const auto first = set_mix("a.bin 1, b.bin 1", 100);
  INFO((first ? "" : first.error().text));
  REQUIRE(first);
  CHECK(*first->config.data.mix == "a.bin 7, /data/b.bin 2; from 100: a.bin 1, /data/b.bin 1");
  const auto second = set_live(*first, "data.mix=b.bin 1; from 300: a.bin 1", 200);
  REQUIRE(second);
  CHECK(*second->config.data.mix ==
        "a.bin 7, /data/b.bin 2; from 100: a.bin 1, /data/b.bin 1; from 200: /data/b.bin 1; from "
        "300: a.bin 1");
  // Other changes leave it as it is.
  CHECK(*set_live(*second, "optimizer.lr=0.5", 210)->config.data.mix == *second->config.data.mix);
  CHECK(*set_mix("a.bin 7, b.bin 2", 100)->config.data.mix == "a.bin 14, /data/b.bin 4");
}

TEST_CASE("a mixture that does not fit a run is refused before anything changes", "[config]") {
  const auto error = [](const std::string& weights) {
    const auto changed = set_mix(weights, 100);
    REQUIRE(!changed);
    return changed.error().text;
  };
  CHECK(error("a.bin 1, c.bin 1") ==
        "error: data.mix: found \"c.bin\", wanted a source of the run, which keeps its sources: "
        "\"a.bin\", \"/data/b.bin\"");
  CHECK(error("a.bin 1.5, b.bin 1").find("found \"a.bin 1.5\", wanted a source and its weight") !=
        std::string::npos);
  CHECK(error("a.bin 997, b.bin 991").find("makes blocks of 1988 samples") != std::string::npos);
  CHECK(error("a.bin 1; from 50: b.bin 1").find("later steps were wanted") != std::string::npos);
  CHECK(error("5").find("data.mix wants") != std::string::npos);
  CHECK(set("data.mix=made:markov 1").error().text ==
        "error: data.mix cannot be set while the run is active: it began with data.train = "
        "\"made:markov\"; only the weights of a run that began with data.mix can change");
}

TEST_CASE("a recipe contains the phases of a mixture that have taken effect", "[config]") {
  const auto now = recipe_of(set_mix("a.bin 1, b.bin 1", 100)->tree);
  const auto before = recipe_of(load_text(mixed_run())->tree);
  CHECK(recipe_changes(recipe_until(now, 100), recipe_until(before, 100)).empty());
  CHECK(!recipe_changes(recipe_until(now, 101), recipe_until(before, 101)).empty());
}
