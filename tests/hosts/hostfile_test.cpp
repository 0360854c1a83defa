#include "apps/hosts/hostfile.h"

#include "apps/hosts/environment_file.h"
#include "catch.h"

using namespace troupe;
using namespace troupe::apps;

TEST_CASE("hostfiles are read in the formats of Open MPI, DeepSpeed and Horovod", "[hosts]") {
  const auto hosts = parse_hostfile(
      "# the rack in the cellar\n"
      "alpha slots=2\n"
      "\n"
      "  me@10.0.0.7\tslots=1 max_slots=4   # Open MPI\r\n"
      "node-3.cluster.local max-slots=8 slots=8\n"
      "fe80::1\n"
      "beta",
      "hosts");
  REQUIRE(hosts);
  CHECK(*hosts == std::vector<Host>{{"alpha", 2},
                                    {"me@10.0.0.7", 1},
                                    {"node-3.cluster.local", 8},
                                    {"fe80::1", 1},
                                    {"beta", 1}});
  CHECK(machine_of((*hosts)[1]) == "10.0.0.7");
}

TEST_CASE("each error in a hostfile has its line and column", "[hosts]") {
  struct Case {
    std::string text, place, says;
  };
  for (const auto& [text, place, says] : std::vector<Case>{
           {"alpha slot=2", "hosts:1:7: error:", "did you mean 'slots=N'?"},
           {"alpha slots=0", "hosts:1:7: error:", "wanted a number from 1 to 1024"},
           {"alpha slots=two", "hosts:1:7: error:", "slots is 'two'"},
           {"alpha slots=99999999999", "hosts:1:7: error:", "wanted a number"},
           {"alpha slots=", "hosts:1:7: error:", "slots is ''"},
           {"alpha 2", "hosts:1:7: error:", "'2' is not a known option of a machine"},
           {"alpha slots=4 max_slots=2", "hosts:1:1: error:", "more than max_slots=2"},
           {"\nalpha\n  alpha slots=2", "hosts:3:3: error:", "stands in line 2 already"},
           {"alpha:4", "hosts:1:1: error:", "write 'alpha slots=4'"},
           {"slots=4", "hosts:1:1: error:", "wanted a machine's name first"},
           {"-oProxyCommand=reboot", "hosts:1:1: error:", "does not begin with '-'"},
           {"al;pha", "hosts:1:1: error:", "wanted a machine's name"},
           {"$(reboot)", "hosts:1:1: error:", "wanted a machine's name"},
           {"# nobody\n\n", "hosts: error:", "it names no machine"},
           {"", "hosts: error:", "it names no machine"},
       }) {
    const auto hosts = parse_hostfile(text, "hosts");
    INFO("in \"" << text << "\"");
    REQUIRE(!hosts);
    INFO(hosts.error().text);
    CHECK(hosts.error().text.starts_with(place));
    CHECK(hosts.error().text.find(says) != std::string::npos);
  }
}

TEST_CASE("all errors of a hostfile are reported at once", "[hosts]") {
  const auto hosts = parse_hostfile("alpha slot=1\nbeta slots=0\nalpha\n", "hosts");
  REQUIRE(!hosts);
  for (const std::string place : {"hosts:1:7:", "hosts:2:6:", "hosts:3:1:"}) {
    INFO(hosts.error().text);
    CHECK(hosts.error().text.find(place) != std::string::npos);
  }
}

TEST_CASE("a .deepspeed_env is NAME=VALUE, and values are taken verbatim", "[hosts]") {
  const auto read = parse_environment(
      "# for the fabric\nNCCL_DEBUG=INFO\nWORDS=two words = one value \nEMPTY=\nNCCL_DEBUG=WARN\n",
      ".deepspeed_env");
  REQUIRE(read);
  CHECK(*read ==
        Environment{{"NCCL_DEBUG", "WARN"}, {"WORDS", "two words = one value "}, {"EMPTY", ""}});
  for (const std::string text : {"NAME", "=x", "1A=x", "A B=x", "A;reboot=x"}) {
    const auto wrong = parse_environment("\n" + text + "\n", ".deepspeed_env");
    INFO(text);
    REQUIRE(!wrong);
    CHECK(wrong.error().text.starts_with(".deepspeed_env:2:1: error: wanted NAME=VALUE"));
  }
}
