// The head that a command addresses.

#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

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

TEST_CASE("a command addresses the head of its folder, not the one that started last", "[apps]") {
  const Workplace here, elsewhere;
  const std::vector<std::string> words = {"head",        "--listen", "127.0.0.1:0", "--events",
                                          "127.0.0.1:0", "--http",   "off"};
  Process mine(here, words);
  REQUIRE(mine.says("troupe submit"));
  Process other(elsewhere, words);
  REQUIRE(other.says("troupe submit"));
  const auto address = [](const Workplace& of) {
    const std::string line = of.read(".troupe/address");
    return line.substr(0, line.find('\n'));
  };
  REQUIRE(address(here) != address(elsewhere));

  // Both heads share the folder in which the newest one is remembered.
  const auto status = [&](const std::filesystem::path& folder) {
    return tests::troupe(here, Launch{{"status"},
                                      {},
                                      [&] {
                                        setenv("XDG_STATE_HOME", elsewhere.path().c_str(), 1);
                                        unsetenv("TROUPE_HEAD");
                                        (void)!chdir(folder.c_str());
                                      },
                                      {}});
  };
  std::filesystem::create_directories(here.path() / "deep/below");
  mine.send(SIGKILL);
  REQUIRE(mine.wait());
  // The head of this folder is gone: its address is named, and the other head is not asked.
  const Ended gone = status(here.path() / "deep/below");
  CHECK(gone.code == 5);
  CHECK(gone.err.find("no head answered at " + address(here)) != std::string::npos);
  CHECK(gone.err.find((here.path() / ".troupe/address").string()) != std::string::npos);
  // Elsewhere the newest head answers.
  const Workplace nowhere;
  CHECK(status(nowhere.path()).code == 0);
  // The newest head answers too if the address of this folder belongs to somebody else.
  constexpr uid_t nobody = 65534;
  if (geteuid() == 0) {
    REQUIRE(chown((here.path() / ".troupe/address").c_str(), nobody, nobody) == 0);
    CHECK(status(here.path() / "deep/below").code == 0);
  }
  // A head that ends in good order takes its address along.
  other.send(SIGTERM);
  REQUIRE(other.wait());
  CHECK_FALSE(std::filesystem::exists(elsewhere.path() / ".troupe/address"));
}
