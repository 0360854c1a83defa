// Nodes that `troupe up` starts are real processes; only ssh does not leave this machine.

#include <signal.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "catch.h"
#include "cluster/process.h"
#include "core/json.h"
#include "hosts/here.h"

using namespace troupe;
using namespace troupe::tests;

namespace {

/// Processes with a variable in their environment that begins so.
int processes_with(const std::string& variable) {
  int count = 0;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    std::ifstream file(entry.path() / "environ", std::ios::binary);
    const std::string text(std::istreambuf_iterator<char>(file), {});
    count += ('\0' + text).find('\0' + variable) != std::string::npos;
  }
  return count;
}

/// The variable by which `up` finds its processes again.
std::string mark(const Workplace& here) {
  const auto state = parse_json(here.read("troupe/up.json"));
  REQUIRE(state.ok());
  return "TROUPE_UP=" + *state->find("name")->text();
}

struct Head {
  Process process;
  std::string address;

  explicit Head(const Workplace& here)
      : process(here, {"head", "--listen", "127.0.0.1:0", "--events", "127.0.0.1:0"}) {
    INFO(process.said());
    REQUIRE(process.says("troupe submit"));
    std::ifstream(here.path() / "troupe/head") >> address;
    REQUIRE(!address.empty());
  }
};

}  // namespace

TEST_CASE("up starts nodes on all machines, and down ends them and nobody else", "[hosts]") {
  const Workplace here;
  Head head(here);
  const std::string word = "TROUPE_TEST_WORD=it's " + here.path().string();
  here.write(".deepspeed_env", word + "\n");
  here.write("hosts", "alpha slots=2\nlocked\nbeta\n");
  const Ended up = with_ssh(here, {"up", "hosts", "--head", head.address});
  INFO(up.out << up.err);
  CHECK(up.code == 1);
  for (const auto& says :
       std::vector<std::string>{"as alpha-0\n", "as alpha-1\n", "beta: joined " + head.address})
    CHECK(up.out.find(says) != std::string::npos);
  CHECK(up.err.find("locked: error: ssh asks for a password; ssh-copy-id locked") !=
        std::string::npos);
  CHECK(up.err.find("error: 1 of 3 machines have not all their nodes") != std::string::npos);
  const Ended nodes = with_ssh(here, {"nodes", "--head", head.address, "--output", "json"});
  for (const std::string name : {"\"alpha-0\"", "\"alpha-1\"", "\"beta\""})
    CHECK(nodes.out.find(name) != std::string::npos);
  CHECK(processes_with(word) >= 3);
  CHECK(processes_with(mark(here)) == processes_with(word));

  // For another head: not beside these.
  const Ended other = with_ssh(here, {"up", "hosts", "--head", "127.0.0.1:1"});
  CHECK(other.code == 2);
  CHECK(other.err.find("end them first: troupe down") != std::string::npos);

  const Ended down = with_ssh(here, {"down"});
  INFO(down.out << down.err);
  CHECK(down.code == 0);
  CHECK(down.out.find("alpha: ended ") != std::string::npos);
  CHECK(down.out.find("killed") == std::string::npos);
  CHECK(processes_with(word) == 0);
  const Ended nothing = with_ssh(here, {"down"});
  CHECK(nothing.code == 0);
  CHECK(nothing.out == "no nodes are running\n");
  head.process.send(SIGTERM);
  CHECK(head.process.wait() == 0);  // It was nobody's to end but ours.
}

TEST_CASE("machines on which nothing was started are not remembered", "[hosts]") {
  const Workplace here;
  Head head(here);
  here.write("hosts", "nowhere\nlocked\n");
  const Ended up = with_ssh(here, {"up", "hosts", "--head", head.address});
  INFO(up.out << up.err);
  CHECK(up.code == 1);
  CHECK(up.err.find("nowhere: error: no machine has this name; correct the name in the hostfile") !=
        std::string::npos);
  CHECK(!std::filesystem::exists(here.path() / "troupe/up.json"));
  CHECK(with_ssh(here, {"down"}).out == "no nodes are running\n");
}

TEST_CASE("up again adds what is missing and starts nothing twice", "[hosts]") {
  const Workplace here;
  Head head(here);
  here.write("hosts", "alpha\nnowhere\n");
  CHECK(with_ssh(here, {"up", "hosts", "--head", head.address}).code == 1);
  const auto marked = mark(here);
  const int of_alpha = processes_with(marked);
  here.write("hosts", "alpha\nbeta\n");  // The name is mended.
  const Ended again = with_ssh(here, {"up", "hosts", "--head", head.address});
  INFO(again.out << again.err);
  CHECK(again.code == 0);
  CHECK(mark(here) == marked);
  CHECK(processes_with(marked) == 2 * of_alpha);
  const Ended nodes = with_ssh(here, {"nodes", "--head", head.address, "--output", "json"});
  CHECK(nodes.out.find("\"alpha-2\"") == std::string::npos);  // What a second alpha is called.
  CHECK(nodes.out.find("\"beta\"") != std::string::npos);
  CHECK(with_ssh(here, {"down"}).code == 0);
  CHECK(processes_with(marked) == 0);
}

