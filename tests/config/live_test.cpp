#include "catch.h"
#include "good_run.h"

using namespace troupe;
using namespace troupe::config;

namespace {

Result<Loaded> set(const std::string& setting) { return set_live(*load_text(good_run), setting); }

}  // namespace

TEST_CASE("live keys are set while a run is under way", "[config]") {
  const auto changed = set("train.steps=2000");
  REQUIRE(changed.ok());
  CHECK(changed->config.train.steps == 2000);
  CHECK(changed->config.name == "run");
  CHECK(set("checkpoint.every=5 steps")->config.checkpoint.every == Interval{.steps = 5});
}

TEST_CASE("other keys are not, however they are written", "[config]") {
  const std::string said =
      "--set:1:14: error: optimizer.lr cannot be changed while the run is under way\n"
      "    1 | optimizer.lr=0.5\n"
      "      |              ^~~\n";
  CHECK(set("optimizer.lr=0.5").error().text == said);
  CHECK(set("optimizer={ lr = 0.5 }").error().text.find("optimizer.lr cannot be changed") !=
        std::string::npos);
  CHECK(set("optimizer.lr=0.001").ok());  // As it is anyway.
}

TEST_CASE("a live key is checked like any other", "[config]") {
  CHECK(set("train.steps=0").error().text.find("train.steps wants") != std::string::npos);
  CHECK(set("train.stops=1").error().text.find("did you mean 'train.steps'?") != std::string::npos);
}
