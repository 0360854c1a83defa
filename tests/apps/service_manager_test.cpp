// Head and node tell the service manager when they are ready, when they stop, and that they are
// alive. The test is the manager.

#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "apps/program.h"
#include "catch.h"
#include "cluster/process.h"

using namespace troupe;
using namespace troupe::tests;

namespace {

/// Sets variables that child processes inherit.
class Variables {
 public:
  explicit Variables(const std::map<std::string, std::string>& values) : values_(values) {
    for (const auto& [name, value] : values_) setenv(name.c_str(), value.c_str(), 1);
  }
  ~Variables() {
    for (const auto& [name, value] : values_) unsetenv(name.c_str());
  }
  Variables(const Variables&) = delete;
  Variables& operator=(const Variables&) = delete;

 private:
  std::map<std::string, std::string> values_;
};

class Manager {
 public:
  /// Listens at a path, or at an abstract name that begins with "@".
  explicit Manager(const std::string& address)
      : file_(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
    sockaddr_un at{};
    at.sun_family = AF_UNIX;
    REQUIRE(address.size() < sizeof at.sun_path);
    std::memcpy(at.sun_path, address.data(), address.size());
    if (address.front() == '@') at.sun_path[0] = '\0';
    const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + address.size());
    REQUIRE(bind(file_, reinterpret_cast<const sockaddr*>(&at), size) == 0);
  }
  ~Manager() { close(file_); }
  Manager(const Manager&) = delete;
  Manager& operator=(const Manager&) = delete;

  std::optional<std::string> next(std::chrono::milliseconds patience = usual_patience) const {
    pollfd readable{file_, POLLIN, 0};
    if (poll(&readable, 1, static_cast<int>(patience.count())) <= 0) return {};
    char bytes[4096];
    const auto count = recv(file_, bytes, sizeof bytes, 0);
    if (count < 0) return {};
    return std::string(bytes, static_cast<std::size_t>(count));
  }
  /// Returns whether a message with this text comes; `passed` gets the messages before it.
  bool hears(const std::string& text) {
    passed.clear();
    while (const auto message = next()) {
      if (message->find(text) != std::string::npos) return true;
      passed.push_back(*message);
    }
    return false;
  }
  std::vector<std::string> passed;

 private:
  int file_;
};

const std::vector<std::string> any_head = {"head",        "--listen", "127.0.0.1:0", "--events",
                                           "127.0.0.1:0", "--http",   "off"};

std::string address_of_head(const Workplace& here) {
  auto address = here.read("troupe/head");
  while (address.ends_with('\n')) address.pop_back();
  return address;
}

}  // namespace

TEST_CASE("a head reports ready once it answers, and reports when it stops", "[apps]") {
  const Workplace here;
  const auto socket = (here.path() / "notify").string();
  Manager manager(socket);
  const Variables variables({{"NOTIFY_SOCKET", socket}});
  Process head(here, any_head);
  INFO(head.said());
  REQUIRE(manager.hears("READY=1"));
  const auto address = address_of_head(here);
  CHECK(manager.passed == std::vector<std::string>{"STATUS=listens at " + address});
  const Ended nodes = tests::troupe(here, {"nodes", "--head", address});
  INFO(nodes.err);
  CHECK(nodes.code == 0);
  head.send(SIGTERM);
  CHECK(manager.hears("STOPPING=1"));
  CHECK(manager.passed.empty());  // There is no watchdog.
  CHECK(head.wait() == 0);
}

TEST_CASE("a node reports ready without a head, and reports when a head has come", "[apps]") {
  const Workplace here;
  // The address of a head that starts later.
  std::string address;
  {
    Process head(here, any_head);
    REQUIRE(head.says("troupe submit"));
    address = address_of_head(here);
    head.send(SIGTERM);
    REQUIRE(head.wait() == 0);
  }
  const auto name = "@troupe-test-" + std::to_string(getpid());
  Manager manager(name);
  std::optional<Process> node;
  {
    const Variables variables({{"NOTIFY_SOCKET", name}});
    node.emplace(here, std::vector<std::string>{"node", "--head", address, "--cores", "1"});
  }
  INFO(node->said());
  REQUIRE(manager.hears("READY=1"));
  Process head(here, any_head);
  CHECK(manager.hears("STATUS=connected to the head at " + address));
  head.send(SIGKILL);
  CHECK(manager.hears("STATUS=waits for the head at " + address));
  node->send(SIGTERM);
  CHECK(manager.hears("STOPPING=1"));
  CHECK(node->wait().has_value());
}

TEST_CASE("a head with a watchdog reports repeatedly that it is alive", "[apps]") {
  const Workplace here;
  const auto socket = (here.path() / "notify").string();
  Manager manager(socket);
  SECTION("as long as it does") {
    const Variables variables({{"NOTIFY_SOCKET", socket}, {"WATCHDOG_USEC", "100000"}});
    Process head(here, any_head);
    INFO(head.said());
    REQUIRE(manager.hears("READY=1"));
    for (int sign = 0; sign < 3; ++sign) CHECK(manager.hears("WATCHDOG=1"));
    head.send(SIGTERM);
    CHECK(manager.hears("STOPPING=1"));
    CHECK(head.wait() == 0);
    CHECK_FALSE(manager.next(std::chrono::milliseconds(0)));
  }
  SECTION("unless another process is watched") {
    const Variables variables(
        {{"NOTIFY_SOCKET", socket}, {"WATCHDOG_USEC", "100000"}, {"WATCHDOG_PID", "1"}});
    Process head(here, any_head);
    INFO(head.said());
    REQUIRE(manager.hears("READY=1"));
    head.send(SIGTERM);
    CHECK(manager.hears("STOPPING=1"));
    CHECK(manager.passed.empty());
    CHECK(head.wait() == 0);
  }
}

TEST_CASE("a wrong NOTIFY_SOCKET or WATCHDOG_USEC gives an error of one line", "[apps]") {
  const Workplace here;
  const auto refused = [&](const std::map<std::string, std::string>& values,
                           const std::string& what) {
    const Variables variables(values);
    for (const char* command : {"head", "node"}) {
      const Ended ended = tests::troupe(here, {command});
      CAPTURE(ended.err);
      CHECK(ended.code == 2);
      CHECK(ended.err.starts_with("error: " + what));
      CHECK(ended.err.find('\n') == ended.err.size() - 1);
    }
  };
  refused({{"NOTIFY_SOCKET", "notify"}}, "NOTIFY_SOCKET is 'notify', but must be the path");
  refused({{"NOTIFY_SOCKET", "@"}}, "NOTIFY_SOCKET is '@'");
  refused({{"NOTIFY_SOCKET", "/" + std::string(200, 'a')}}, "NOTIFY_SOCKET is '/aaa");
  refused({{"NOTIFY_SOCKET", "/run/n"}, {"WATCHDOG_USEC", "2 s"}}, "WATCHDOG_USEC is '2 s'");
  refused({{"NOTIFY_SOCKET", "/run/n"}, {"WATCHDOG_USEC", "-1"}}, "WATCHDOG_USEC is '-1'");
}

TEST_CASE("a head works even if its service manager is gone", "[apps]") {
  const Workplace here;
  const Variables variables({{"NOTIFY_SOCKET", (here.path() / "absent").string()}});
  Process head(here, any_head);
  REQUIRE(head.says("the service manager was not told READY=1: No such file or directory"));
  CHECK(tests::troupe(here, {"nodes", "--head", address_of_head(here)}).code == 0);
  head.send(SIGTERM);
  CHECK(head.wait() == 0);
}