TEST_CASE("a machine that is gone can be forgotten", "[hosts]") {
  const Workplace here;
  Head head(here);
  here.write("hosts", "alpha\nbeta\n");
  CHECK(with_ssh(here, {"up", "hosts", "--head", head.address}).code == 0);
  here.write("unplugged", "beta");  // For the ssh of the tests.
  const Ended down = with_ssh(here, {"down"});
  INFO(down.out << down.err);
  CHECK(down.code == 1);
  // ssh ends its lines as terminals do.
  CHECK(down.err.find("beta: error: ssh failed: Connection to beta closed by remote host.; try it "
                      "by hand: ssh beta\n") != std::string::npos);
  CHECK(down.err.find("troupe down --forget HOST") != std::string::npos);
  CHECK(here.read("troupe/up.json").find("beta") != std::string::npos);
  CHECK(here.read("troupe/up.json").find("alpha") == std::string::npos);
  const Ended wrong = with_ssh(here, {"down", "--forget", "gamma"});
  CHECK(wrong.code == 2);
  CHECK(wrong.err == "error: --forget gamma: found on the list: beta; give one of these names\n");
  CHECK(with_ssh(here, {"down", "--forget", "beta"}).code == 0);
  CHECK(with_ssh(here, {"down"}).out == "no nodes are running\n");
}

TEST_CASE("variables of nodes stand on no command line", "[hosts]") {
  const Workplace here;
  Head head(here);
  const std::string secret = "secret-" + here.path().filename().string();
  here.write(".deepspeed_env", "TROUPE_TEST_KEY=" + secret + "\n");
  here.write("hosts", "alpha\n");
  // In the node's place somebody who notes what every user can see while `up` and its ssh run.
  const auto spy = here.write("spy",
                              "#!/bin/sh\n"
                              "cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' '\\n' >lines\n"
                              "echo \"$TROUPE_TEST_KEY\" >variable\n"
                              "echo joined as nobody\nexec sleep 1000\n");
  std::filesystem::permissions(spy, std::filesystem::perms::owner_all);
  const Ended up = with_ssh(here, {"up", "hosts", "--head", head.address, "--program", spy});
  INFO(up.out << up.err);
  CHECK(up.code == 0);
  CHECK(here.read("variable") == secret + "\n");
  const auto lines = here.read("lines");
  CHECK(lines.find("\nup\nhosts\n") != std::string::npos);  // `up` was there.
  CHECK(lines.find(secret) == std::string::npos);
  CHECK(with_ssh(here, {"down"}).code == 0);
}

TEST_CASE("a node that does not join is told with its log, and ended with the others", "[hosts]") {
  const Workplace here;
  Head head(here);
  here.write("hosts", "alpha\n");
  // A key file that is not there: the node ends at once, and says why.
  const Ended up =
      with_ssh(here, {"up", "hosts", "--head", head.address, "--node-keys", "/nowhere/{host}.key",
                      "--head-key", std::string(40, '0'), "--print"});
  CHECK(up.code == 0);
  CHECK(up.out.find("/nowhere/alpha.key") != std::string::npos);
  here.write(".deepspeed_env",
             "TROUPE_KEYS=/nowhere/alpha.key\nTROUPE_HEAD_KEY=" + std::string(40, '0') + "\n");
  const Ended failed = with_ssh(here, {"up", "hosts", "--head", head.address});
  INFO(failed.out << failed.err);
  CHECK(failed.code == 1);
  CHECK(failed.out.find("alpha: error: /nowhere/alpha.key: cannot open") != std::string::npos);
  CHECK(failed.err.find("alpha: node alpha has not joined the head; its log: ") !=
        std::string::npos);
  const Ended down = with_ssh(here, {"down"});
  CHECK(down.code == 0);
  CHECK(down.out == "alpha: ended 0 processes\n");
}

TEST_CASE("one who does not end is killed, with its children", "[hosts]") {
  const Workplace here;
  Head head(here);
  here.write("hosts", "alpha\n");
  // In the node's place somebody who joins in words only, and does not listen to SIGTERM.
  const auto stubborn = here.write(
      "stubborn", "#!/bin/sh\ntrap '' TERM\necho joined as nobody\nsleep 1000 &\nwait\nwait\n");
  std::filesystem::permissions(stubborn, std::filesystem::perms::owner_all);
  const Ended up = with_ssh(here, {"up", "hosts", "--head", head.address, "--program", stubborn});
  INFO(up.out << up.err);
  CHECK(up.code == 0);
  const auto marked = mark(here);
  CHECK(processes_with(marked) == 2);
  const Ended down = with_ssh(here, {"down", "--patience", "1"});
  INFO(down.out << down.err);
  CHECK(down.code == 0);
  CHECK(down.out.find("killed, as they did not end in time") != std::string::npos);
  CHECK(processes_with(marked) == 0);
}

TEST_CASE("without a head, or without the program, nothing is started", "[hosts]") {
  const Workplace here;
  here.write("hosts", "alpha\n");
  const Ended nobody = with_ssh(here, {"up", "hosts", "--head", "127.0.0.1:1"});
  CHECK(nobody.code == 5);
  CHECK(nobody.err.find("no head answered at tcp://127.0.0.1:1") != std::string::npos);
  CHECK(!std::filesystem::exists(here.path() / "troupe/up.json"));
  Head head(here);
  const Ended missing =
      with_ssh(here, {"up", "hosts", "--head", head.address, "--program", "/no/troupe"});
  CHECK(missing.code == 1);
  CHECK(missing.err.find("alpha: error: there is no program /no/troupe") != std::string::npos);
  CHECK(with_ssh(here, {"down"}).code == 0);
}
