#include "config/pages/render.h"

#include <algorithm>

#include "catch.h"
#include "config/toml/toml.h"
#include "core/json.h"
#include "golden_file.h"
#include "good_run.h"

using namespace troupe;
using namespace troupe::config;

TEST_CASE("a run is shown with all keys, marked as recipe or plan", "[config]") {
  check_golden(TROUPE_ROOT "/tests/config/data/show.toml",
               show(*load_text(good_run), Show::values));
}

TEST_CASE("a run is shown with the place of each value", "[config]") {
  const auto loaded = load(
      {.path = "runs/a.toml",
       .settings = {"log.every=1", "pipeline.schedule=pipedream", "staleness.preset=ws"},
       .read = in_memory({{"runs/a.toml", "extends = \"base/good.toml\"\n\nbatch.global = 64\n"},
                          {"runs/base/good.toml", good_run}})});
  REQUIRE(loaded.ok());
  check_golden(TROUPE_ROOT "/tests/config/data/show-origin.toml", show(*loaded, Show::origins));
}

TEST_CASE("a shown run parses back to the same run", "[config]") {
  const auto loaded = load_text(good_run, {"optimizer.lr=3e-4", "pipeline.stages=[0, 2, 6]"});
  REQUIRE(loaded.ok());
  const auto again = load_text(show(*loaded, Show::origins));
  REQUIRE(again.ok());
  CHECK(again->tree == loaded->tree);
}

TEST_CASE("values of a message have the message as their origin", "[config]") {
  Value body = *parse_toml(good_run);
  const auto loaded = load_message(body, "run.submit");
  REQUIRE(loaded.ok());
  const auto text = show(*loaded, Show::origins);
  CHECK(text.find("global = 32  # recipe  run.submit\n") != text.npos);
  CHECK(text.find("seed = 1            # recipe  default\n") != text.npos);
}

TEST_CASE("the JSON schema matches the reviewed file", "[config]") {
  check_golden(TROUPE_ROOT "/tests/config/data/schema.json", to_json_lines(json_schema()));
}

TEST_CASE("the reference page of keys is up to date", "[config]") {
  check_golden(TROUPE_ROOT "/docs/reference/config.md", reference_page());
}

TEST_CASE("each key is completed once", "[config]") {
  const auto all = completions();
  REQUIRE(all.size() > 80);
  CHECK(all.front().word == "name=");
  const auto is_rate = [](const Completion& one) { return one.word == "optimizer.lr="; };
  REQUIRE(std::count_if(all.begin(), all.end(), is_rate) == 1);
  CHECK(std::find_if(all.begin(), all.end(), is_rate)->help == "Peak learning rate.");
}
