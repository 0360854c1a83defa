// `troupe up` starts real node processes; only ssh stays on this machine.

#include <signal.h>
#include <sys/prctl.h>

#include <chrono>
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

/// Counts the processes with a variable that begins with this text.
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

/// Returns the variable by which `up` finds its processes.
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

TEST_CASE("up starts nodes on all machines, and down ends only them", "[hosts]") {
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
  CHECK(up.err.find("error: 1 of 3 machines do not have all their nodes") != std::string::npos);
  const Ended nodes = with_ssh(here, {"nodes", "--head", head.address, "--output", "json"});
  for (const std::string name : {"\"alpha-0\"", "\"alpha-1\"", "\"beta\""})
    CHECK(nodes.out.find(name) != std::string::npos);
  CHECK(processes_with(word) >= 3);
  CHECK(processes_with(mark(here)) == processes_with(word));

  // `up` refuses a second head beside the first.
  const Ended other = with_ssh(here, {"up", "hosts", "--head", "127.0.0.1:1"});
  CHECK(other.code == 2);
  CHECK(other.err.find("stop them first: troupe down") != std::string::npos);

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
  CHECK(head.process.wait() == 0);  // Only the test may end the head.
}

TEST_CASE("down does not wait for nodes that have ended but that no init collects", "[hosts]") {
  // The nodes become children of this process, which leaves them as zombies.
  REQUIRE(prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0);
  const Workplace here;
  Head head(here);
  here.write("hosts", "alpha slots=2\n");
  CHECK(with_ssh(here, {"up", "hosts", "--head", head.address}).code == 0);
  constexpr std::chrono::seconds patience(20);
  const auto began = std::chrono::steady_clock::now();
  const Ended down = with_ssh(here, {"down", "--patience", std::to_string(patience.count())});
  CHECK(std::chrono::steady_clock::now() - began < patience);
  INFO(down.out << down.err);
  CHECK(down.code == 0);
  CHECK(down.out.find("alpha: ended ") != std::string::npos);
  CHECK(down.out.find("killed") == std::string::npos);
}

TEST_CASE("up does not remember machines on which nothing was started", "[hosts]") {
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

TEST_CASE("a second up adds missing nodes and starts nothing twice", "[hosts]") {
  const Workplace here;
  Head head(here);
  here.write("hosts", "alpha\nnowhere\n");
  CHECK(with_ssh(here, {"up", "hosts", "--head", head.address}).code == 1);
  const auto marked = mark(here);
  const int of_alpha = processes_with(marked);
  here.write("hosts", "alpha\nbeta\n");  // Corrects the name of a machine.
  const Ended again = with_ssh(here, {"up", "hosts", "--head", head.address});
  INFO(again.out << again.err);
  CHECK(again.code == 0);
  CHECK(mark(here) == marked);
  CHECK(processes_with(marked) == 2 * of_alpha);
  const Ended nodes = with_ssh(here, {"nodes", "--head", head.address, "--output", "json"});
  // The name that a second node on alpha would get.
  CHECK(nodes.out.find("\"alpha-2\"") == std::string::npos);
  CHECK(nodes.out.find("\"beta\"") != std::string::npos);
  CHECK(with_ssh(here, {"down"}).code == 0);
  CHECK(processes_with(marked) == 0);
}

TEST_CASE("down can forget a machine that is gone", "[hosts]") {
  const Workplace here;
  Head head(here);
  here.write("hosts", "alpha\nbeta\n");
  CHECK(with_ssh(here, {"up", "hosts", "--head", head.address}).code == 0);
  here.write("unplugged", "beta");  // Read by the tests' ssh.
  const Ended down = with_ssh(here, {"down"});
  INFO(down.out << down.err);
  CHECK(down.code == 1);
  // ssh ends its lines with \r\n.
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

TEST_CASE("values of environment variables for nodes appear on no command line", "[hosts]") {
  const Workplace here;
  Head head(here);
  const std::string secret = "secret-" + here.path().filename().string();
  here.write(".deepspeed_env", "TROUPE_TEST_KEY=" + secret + "\n");
  here.write("hosts", "alpha\n");
  // Replaces the node: records everything that other users can see while `up` and its ssh run.
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
  CHECK(lines.find("\nup\nhosts\n") != std::string::npos);  // The record includes `up` itself.
  CHECK(lines.find(secret) == std::string::npos);
  CHECK(with_ssh(here, {"down"}).code == 0);
}

TEST_CASE("the log of a node that does not join is shown, and down ends its siblings", "[hosts]") {
  const Workplace here;
  Head head(here);
  here.write("hosts", "alpha\n");
  // The key file does not exist, so the node ends at once with an error.
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

TEST_CASE("a node that does not end in time is killed with its children", "[hosts]") {
  const Workplace here;
  Head head(here);
  here.write("hosts", "alpha\n");
  // Replaces the node: pretends to join, and ignores SIGTERM.
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

TEST_CASE("up starts nothing if the head or the program is missing", "[hosts]") {
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
