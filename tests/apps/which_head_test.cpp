// The head that a command addresses.

#include <string>

#include "apps/program.h"
#include "catch.h"
#include "cluster/process.h"

using namespace troupe;
using namespace troupe::tests;

TEST_CASE("a head that listens everywhere is remembered at an address that can be dialed",
          "[apps]") {
  const Workplace here;
  REQUIRE(tests::troupe(here, {"keys", "new", "head", "--roles", "node"}).code == 0);
  const Ended mine = tests::troupe(here, {"keys", "new", "me", "--roles", "operator"});
  REQUIRE(mine.code == 0);
  here.write("hosts.allow", mine.out.substr(mine.out.find('\n') + 1));
  Process head(here, {"head", "--listen", "0.0.0.0:0", "--events", "127.0.0.1:0", "--http", "off",
                      "--keys", "head.key", "--allow", "hosts.allow"});
  REQUIRE(head.says("troupe submit"));
  CHECK(here.read("troupe/head").starts_with("tcp://127.0.0.1:"));
}

TEST_CASE(
    "a head on another machine is reached with keys, and a machine that is not there is named",
    "[apps]") {
  const Workplace here;
  const auto said = [&](const std::string& head) {
    const Ended ended = tests::troupe(here, {"status", "--head", head});
    CHECK(ended.code == 5);
    return ended.err;
  };
  CHECK(said("nobody.invalid")
            .starts_with("error: tcp://nobody.invalid:4700: no machine was found by the name "
                         "'nobody.invalid': "));
  CHECK(said("192.0.2.1") ==
        "error: tcp://192.0.2.1:4700: a head on another machine is reached with keys; give --keys "
        "and --head-key\n");
}
