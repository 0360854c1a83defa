#include <filesystem>

#include "catch.h"
#include "config/load.h"
#include "core/json.h"
#include "transport/wire/wire.h"

using namespace troupe;
using namespace troupe::transport;

TEST_CASE("every configuration of config/ fits into the body of run.submit", "[transport]") {
  int runs = 0;
  for (const auto& entry : std::filesystem::directory_iterator(TROUPE_TEST_CONFIG)) {
    if (entry.path().extension() != ".toml") continue;
    INFO(entry.path());
    const auto loaded = config::load({.path = entry.path().string()});
    REQUIRE(loaded);
    Message message;
    message.type = "run.submit";
    message.body = loaded->tree;
    const auto parts = encode(message);
    REQUIRE(parts);
    const auto back = decode(std::vector<std::string_view>(parts->begin(), parts->end()));
    REQUIRE(back);
    CHECK(to_json(back->body) == to_json(loaded->tree));
    ++runs;
  }
  CHECK(runs > 3);
}
