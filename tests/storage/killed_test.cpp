#include <signal.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <functional>

#include "catch.h"
#include "storage/checkpoint/checkpoint.h"
#include "storage/files/records.h"
#include "tests/storage/checkpoint_content.h"
#include "tests/storage/temporary_directory.h"

using namespace troupe;
using namespace troupe::storage;

// A real process on a real disk, killed by the system.

namespace {

bool changes_files(std::uint64_t call) {
  constexpr std::array calls = {
      SYS_openat, SYS_write,    SYS_pwrite64, SYS_fsync,    SYS_fdatasync,
      SYS_close,  SYS_unlinkat, SYS_mkdirat,  SYS_renameat, SYS_renameat2,
#ifdef SYS_unlink  // Newer machines only have the calls relative to a directory.
      SYS_open,   SYS_unlink,   SYS_rmdir,    SYS_mkdir,    SYS_rename,
#endif
  };
  for (const auto one : calls)
    if (static_cast<std::uint64_t>(one) == call) return true;
  return false;
}

enum class End { none, killed, came_to_its_end };

/// Runs `what` in a child process and kills it when it enters its `call`th system call that changes
/// files.
End killed_at(int call, const std::function<bool()>& what) {
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    if (ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) _exit(77);
    raise(SIGSTOP);
    _exit(what() ? 0 : 1);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 77) return End::none;
  REQUIRE(WIFSTOPPED(status));
  REQUIRE(ptrace(PTRACE_SETOPTIONS, child, nullptr, PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL) ==
          0);
  for (int seen = 0;;) {
    REQUIRE(ptrace(PTRACE_SYSCALL, child, nullptr, nullptr) == 0);
    REQUIRE(waitpid(child, &status, 0) == child);
    if (WIFEXITED(status)) {
      REQUIRE(WEXITSTATUS(status) == 0);
      return End::came_to_its_end;
    }
    REQUIRE(WIFSTOPPED(status));
    if (WSTOPSIG(status) != (SIGTRAP | 0x80)) continue;
    struct __ptrace_syscall_info info {};
    if (ptrace(PTRACE_GET_SYSCALL_INFO, child, sizeof info, &info) <= 0) {
      kill(child, SIGKILL);
      waitpid(child, &status, 0);
      return End::none;
    }
    if (info.op != PTRACE_SYSCALL_INFO_ENTRY || !changes_files(info.entry.nr)) continue;
    if (seen++ != call) continue;
    kill(child, SIGKILL);
    REQUIRE(waitpid(child, &status, 0) == child);
    REQUIRE(WIFSIGNALED(status));
    return End::killed;
  }
}

std::int64_t newest_whole(Files& files, const std::string& root) {
  const auto newest = open_newest_checkpoint(files, root);
  REQUIRE((newest && *newest));
  REQUIRE(is_whole((*newest)->checkpoint));
  return (*newest)->checkpoint.manifest().step;
}

}  // namespace

TEST_CASE("a process killed at any system call of a save leaves a good checkpoint", "[storage]") {
  const auto files = disk_files();
  int calls = 0;
  for (End end = End::killed; end == End::killed; ++calls) {
    const TemporaryDirectory directory;
    const std::string root = directory / "checkpoints";
    MemoryPool pool;
    REQUIRE(save_checkpoint(*files, root, content_of(pool, 1)));
    end = killed_at(calls, [&] {
      return save_checkpoint(*files, root, content_of(pool, 2)).ok() &&
             prune_checkpoints(*files, root, {1}).ok();
    });
    if (end == End::none) {
      WARN("this machine lets nobody trace a process: nothing was tested");
      return;
    }
    INFO("killed at call " << calls);
    const auto step = newest_whole(*files, root);
    REQUIRE((step == 2 || (end == End::killed && step == 1)));
    // Leftover files block nothing and are removed.
    REQUIRE(save_checkpoint(*files, root, content_of(pool, 2)));
    REQUIRE(prune_checkpoints(*files, root, {1}));
    REQUIRE(newest_whole(*files, root) == 2);
    REQUIRE(files->list(root)->size() == 1);
    REQUIRE(files->list(root + "/" + step_directory(2))->size() == 3);
  }
  CHECK(calls > 30);
}

TEST_CASE("a process killed at any system call loses no synced record", "[storage]") {
  const auto files = disk_files();
  const auto record = [](int number) {
    Value value;
    value.set("number", number);
    return value;
  };
  int calls = 0;
  for (End end = End::killed; end == End::killed; ++calls) {
    const TemporaryDirectory directory;
    const std::string path = directory / "records";
    {
      auto writer = RecordWriter::open(*files, path);
      REQUIRE((writer && writer->append(record(1)) && writer->sync()));
    }
    end = killed_at(calls, [&] {
      auto writer = RecordWriter::open(*files, path);
      return writer && writer->append(record(2)) && writer->append(record(3)) && writer->sync() &&
             writer->append(record(4)) && writer->take_back();
    });
    if (end == End::none) return;
    INFO("killed at call " << calls);
    auto writer = RecordWriter::open(*files, path);
    REQUIRE((writer && writer->append(record(5)) && writer->sync()));
    const auto read = read_records(files->read(path)->text());
    REQUIRE(read.flaw == "");
    REQUIRE(read.good.front().value == record(1));
    REQUIRE(read.good.back().value == record(5));
    if (end == End::came_to_its_end) REQUIRE(read.good.size() == 4);
  }
  CHECK(calls > 10);
}

TEST_CASE("a save under a file size limit leaves the older or the new checkpoint", "[storage]") {
  const auto files = disk_files();
  const TemporaryDirectory directory;
  const std::string root = directory / "checkpoints";
  MemoryPool pool;
  REQUIRE(save_checkpoint(*files, root, content_of(pool, 1)));
  bool saved = false;
  for (rlim_t longest = 0; !saved; longest += 61) {
    const pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      // A write beyond the limit then fails after a part, as on a full disk.
      signal(SIGXFSZ, SIG_IGN);
      const rlimit limit{longest, longest};
      setrlimit(RLIMIT_FSIZE, &limit);
      const auto result = save_checkpoint(*files, root, content_of(pool, 2));
      const bool is_named = !result && result.error().text.starts_with(root) &&
                            result.error().text.ends_with(": cannot write: File too large");
      _exit(result ? 0 : is_named ? 1 : 2);
    }
    int status = 0;
    REQUIRE(waitpid(child, &status, 0) == child);
    REQUIRE(WIFEXITED(status));
    REQUIRE(WEXITSTATUS(status) < 2);
    saved = WEXITSTATUS(status) == 0;
    INFO("files of at most " << longest << " bytes");
    REQUIRE(newest_whole(*files, root) == (saved ? 2 : 1));
    REQUIRE(files->list(root)->size() == (saved ? 2 : 1));
  }
}
