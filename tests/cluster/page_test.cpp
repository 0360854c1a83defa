// The head's HTTP page.

#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "apps/quickstart.h"
#include "catch.h"
#include "cluster/cluster.h"
#include "cluster/liar.h"
#include "transport/sockets.h"

using namespace troupe;
using namespace troupe::tests;

namespace {

/// Returns the page's endpoint from the head's output: "tcp://127.0.0.1:40112".
std::string page_of(const std::string& said) {
  const std::string before = "http://";
  const auto from = said.find(before) + before.size();
  return "tcp://" + said.substr(from, said.find('/', from) - from);
}

}  // namespace

TEST_CASE("a head shows its status only to browsers and Prometheus on its machine", "[cluster]") {
  const Workplace here;
  Process head(here, head_words({"--http", "127.0.0.1:0"}));
  REQUIRE(head.says("http://"));
  REQUIRE(head.says("/\n"));
  const auto page = page_of(head.said());
  Process marked(here, {"node", "--name", "<alpha>", "--cores", "1"});
  CHECK(marked.says("wanted 1 to 64 of A-Z a-z 0-9 . _ -"));
  CHECK(marked.wait() == 5);
  Process node(here, {"node", "--name", "alpha", "--cores", "1"});
  REQUIRE(node.says("joined"));
  const auto answers = [&](const std::string& request, const std::string& with) {
    RawConnection line(page);
    line.send(request);
    return line.wait_for(with) && line.closed();
  };
  CHECK(answers("GET / HTTP/1.1\r\nHost: 127.0.0.1:4702\r\n\r\n", "alpha"));
  CHECK(answers("GET /metrics HTTP/1.1\r\n\r\n", "\ntroupe_nodes 1\n"));
  CHECK(answers("GET /metrics HTTP/1.1\r\n\r\n", "troupe_node_cores{node=\"alpha\"} 1\n"));
  CHECK(answers("GET /etc/passwd HTTP/1.1\r\n\r\n", "404 Not Found"));
  CHECK(answers("POST / HTTP/1.1\r\n\r\nrun=1", "405 Method Not Allowed"));
  CHECK(answers("\x16\x03\x01\x02", "400 Bad Request"));
  CHECK(answers(std::string(100'000, 'x'), "400 Bad Request"));
  CHECK(answers("GET / HTTP/1.1\r\n\r\n", "no runs"));
  // A node tells every two seconds what is in use of its machine.
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  const auto comes = [&](const std::string& text) {
    while (std::chrono::steady_clock::now() < end)
      if (answers("GET /metrics HTTP/1.1\r\n\r\n", text)) return true;
    return false;
  };
  CHECK(comes("troupe_node_busy{node=\"alpha\"} "));
  CHECK(comes("troupe_node_memory_used_bytes{node=\"alpha\"} "));
  CHECK(tests::troupe(here, {"nodes", "--head", head_of(here)}).out.find(" % ") !=
        std::string::npos);
  {
    Liar liar(head_of(here));
    REQUIRE(liar.join("boaster"));
    liar.say(transport::to_message(actors::MachineLoad{.busy = 1e9, .memory = 1}));
    CHECK(head.says("node.load.busy: wanted a share from 0 to 1"));
  }
  // Texts of a node are escaped on the page and in the metrics.
  {
    Liar liar(head_of(here));
    REQUIRE(liar.join("liar"));
    actors::GpuReading gpu;
    gpu.name = "<b>\x1b[2J\"gpu\nforged 1";
    liar.say(transport::to_message(actors::GpuReadings{{gpu}}));
    const std::string label = R"({node="liar",gpu="0",name="<b>?[2J\"gpu forged 1"} 0)"
                              "\n";
    bool is_there = false;
    for (int tries = 0; tries < 100 && !is_there; ++tries) {
      liar.say(transport::to_message(actors::Heartbeat{}));
      is_there = answers("GET /metrics HTTP/1.1\r\n\r\n", label);
    }
    CHECK(is_there);
    liar.say(transport::to_message(actors::Heartbeat{}));
    CHECK(answers("GET / HTTP/1.1\r\n\r\n", "&lt;b&gt;?[2J"));
    liar.say(transport::to_message(actors::Heartbeat{}));
    const auto table = tests::troupe(here, {"nodes", "--head", head_of(here)}).out;
    CHECK(table.find("<b>?[2J") != std::string::npos);
    CHECK(table.find('\x1b') == std::string::npos);
  }
  for (Process* process : {&node, &head}) process->send(SIGTERM);
  CHECK(node.wait() == 0);
  CHECK(head.wait() == 0);

  Process open(here, head_words({"--http", "0.0.0.0:0"}));
  CHECK(open.says("no status page: --http 0.0.0.0:0: wanted an address of this machine alone"));
  open.send(SIGTERM);
  CHECK(open.wait() == 0);
}

TEST_CASE("a page answers scripts with JSON, and names no other file than those of runs",
          "[cluster]") {
  const Workplace here;
  Process head(here, head_words({"--http", "127.0.0.1:0"}));
  REQUIRE(head.says("http://"));
  REQUIRE(head.says("/\n"));
  Process node(here, {"node", "--name", "alpha", "--cores", "1"});
  REQUIRE(node.says("joined"));
  const auto page = page_of(head.said());
  const auto answers = [&](const std::string& line, const std::string& with) {
    RawConnection connection(page);
    connection.send(line + " HTTP/1.1\r\n\r\n");
    return connection.wait_for(with) && connection.closed();
  };
  CHECK(answers("GET /healthz", "200 OK"));
  CHECK(answers("GET /page.js", "Content-Type: text/javascript"));
  CHECK(answers("GET /page.css", "Content-Type: text/css"));
  CHECK(answers("GET /api/status?now", "\"name\":\"alpha\""));
  CHECK(answers("GET /", "script-src 'self'"));
  // HEAD answers with the head of the answer alone.
  {
    RawConnection connection(page);
    connection.send("HEAD / HTTP/1.1\r\n\r\n");
    REQUIRE(connection.wait_for("200 OK"));
    REQUIRE(connection.closed());
    CHECK(connection.received().ends_with("\r\n\r\n"));
  }
  const auto submitted =
      tests::troupe(here, {"submit", quickstart, "--set", "train.steps=4", "--set", "name=r",
                           "--wait", "--head", head_of(here)});
  REQUIRE(submitted.code == 0);
  // The status is made anew at most twice a second.
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  bool is_known = false;
  while (!is_known && std::chrono::steady_clock::now() < end)
    is_known = answers("GET /api/runs/r", "\"whole\":true");
  CHECK(is_known);
  CHECK(answers("GET /api/runs/r", "\"columns\":[\"step\",\"time\",\"seen\",\"loss\""));
  CHECK(answers("GET /api/runs/r/config", "name = \"r\""));
  CHECK(answers("GET /api/look", ",\"histories\":{}}"));
  CHECK(answers("GET /api/look?run=r&run=none&run=r", "{\"status\":{"));
  CHECK(answers("GET /api/look?run=none&run=r", ",\"histories\":{\"r\":{\"columns\":[\"step\","));
  CHECK(answers("GET /api/look?run=../r", ",\"histories\":{}}"));
  CHECK(answers("GET /api/look?run=1&run=2&run=3&run=4&run=5&run=6&run=7&run=8&run=9",
                "wanted at most 8 runs, found 9"));
  for (const auto* path :
       {"/api/runs/", "/api/runs/none", "/api/runs/../r", "/api/runs/r/../r/config",
        "/api/runs/r/events.jsonl", "/api/runs/%2e%2e", "/page"})
    CHECK(answers(std::string("GET ") + path, "404 Not Found"));
  for (Process* process : {&node, &head}) process->send(SIGTERM);
  CHECK(node.wait() == 0);
  CHECK(head.wait() == 0);
}

TEST_CASE("a page answers only to names of its machine, and forbids framing", "[cluster]") {
  const Workplace here;
  Process head(here, head_words({"--http", "127.0.0.1:0"}));
  REQUIRE(head.says("http://"));
  REQUIRE(head.says("/\n"));
  const auto page = page_of(head.said());
  const auto answers = [&](const std::string& host, const std::string& with) {
    RawConnection line(page);
    line.send("GET /metrics HTTP/1.1\r\nHost:" + host + "\r\n\r\n");
    return line.wait_for(with) && line.closed();
  };
  for (const auto* host : {" localhost", " LocalHost:4702", "127.0.0.1", " [::1]", " [::1]:4702 "})
    CHECK(answers(host, "\ntroupe_nodes 0\n"));
  for (const auto* host :
       {" evil.example", " evil.example:4702", " 127.evil.example", " [::1", "", "  "})
    CHECK(answers(host, "403 Forbidden"));
  CHECK(answers(" localhost", "X-Content-Type-Options: nosniff\r\n"));
  CHECK(answers(" localhost", "frame-ancestors 'none'\r\n"));
  head.send(SIGTERM);
  CHECK(head.wait() == 0);
}

TEST_CASE("metrics for other machines want the head's token, and nothing else is there",
          "[cluster]") {
  const Workplace here;
  const std::string token = "0123456789abcdef0123456789abcdef";
  here.write("token", token + "\n");
  REQUIRE(chmod((here.path() / "token").c_str(), 0600) == 0);
  Process head(here, head_words({"--http", "off", "--metrics", "0.0.0.0:0", "--metrics-token-file",
                                 "token"}));
  REQUIRE(head.says("/metrics for whoever has the token"));
  const auto page =
      "tcp://127.0.0.1" + page_of(head.said()).substr(std::string("tcp://0.0.0.0").size());
  const auto answers = [&](const std::string& request, const std::string& with) {
    RawConnection line(page);
    line.send(request + "\r\n\r\n");
    return line.wait_for(with) && line.closed();
  };
  const std::string get = "GET /metrics HTTP/1.1\r\nHost: prometheus.example:4703";
  CHECK(answers(get + "\r\nAuthorization: Bearer " + token, "\ntroupe_nodes 0\n"));
  CHECK(answers(get + "\r\nauthorization:Bearer " + token + "  ", "\ntroupe_nodes 0\n"));
  CHECK(answers(get, "401 Unauthorized"));
  CHECK(answers(get, "\r\nWWW-Authenticate: Bearer\r\n"));
  for (const std::string& other : {"Bearer " + token.substr(1), "Bearer " + token + "0",
                                   std::string("Bearer"), "Basic " + token, token})
    CHECK(answers(get + "\r\nAuthorization: " + other, "401 Unauthorized"));
  CHECK(answers("GET /healthz HTTP/1.1", "\r\n\r\nok\n"));
  for (const char* path : {"/", "/api/status", "/page.js"})
    CHECK(answers(std::string("GET ") + path + " HTTP/1.1\r\nAuthorization: Bearer " + token,
                  "404 Not Found"));
  CHECK(answers("POST /metrics HTTP/1.1\r\nAuthorization: Bearer " + token,
                "405 Method Not Allowed"));
  CHECK(answers(std::string(100'000, 'x'), "400 Bad Request"));
  head.send(SIGTERM);
  CHECK(head.wait() == 0);
}

TEST_CASE("a head shows its metrics to a network only if somebody asked for that", "[cluster]") {
  const Workplace here;
  here.write("token", "0123456789abcdef0123456789abcdef\n");
  REQUIRE(chmod((here.path() / "token").c_str(), 0644) == 0);
  const auto refuses = [&](const std::vector<std::string>& words, const std::string& with) {
    const auto ended = tests::troupe(here, head_words(words));
    INFO(ended.err);
    return ended.code == 2 && ended.err.find(with) != std::string::npos;
  };
  CHECK(refuses({"--metrics", "0.0.0.0:0"},
                "error: --metrics 0.0.0.0:0: everybody on the network could read the metrics; give "
                "--metrics-token-file FILE, or --metrics-without-token if the network is private"));
  CHECK(
      refuses({"--metrics", "0.0.0.0:0", "--metrics-token-file", "token"},
              "token: others than its owner may read or write this secret; run: chmod 600 token"));
  CHECK(refuses({"--metrics", "somewhere"}, "--metrics"));
  CHECK(refuses({"--metrics-without-token"}, "--metrics"));
  Process open(here,
               head_words({"--http", "off", "--metrics", "0.0.0.0:0", "--metrics-without-token"}));
  CHECK(open.says("/metrics for everybody who can reach it"));
  open.send(SIGTERM);
  CHECK(open.wait() == 0);

  // A web page elsewhere could let a browser of this machine ask.
  Process local(here, head_words({"--http", "off", "--metrics", "127.0.0.1:0"}));
  REQUIRE(local.says("/metrics for everybody"));
  RawConnection line(page_of(local.said()));
  line.send("GET /metrics HTTP/1.1\r\nHost: evil.example\r\n\r\n");
  CHECK(line.wait_for("403 Forbidden"));
  local.send(SIGTERM);
  CHECK(local.wait() == 0);
}

TEST_CASE("a page without a free descriptor for a visitor does not spin", "[cluster]") {
  constexpr std::size_t limit = 256;
  const Workplace here;
  Process head(here, head_words({"--http", "127.0.0.1:0"}), limit);
  REQUIRE(head.says("http://"));
  REQUIRE(head.says("/\n"));
  const auto page = page_of(head.said());
  // Leaves the head no free descriptor.
  rlim_t used = 0;
  while (std::filesystem::exists(std::filesystem::symlink_status(
      "/proc/" + std::to_string(head.id()) + "/fd/" + std::to_string(used))))
    ++used;
  const rlimit none{used, limit};
  REQUIRE(prlimit(head.id(), RLIMIT_NOFILE, &none, nullptr) == 0);
  std::vector<std::unique_ptr<RawConnection>> visitors;
  for (int i = 0; i < 8; ++i) {
    visitors.push_back(std::make_unique<RawConnection>(page));
    CHECK(visitors.back()->closed());
  }
  const rlimit enough{limit, limit};
  REQUIRE(prlimit(head.id(), RLIMIT_NOFILE, &enough, nullptr) == 0);
  RawConnection line(page);
  line.send("GET /metrics HTTP/1.1\r\n\r\n");
  CHECK(line.wait_for("\ntroupe_nodes 0\n"));
  head.send(SIGTERM);
  CHECK(head.wait() == 0);
}
