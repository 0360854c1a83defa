// What a head tells over HTTP.

#include <signal.h>

#include <string>

#include "catch.h"
#include "cluster/cluster.h"
#include "transport/sockets.h"

using namespace troupe;
using namespace troupe::tests;

namespace {

/// "tcp://127.0.0.1:40112", of a head that has said where its page is.
std::string page_of(const std::string& said) {
  const std::string before = "http://";
  const auto from = said.find(before) + before.size();
  return "tcp://" + said.substr(from, said.find('/', from) - from);
}

}  // namespace

TEST_CASE("a head tells browsers and Prometheus how it stands, and nobody else", "[cluster]") {
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
  CHECK(answers("GET / HTTP/1.1\r\nHost: here\r\n\r\n", "alpha"));
  CHECK(answers("GET /metrics HTTP/1.1\r\n\r\n", "\ntroupe_nodes 1\n"));
  CHECK(answers("GET /metrics HTTP/1.1\r\n\r\n", "troupe_node_cores{node=\"alpha\"} 1\n"));
  CHECK(answers("GET /etc/passwd HTTP/1.1\r\n\r\n", "404 Not Found"));
  CHECK(answers("POST / HTTP/1.1\r\n\r\nrun=1", "405 Method Not Allowed"));
  CHECK(answers("\x16\x03\x01\x02", "400 Bad Request"));
  CHECK(answers(std::string(100'000, 'x'), "400 Bad Request"));
  CHECK(answers("GET / HTTP/1.1\r\n\r\n", "no runs"));
  for (Process* process : {&node, &head}) process->send(SIGTERM);
  CHECK(node.wait() == 0);
  CHECK(head.wait() == 0);

  Process open(here, head_words({"--http", "0.0.0.0:0"}));
  CHECK(open.says("there is no page: --http 0.0.0.0:0: wanted an address of this machine alone"));
  open.send(SIGTERM);
  CHECK(open.wait() == 0);
}
