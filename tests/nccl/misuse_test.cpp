// Tests of the simulated NCCL: it detects misuse.

#include <cuda_runtime.h>
#include <nccl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <string>
#include <vector>

#include "tests/catch.h"

namespace {

/// A communicator of two members, both in this process, and memory.
struct TwoMembers {
  struct End {
    ncclComm_t communicator = nullptr;
    cudaStream_t stream = nullptr;
    std::vector<char> memory = std::vector<char>(1000);
  };

  TwoMembers() {
    ncclUniqueId id;
    (void)ncclGetUniqueId(&id);
    for (int member = 0; member < 2; ++member) {
      ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
      config.blocking = 0;
      config.minCTAs = config.maxCTAs = 1;
      (void)cudaSetDevice(member);
      (void)cudaStreamCreateWithFlags(&at(member).stream, cudaStreamNonBlocking);
      (void)ncclCommInitRankConfig(&at(member).communicator, 2, id, member, &config);
    }
    (void)cudaSetDevice(0);
  }
  ~TwoMembers() {
    for (const auto& end : ends) (void)cudaStreamDestroy(end.stream);
  }
  TwoMembers(const TwoMembers&) = delete;
  TwoMembers& operator=(const TwoMembers&) = delete;

  End& at(int member) { return ends[static_cast<std::size_t>(member)]; }

  void settle() {
    for (int i = 0; i < 20; ++i)
      for (const auto& end : ends) {
        auto state = ncclInProgress;
        (void)ncclCommGetAsyncError(end.communicator, &state);
      }
  }
  void send(std::size_t bytes) {
    (void)ncclGroupStart();
    (void)ncclSend(ends[0].memory.data(), bytes, ncclInt8, 1, ends[0].communicator, ends[0].stream);
    (void)ncclGroupEnd();
  }
  void receive(std::size_t bytes) {
    (void)ncclGroupStart();
    (void)ncclRecv(ends[1].memory.data(), bytes, ncclInt8, 0, ends[1].communicator, ends[1].stream);
    (void)ncclGroupEnd();
  }

  std::vector<End> ends = std::vector<End>(2);
};

/// Returns the last output of a process that `body` ends; empty if the process survives.
template <class Body>
std::string last_words_of(Body body) {
  int both[2];
  REQUIRE(pipe(both) == 0);
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    std::signal(SIGABRT, SIG_DFL);
    dup2(both[1], STDERR_FILENO);
    body();
    _exit(0);
  }
  close(both[1]);
  std::string words;
  char more[256];
  for (ssize_t got = 0; (got = read(both[0], more, sizeof more)) > 0;)
    words.append(more, static_cast<std::size_t>(got));
  close(both[0]);
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK((WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT) == !words.empty());
  return words;
}

}  // namespace

TEST_CASE("the simulated NCCL accepts correct use", "[nccl]") {
  CHECK(last_words_of([] {
          TwoMembers ends;
          ends.settle();
          ends.receive(10);
          ends.send(10);
          ends.settle();
          (void)cudaStreamSynchronize(ends.at(0).stream);
          (void)cudaStreamSynchronize(ends.at(1).stream);
        }) == "");
}

TEST_CASE("the simulated NCCL detects calls before the last one is complete", "[nccl]") {
  CHECK(last_words_of([] { TwoMembers().send(10); }) ==
        "NCCL, played: a communicator is used before it has settled\n");
  CHECK(last_words_of([] {
          TwoMembers ends;
          ends.settle();
          ends.send(10);
          ends.send(10);
        }) == "NCCL, played: a communicator is used before it has settled\n");
}

TEST_CASE("the simulated NCCL detects work in a stream that it has reserved", "[nccl]") {
  CHECK(last_words_of([] {
          TwoMembers ends;
          ends.settle();
          ends.send(10);
          cudaEvent_t event = nullptr;
          (void)cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
          (void)cudaEventRecord(event, ends.at(0).stream);
          (void)cudaEventDestroy(event);
        }) == "something is put into a queue that a library has yet to let go\n");
}

TEST_CASE("the simulated NCCL detects sizes that differ", "[nccl]") {
  CHECK(last_words_of([] {
          TwoMembers ends;
          ends.settle();
          ends.send(10);
          ends.receive(11);
          ends.settle();
          (void)cudaStreamSynchronize(ends.at(0).stream);
          (void)cudaStreamSynchronize(ends.at(1).stream);
        }) ==
        "NCCL, played: member 1 wants 11 bytes, and member 0 has 10, perhaps for something else\n");
}

TEST_CASE("the simulated NCCL detects an abort that would wait for other members", "[nccl]") {
  // Both are connected, and each has an operation that nobody has polled.
  struct Occupied {
    Occupied() {
      for (auto* ends : {&one, &other}) {
        exchange(*ends);
        for (const auto& end : ends->ends) (void)cudaStreamSynchronize(end.stream);
      }
      for (auto* ends : {&one, &other}) exchange(*ends);
    }
    static void exchange(TwoMembers& ends) {
      ends.settle();
      ends.send(10);
      ends.receive(10);
      ends.settle();
    }
    TwoMembers one, other;
  };
  CHECK(last_words_of([] {
          Occupied both;
          (void)ncclCommAbort(both.one.at(0).communicator);
        }) == "NCCL, played: a communicator is aborted while another one occupies the device\n");
  CHECK(last_words_of([] {
          Occupied both;
          (void)ncclGroupStart();
          for (auto* ends : {&both.one, &both.other})
            for (auto& end : ends->ends) (void)ncclCommAbort(end.communicator);
          (void)ncclGroupEnd();
        }) == "");
}

TEST_CASE("the simulated NCCL detects use of a destroyed communicator", "[nccl]") {
  CHECK(last_words_of([] {
          TwoMembers ends;
          (void)ncclCommAbort(ends.at(0).communicator);
          auto state = ncclInProgress;
          (void)ncclCommGetAsyncError(ends.at(0).communicator, &state);
        }) == "NCCL, played: a communicator is gone or none\n");
}
