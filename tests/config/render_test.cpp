#include "config/pages/render.h"

#include <algorithm>
#include <regex>
#include <string>
#include <tuple>
#include <vector>

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

namespace {

/// Returns whether the JSON schema of a key accepts a text.
bool schema_accepts(const std::string& key, const std::string& text) {
  const Value schema = json_schema();
  const Value* at = &schema;
  for (std::size_t begin = 0; begin < key.size();) {
    const auto end = std::min(key.find('.', begin), key.size());
    at = at->find("properties")->find(key.substr(begin, end - begin));
    begin = end + 1;
  }
  const auto matches = [&](const Value& form) {
    const Value* pattern = form.find("pattern");
    return pattern && std::regex_search(text, std::regex(*pattern->text()));
  };
  const Value* forms = at->find("anyOf");
  return forms ? std::ranges::any_of(*forms->list(), matches) : matches(*at);
}

}  // namespace

TEST_CASE("the JSON schema accepts the texts that a run accepts", "[config]") {
  const std::string longest(64, 'a');
  for (const auto& [key, text, is_good] : std::vector<std::tuple<std::string, std::string, bool>>{
           {"name", "tiny-2.b_C", true},
           {"name", longest, true},
           {"name", longest + "a", false},
           {"name", "", false},
           {"name", "a/b", false},
           {"name", ".a", false},
           {"checkpoint.every", "100 steps", true},
           {"checkpoint.every", "1 step", true},
           {"checkpoint.every", "0 steps", false},
           {"checkpoint.every", "1.5m", true},
           {"checkpoint.every", "0ms", false},
           {"checkpoint.every", "0.0 s", false},
           {"checkpoint.every", "often", false},
           {"checkpoint.dir", "runs/{name}/kept", true},
           {"checkpoint.dir", "runs/{run}", false},
           {"checkpoint.dir", "", false},
           {"train.export", "a/b.safetensors", true},
           {"train.export", "a/b.bin", false},
           {"limits.start_patience", "10s", true},
           {"limits.start_patience", "10", false},
       }) {
    INFO(key << " = \"" << text << '"');
    CHECK(schema_accepts(key, text) == is_good);
    CHECK(load_text(good_run, {key + "=\"" + text + '"'}).ok() == is_good);
  }
}

TEST_CASE("the JSON schema describes stages that begin at layer 0", "[config]") {
  const Value schema = json_schema();
  const Value* stages =
      schema.find("properties")->find("pipeline")->find("properties")->find("stages");
  const Value& boundaries = stages->find("anyOf")->list()->back();
  CHECK(boundaries.find("prefixItems")->list()->front().find("const")->number() == 0);
  CHECK(boundaries.find("items")->find("minimum")->number() == 1);
  CHECK(!load_text(good_run, {"pipeline.stages=[2, 0]"}).ok());
}

TEST_CASE("the reference page of keys is up to date", "[config]") {
  check_golden(TROUPE_ROOT "/docs/reference/config.md", reference_page());
}

TEST_CASE("the page of layers is up to date", "[config]") {
  check_golden(TROUPE_ROOT "/docs/reference/layers.md", layers_page());
}

TEST_CASE("each key is completed once", "[config]") {
  const auto all = completions();
  REQUIRE(all.size() > 80);
  CHECK(all.front().word == "name=");
  const auto is_rate = [](const Completion& one) { return one.word == "optimizer.lr="; };
  REQUIRE(std::count_if(all.begin(), all.end(), is_rate) == 1);
  CHECK(std::find_if(all.begin(), all.end(), is_rate)->help == "Peak learning rate.");
}
