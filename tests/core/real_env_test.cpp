#include "core/threads/real_env.h"

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <future>
#include <thread>

#include "catch.h"
#include "tests/core/env_contract.h"

using namespace troupe;
using namespace std::chrono_literals;

namespace {

class RealEnvUnderTest final : public EnvUnderTest {
 public:
  Env& env() override { return env_; }
  bool run_until(const std::function<bool()>& condition) override {
    for (const auto end = env_.now() + 30s; !condition(); std::this_thread::sleep_for(100us))
      if (env_.now() > end) return false;
    return true;
  }

 private:
  RealEnv env_;
};

/// How a process ended, and what it wrote to stderr.
struct Ending {
  int status = 0;
  std::string words;
};

/// Runs a function in a child process until that ends.
template <class What>
Ending end_of_child(What what) {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    std::signal(SIGABRT, SIG_DFL);  // Without the report of the test framework.
    dup2(ends[1], STDERR_FILENO);
    RealEnv env;
    what(env);
  }
  close(ends[1]);
  Ending ending;
  std::array<char, 100> some{};
  for (ssize_t count = 0; (count = read(ends[0], some.data(), some.size())) > 0;)
    ending.words.append(some.data(), static_cast<std::size_t>(count));
  close(ends[0]);
  waitpid(child, &ending.status, 0);
  return ending;
}

}  // namespace

TEST_CASE("the real environment keeps the contract of environments", "[core]") {
  RealEnvUnderTest under_test;
  check_env_contract(under_test);
}

TEST_CASE("a loop of the real environment is a thread of its name", "[core]") {
  RealEnv env;
  const auto loop = env.make_loop({"at work"});
  std::promise<std::string> name;
  loop->post([&] {
    std::array<char, 16> text{};
    pthread_getname_np(pthread_self(), text.data(), text.size());
    name.set_value(text.data());
  });
  CHECK(name.get_future().get() == "at work");
}

TEST_CASE("a process ends with a code after its last words", "[core]") {
  const auto ending = end_of_child([](Env& env) { env.end_process(7, "the end\n"); });
  CHECK(WIFEXITED(ending.status));
  CHECK(WEXITSTATUS(ending.status) == 7);
  CHECK(ending.words == "the end\n");
}

TEST_CASE("a process crashes by a signal after its last words", "[core]") {
  const auto ending = end_of_child([](Env& env) { env.crash("lost\n"); });
  CHECK(WIFSIGNALED(ending.status));
  CHECK(WTERMSIG(ending.status) == SIGABRT);
  CHECK(ending.words == "lost\n");
}
