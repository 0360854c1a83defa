#include "apps/hosts/children.h"

#include <signal.h>

#include <chrono>

#include "catch.h"

using namespace troupe::apps;
using namespace std::chrono_literals;

namespace {

struct Heard {
  std::vector<std::string> out, error;
  std::vector<int> codes;

  ChildOrder order(std::vector<std::string> words, std::chrono::milliseconds patience = 10s) {
    return {.words = std::move(words),
            .input = {},
            .patience = patience,
            .on_line =
                [this](ChildOrder::Stream stream, const std::string& line) {
                  (stream == ChildOrder::Stream::out ? out : error).push_back(line);
                },
            .on_end = [this](int code) { codes.push_back(code); }};
  }
};

using Lines = std::vector<std::string>;

}  // namespace

TEST_CASE("a child's lines arrive whole from both streams, and then its exit code", "[hosts]") {
  Children children;
  Heard heard;
  children.start(heard.order(
      {"sh", "-c", "printf 'one\\ntwo\\n\\nrest'; echo wrong >&2; read nothing; exit 3"}));
  children.wait();
  CHECK(heard.out == Lines{"one", "two", "", "rest"});
  CHECK(heard.error == Lines{"wrong"});
  CHECK(heard.codes == std::vector{3});
}

TEST_CASE("a child can read input of any size", "[hosts]") {
  Children children;
  Heard heard;
  auto order = heard.order({"wc", "-c"});
  order.input = std::string(300'000, 'x');
  children.start(std::move(order));
  children.wait();
  CHECK(heard.out == Lines{"300000"});
}

TEST_CASE("a program that cannot start, and one that a signal ends, have their exit codes",
          "[hosts]") {
  Children children;
  Heard nobody, killed;
  children.start(nobody.order({"/there/is/no/such/program"}));
  children.start(killed.order({"sh", "-c", "kill -TERM $$"}));
  children.wait();
  CHECK(nobody.codes == std::vector{127});
  CHECK(killed.codes == std::vector{128 + SIGTERM});
}

TEST_CASE("after its time limit a child is killed with all its descendants", "[hosts]") {
  Children children;
  Heard heard;
  // The grandchild holds the pipes, so wait() returns early only if it dies too.
  children.start(heard.order({"sh", "-c", "sleep 1000 & echo $!; wait"}, 300ms));
  const auto start = std::chrono::steady_clock::now();
  children.wait();
  CHECK(std::chrono::steady_clock::now() - start < 100s);
  CHECK(heard.codes == std::vector{128 + SIGKILL});
  REQUIRE(heard.out.size() == 1);
  const pid_t sleeper = std::stoi(heard.out[0]);
  // The killed process may still be a zombie until its new parent reaps it.
  const auto until = std::chrono::steady_clock::now() + 10s;
  bool runs = true;
  while (runs && std::chrono::steady_clock::now() < until) {
    std::FILE* file = std::fopen(("/proc/" + heard.out[0] + "/stat").c_str(), "r");
    char state = 'X';
    if (file && std::fscanf(file, "%*d %*s %c", &state) != 1) state = 'X';
    if (file) std::fclose(file);
    runs = state != 'X' && state != 'Z';
  }
  CHECK(!runs);
  if (runs) kill(sleeper, SIGKILL);
}

TEST_CASE("a child has ended even if a descendant still holds its pipes", "[hosts]") {
  Children children;
  Heard heard;
  children.start(heard.order({"sh", "-c", "setsid sleep 3 & echo done"}));
  const auto start = std::chrono::steady_clock::now();
  children.wait();
  CHECK(std::chrono::steady_clock::now() - start < 2s);
  CHECK(heard.out == Lines{"done"});
  CHECK(heard.codes == std::vector{0});
}

TEST_CASE("a bounded number of children run at once, and callbacks may start others", "[hosts]") {
  Children children(3);
  Heard heard;
  int started = 0;
  auto first = heard.order({"echo", "go on"});
  first.on_line = [&](ChildOrder::Stream, const std::string&) {
    for (; started < 20; ++started) children.start(heard.order({"echo", std::to_string(started)}));
  };
  children.start(std::move(first));
  children.wait();
  CHECK(heard.codes == std::vector<int>(21, 0));
  CHECK(heard.out.size() == 20);
}

TEST_CASE("a long line without an end arrives in pieces", "[hosts]") {
  Children children;
  Heard heard;
  children.start(heard.order({"sh", "-c", "head -c 300000 /dev/zero | tr '\\0' x"}));
  children.wait();
  std::size_t bytes = 0;
  for (const auto& line : heard.out) bytes += line.size();
  CHECK(bytes == 300'000);
  CHECK(heard.out.size() > 1);
}
