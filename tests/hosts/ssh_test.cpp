#include "apps/hosts/ssh.h"

#include "apps/hosts/children.h"
#include "apps/hosts/remote_place.h"
#include "catch.h"

using namespace troupe::apps;

TEST_CASE("quoted words come out of a shell unchanged", "[hosts]") {
  for (const std::string word : {"plain", "two words", "it's", "$HOME `id` \"x\" \\ !", "", "*",
                                 "a\nb", "-n", "~", "#x", "a;b|c&d"}) {
    Children children;
    std::string came;
    children.start(
        {.words = {"sh", "-c", shell_line({"printf", "%s.", word})},
         .input = {},
         .on_line = [&](ChildOrder::Stream,
                        const std::string& line) { came += (came.empty() ? "" : "\n") + line; },
         .on_end = {}});
    children.wait();
    CHECK(came == word + ".");
  }
}

TEST_CASE("ssh never asks questions, and its options end before the machine's name", "[hosts]") {
  const auto words = over_ssh("alpha");
  CHECK(shell_line(words) ==
        "ssh -o BatchMode=yes -o ConnectTimeout=10 -o ServerAliveInterval=10 -- alpha "
        "'exec sh -s'");
  CHECK(words[words.size() - 2] == "alpha");
}

TEST_CASE("each failure of ssh has an explanation and a fix", "[hosts]") {
  struct Case {
    std::string said, found, fix;
  };
  for (const auto& [said, found, fix] : std::vector<Case>{
           {"me@alpha: Permission denied (publickey,password).\n", "asks for a password",
            "ssh-copy-id alpha"},
           {"Host key verification failed.\n", "host key", "ssh alpha once by hand"},
           {"@ WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED! @\nHost key verification failed.\n",
            "its host key has changed", "ssh-keygen -R alpha"},
           {"ssh: Could not resolve hostname alpha: Name or service not known\n",
            "no machine has this name", "hostfile"},
           {"ssh: connect to host alpha port 22: Connection refused\n", "no ssh server", "sshd"},
           {"ssh: connect to host alpha port 22: Connection timed out\n", "does not answer", ""},
           {"something new\n", "something new", "ssh alpha"},
       }) {
    const auto failure = ssh_failure("alpha", 255, said);
    CHECK(failure.found.find(found) != std::string::npos);
    CHECK(failure.fix.find(fix) != std::string::npos);
  }
  CHECK(ssh_failure("alpha", 0, "").found.empty());
  CHECK(ssh_failure("alpha", 1, "Permission denied").found.empty());
}

TEST_CASE("exit code and output tell whether a machine was reached", "[hosts]") {
  const RemotePlace place{"/usr/bin/troupe", "/data", {}};
  CHECK(judge_reached("alpha", 0, "", place).verdict == Verdict::ok);
  CHECK(judge_reached("alpha", 127, "sh: exec: not found", place).found ==
        "there is no program /usr/bin/troupe");
  CHECK(judge_reached("alpha", 120, "", place).found == "there is no folder /data");
  CHECK(judge_reached("alpha", 137, "", place).verdict == Verdict::fail);
  CHECK(judge_reached("alpha", 3, "first\nlast\n", place).found == "exit code 3: last");
  // Output of another machine must be made printable.
  CHECK(judge_reached("alpha", 3, "\x1b]0;title\a\n", place).found == "exit code 3: ?]0;title?");
  CHECK(ssh_failure("alpha", 255, "\x1b[2Jcut\r\n").found == "ssh failed: ?[2Jcut");
}

TEST_CASE("a script enters the folder, sets the variables and executes the program", "[hosts]") {
  Children children;
  std::vector<std::string> lines;
  const auto run = [&](const RemotePlace& place) {
    int found = -1;
    children.start(
        {.words = {"sh", "-s"},
         .input = script_to_run(place, {"-c", "pwd; echo \"$WORDS\""}),
         .on_line = [&](ChildOrder::Stream, const std::string& line) { lines.push_back(line); },
         .on_end = [&](int code) { found = code; }});
    children.wait();
    return found;
  };
  CHECK(run({"/bin/sh", "/usr", {{"WORDS", "it's  two"}}}) == 0);
  CHECK(lines == std::vector<std::string>{"/usr", "it's  two"});
  CHECK(run({"/bin/sh", "/no such folder", {}}) == 120);
  CHECK(run({"/no/such/program", "/usr", {}}) == 127);
}
