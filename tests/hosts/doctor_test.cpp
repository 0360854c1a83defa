#include <sys/resource.h>
#include <sys/stat.h>

#include <sstream>

#include "catch.h"
#include "core/json.h"
#include "hosts/here.h"

using namespace troupe;
using namespace troupe::tests;

TEST_CASE("the doctor prints a line for each check, and its exit code tells whether one failed",
          "[hosts]") {
  const Workplace here;
  const Ended ended = with_ssh(here, {"doctor"});
  INFO(ended.out << ended.err);
  int checks = 0;
  bool has_failed = false;
  std::istringstream lines(ended.out);
  for (std::string line; std::getline(lines, line);) {
    const auto word = line.substr(0, line.find(' '));
    if (word.empty()) {
      CHECK(line.starts_with("      fix: "));
      continue;
    }
    CHECK((word == "ok" || word == "warn" || word == "FAIL" || word == "skip"));
    has_failed |= word == "FAIL";
    ++checks;
  }
  CHECK(checks >= 15);
  CHECK(ended.code == (has_failed ? 4 : 0));
  for (const std::string name :
       {"version", "processor", "cores", "memory", "shared memory", "open files", "loopback",
        "interface", "ports", "clock", "disk", "libraries", "GPU", "keys", "speed"})
    CHECK(ended.out.find("  " + name + " ") != std::string::npos);
  // The doctor's test file was removed.
  for (const auto& entry : std::filesystem::directory_iterator(here.path()))
    CHECK(entry.path().filename().string().find("doctor") == std::string::npos);
}

TEST_CASE("the doctor reports real problems of a machine", "[hosts]") {
  const Workplace here;
  const auto few_files = [] {
    const rlimit limit{100, 100};
    setrlimit(RLIMIT_NOFILE, &limit);
  };
  const Ended limited = tests::troupe(here, Launch{{"doctor", "-q"}, {}, few_files, {}});
  INFO(limited.out);
  CHECK(limited.code == 4);
  CHECK(limited.out.find("FAIL  open files      100 a process") != std::string::npos);
  CHECK(limited.out.find("      fix: ulimit -n 65536") != std::string::npos);
  CHECK(limited.out.find("ok ") == std::string::npos);

  REQUIRE(tests::troupe(here, {"keys", "new", "alpha"}).code == 0);
  const auto key = here.path() / "alpha.key";
  const Ended good = tests::troupe(here, {"doctor", "--keys", key.string()});
  CHECK(good.out.find("ok    keys") != std::string::npos);
  REQUIRE(chmod(key.c_str(), 0644) == 0);
  const Ended bad = tests::troupe(here, {"doctor", "--keys", key.string()});
  CHECK(bad.code == 4);
  CHECK(bad.out.find("FAIL  keys") != std::string::npos);
  CHECK(bad.out.find("chmod 600") != std::string::npos);
}

TEST_CASE("with --output json each check is an event", "[hosts]") {
  const Workplace here;
  const Ended ended = with_ssh(here, {"doctor", "--output", "json"});
  INFO(ended.out << ended.err);
  CHECK(ended.events("check").size() >= 15);
  const auto hosts = ended.events("host");
  REQUIRE(hosts.size() == 1);
  CHECK(hosts[0].find("version")->text() != nullptr);
}

TEST_CASE("the doctor checks many machines, and a failure of one hides no other", "[hosts]") {
  const Workplace here;
  here.write("hosts", "alpha\nbeta slots=2\nlocked\nlate\nnowhere\n");
  const Ended ended = with_ssh(here, {"doctor", "--hosts", "hosts", "--without-links"});
  INFO(ended.out << ended.err);
  CHECK(ended.code == 4);
  for (const std::string says :
       {"alpha: ok    ssh             without a password", "beta: ok    ssh",
        "alpha: ok    version", "locked: FAIL  ssh             ssh asks for a password",
        "locked:       fix: ssh-copy-id locked", "nowhere: FAIL  ssh", "late: ok    ssh",
        "ok    versions", "FAIL  clocks          late is ", "days behind", "ok    processors"})
    CHECK(ended.out.find(says) != std::string::npos);
}

TEST_CASE("the doctor measures the links between machines", "[hosts]") {
  const Workplace here;
  here.write("hosts", "alpha\nbeta\n");
  const Ended ended = with_ssh(here, {"doctor", "--hosts", "hosts"});
  INFO(ended.out << ended.err);
  CHECK(ended.out.find("link            alpha - beta: ") != std::string::npos);
  CHECK(ended.out.find("FAIL  link") == std::string::npos);
}

TEST_CASE("a typo in a hostfile is reported before any machine is contacted", "[hosts]") {
  const Workplace here;
  here.write("hosts", "alpha\nbeta slot=2\n");
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"doctor", "--hosts", "hosts"},
        {"up", "hosts", "--head", "127.0.0.1:1"},
        {"render", "ssh", "hosts", "--head", "127.0.0.1:1"}}) {
    const Ended ended = with_ssh(here, words);
    CHECK(ended.code == 3);
    CHECK(ended.err.starts_with("hosts:2:6: error: 'slot=2' is not a known option of a machine"));
    CHECK(ended.out.empty());
  }
  CHECK(with_ssh(here, {"doctor", "--hosts", "nothing"}).code == 3);
}

TEST_CASE("two processes measure the link between them", "[hosts]") {
  const Workplace here;
  CHECK(tests::troupe(here, {"bench", "link"}).code == 2);
  const Ended nonsense = tests::troupe(here, {"bench", "link", "10.0.0.1:4711"});
  CHECK(nonsense.code == 1);
  CHECK(nonsense.err.find("ADDRESS:PORT/SECRET") != std::string::npos);
  const Ended nobody = tests::troupe(here, {"bench", "link", "127.0.0.1:1/17"});
  CHECK(nobody.code == 1);
  CHECK(nobody.err.find("refused") != std::string::npos);
}
