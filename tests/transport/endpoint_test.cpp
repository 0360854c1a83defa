#include "transport/control/endpoint.h"

#include <cerrno>
#include <fstream>
#include <iterator>

#include "catch.h"
#include "storage/temporary_directory.h"
#include "transport/control/control_socket.h"
#include "transport/sockets.h"

using namespace troupe::transport;

namespace {

std::string no_endpoint(const std::string& text) {
  const auto endpoint = parse_endpoint(text);
  return endpoint ? "" : endpoint.error().text;
}

}  // namespace

TEST_CASE("an endpoint is a host and a port, or a path", "[transport]") {
  CHECK(to_string(*parse_endpoint("tcp://10.0.0.1:4711")) == "tcp://10.0.0.1:4711");
  CHECK(to_string(*parse_endpoint("tcp://[::1]:0")) == "tcp://[::1]:0");
  CHECK(to_string(*parse_endpoint("tcp://*:*")) == "tcp://*:0");
  CHECK(to_string(*parse_endpoint("tcp://localhost:80")) == "tcp://127.0.0.1:80");
  CHECK(to_string(*parse_endpoint("ipc:///run/head")) == "ipc:///run/head");

  CHECK(no_endpoint("head:4711") ==
        "\"head:4711\" is not an address: it begins with neither tcp:// nor ipc://; wanted "
        "tcp://HOST:PORT or ipc://PATH");
  for (const auto* bad :
       {"", "tcp://", "tcp://head", "tcp://:1", "tcp://head:", "tcp://head:x", "tcp://head:-1",
        "tcp://head:65536", "tcp://::1:80", "ipc://", "udp://head:1", "inproc://head"}) {
    INFO(bad);
    CHECK_FALSE(no_endpoint(bad).empty());
  }
  CHECK(no_endpoint("ipc://" + std::string(108, 'x')).find("at most 107") != std::string::npos);
}

TEST_CASE("an endpoint is local if only this machine can reach it", "[transport]") {
  for (const auto* local : {"tcp://127.0.0.1:1", "tcp://127.8.8.8:1", "tcp://localhost:1",
                            "tcp://[::1]:1", "ipc://head"})
    CHECK(is_local(*parse_endpoint(local)));
  for (const auto* far : {"tcp://*:1", "tcp://0.0.0.0:1", "tcp://10.0.0.1:1", "tcp://[::]:1",
                          "tcp://127.evil.example:1", "tcp://eth0:1"})
    CHECK_FALSE(is_local(*parse_endpoint(far)));
}

TEST_CASE("a file that is not a socket is refused as an endpoint and keeps its content",
          "[transport]") {
  const TemporaryDirectory directory;
  const auto path = directory / "notes.txt";
  std::ofstream(path) << "mine";
  const auto content = [&] {
    std::ifstream file(path);
    return std::string(std::istreambuf_iterator<char>(file), {});
  };
  const auto status = check_free(*parse_endpoint("ipc://" + path));
  REQUIRE_FALSE(status);
  CHECK(status.error().text == "ipc://" + path +
                                   ": there is a file at this path that is no socket; take "
                                   "another path, or remove it");
  CHECK(content() == "mine");
  CHECK(check_free(*parse_endpoint("ipc://" + (directory / "none"))));

  // ZeroMQ itself would replace the file.
  OwnNetwork own;
  const auto server = own.network.listen(server_options("ipc://" + path), {}, *own.loop);
  REQUIRE_FALSE(server);
  CHECK(server.error().text == status.error().text);
  CHECK(content() == "mine");
}

TEST_CASE("a bind error says what to do", "[transport]") {
  const auto tcp = *parse_endpoint("tcp://10.0.0.1:80");
  CHECK(bind_error(tcp, EADDRINUSE).text ==
        "tcp://10.0.0.1:80: another program listens there; stop it, or take another port (0 takes "
        "a free one)");
  CHECK(bind_error(tcp, EACCES).text ==
        "tcp://10.0.0.1:80: not permitted; take a port of 1024 or more");
  CHECK(bind_error(tcp, ENODEV).text ==
        "tcp://10.0.0.1:80: no network interface of this machine has this address; \"*\" takes "
        "all");
}
