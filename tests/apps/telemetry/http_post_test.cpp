#include "apps/telemetry/http_post.h"

#include <atomic>
#include <chrono>
#include <string>

#include "apps/telemetry/collector.h"
#include "catch.h"

using namespace troupe;
using namespace troupe::apps;
using tests::Collector;

namespace {

using namespace std::chrono_literals;

HttpAddress parsed_address(const std::string& text) {
  const auto address = HttpAddress::parse(text, 4318);
  INFO(text);
  REQUIRE(address);
  return *address;
}

Result<HttpReply> posted_to(const HttpAddress& to, std::chrono::milliseconds limit = 60s) {
  EventFd bell;
  const auto end = std::chrono::steady_clock::now() + limit;
  return http_post(to, "/v1/traces", R"({"a":1})", {[end] { return end; }, bell});
}

/// Posts to a server that answers with this text.
Result<HttpReply> posted(const std::string& answer) {
  Collector server([&](const Collector::Request&) { return answer; });
  return posted_to(parsed_address(server.address()));
}

}  // namespace

TEST_CASE("the address of a web server is read", "[apps]") {
  CHECK(parsed_address("http://collector").text() == "http://collector:4318");
  CHECK(parsed_address("http://10.0.0.1:80/otlp/").text() == "http://10.0.0.1:80/otlp");
  CHECK(parsed_address("http://[::1]:9/").text() == "http://[::1]:9");
  CHECK(parsed_address("http://[::1]").host == "::1");
  const auto refused = [](const std::string& text) {
    return HttpAddress::parse(text, 4318).error().text;
  };
  for (const char* wrong : {"", "collector:4318", "http://", "http://a:0", "http://a:99999",
                            "http://a:1x", "http://a b", "http://user@a", "http://a/x y"}) {
    INFO(wrong);
    CHECK(refused(wrong) ==
          "found '" + std::string(wrong) + "', wanted an address such as http://collector:4318");
  }
  CHECK(refused("https://a").find("does not encrypt HTTP") != std::string::npos);
}

TEST_CASE("JSON is posted, and the reply is read in each of its forms", "[apps]") {
  Collector server;
  auto address = parsed_address(server.address() + "/otlp");
  const auto reply = posted_to(address);
  REQUIRE(reply);
  CHECK(reply->status == 200);
  CHECK(reply->body == "{}");
  CHECK_FALSE(reply->retry_after);
  const auto request = server.requests().at(0);
  CHECK(request.path == "/otlp/v1/traces");
  CHECK(request.head.find("\r\nContent-Type: application/json\r\n") != std::string::npos);
  CHECK(request.head.find("\r\nHost: " + address.machine() + "\r\n") != std::string::npos);
  CHECK(to_json(request.body) == R"({"a":1})");

  const auto chunked = posted(
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: "
      "chunked\r\n\r\n3\r\n{\"a\r\n4;x\r\n\":1}\r\n0\r\n\r\n");
  REQUIRE(chunked);
  CHECK(chunked->body == R"({"a":1})");
  const auto closed = posted("HTTP/1.0 200 OK\r\n\r\nall that comes");
  REQUIRE(closed);
  CHECK(closed->body == "all that comes");
  const auto busy = posted(Collector::with_status("429 Slow Down", "", "Retry-After: 7\r\n"));
  REQUIRE(busy);
  CHECK(busy->status == 429);
  CHECK(busy->retry_after == 7s);
}

TEST_CASE("a server that is away, silent or no web server is an error in time", "[apps]") {
  std::string address;
  {
    const Collector server;
    address = server.address();
  }
  CHECK(posted_to(parsed_address(address)).error().text == "Connection refused");
  CHECK(posted("220 mail.example.org ESMTP\r\n\r\n").error().text == "it does not speak HTTP");
  CHECK(posted("HTTP/1.1 200 OK\r\nContent-Le").error().text ==
        "it closed the connection without an answer");
  const Collector silent([](const Collector::Request&) { return std::string(); });
  CHECK(posted_to(parsed_address(silent.address()), 50ms).error().text ==
        "it did not answer in time");
}

TEST_CASE("a request ends when its patience is shortened", "[apps]") {
  EventFd bell;
  std::atomic<bool> is_over = false;
  const Collector silent([&](const Collector::Request&) {
    is_over = true;
    bell.ring();
    return std::string();
  });
  const auto now = std::chrono::steady_clock::now();
  const auto reply = http_post(parsed_address(silent.address()), "/", "{}",
                               {[&] { return is_over ? now : now + 1h; }, bell});
  CHECK(reply.error().text == "it did not answer in time");
}
