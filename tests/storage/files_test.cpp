#include "storage/files/files.h"

#include <sys/stat.h>

#include "catch.h"
#include "storage/files/memory_files.h"
#include "tests/storage/files_contract.h"
#include "tests/storage/temporary_directory.h"

using namespace troupe;
using namespace troupe::storage;

namespace {

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

}  // namespace

TEST_CASE("the disk keeps the contract of files", "[storage]") {
  const TemporaryDirectory directory;
  const auto files = disk_files();
  check_files_contract(*files, directory / "root");
}

TEST_CASE("memory files keep the contract of files", "[storage]") {
  MemoryFiles files;
  check_files_contract(files, "root");
}

TEST_CASE("a large file reads back as written", "[storage]") {
  const TemporaryDirectory directory;
  const auto files = disk_files();
  std::string text;
  for (int i = 0; i < 300'000; ++i) text += static_cast<char>(i * 31);
  write_and_sync(*files, directory / "large", text);
  CHECK(files->read(directory / "large")->text() == text);
}

TEST_CASE("reading a pipe is refused", "[storage]") {
  const TemporaryDirectory directory;
  REQUIRE(mkfifo((directory / "pipe").c_str(), 0600) == 0);
  const auto read = disk_files()->read(directory / "pipe");
  REQUIRE_FALSE(read);
  CHECK(read.error().text == directory / "pipe" + ": is a device or a pipe; a file was wanted");
}

TEST_CASE("a file error names the path and the reason", "[storage]") {
  const auto read = disk_files()->read("/nowhere/at all");
  REQUIRE_FALSE(read);
  CHECK(read.error().text == "/nowhere/at all: cannot open: No such file or directory");
}

TEST_CASE("a crash loses unsynced names and contents", "[storage]") {
  MemoryFiles files;
  write_and_sync(files, "synced", "contents");  // The name is not synced.
  files.restart({});
  CHECK_FALSE(*files.exists("synced"));

  write_and_sync(files, "named", "contents");
  REQUIRE(files.sync_directory("."));
  auto open = files.create("half");
  REQUIRE((*open)->write(bytes_of("01234567")));
  files.restart({Survival::Entries::kept, Survival::Contents::torn});
  CHECK(files.read("named")->text() == "contents");
  CHECK(files.read("half")->text() == "0123");
  CHECK_FALSE((*open)->write(bytes_of("more")));
}

TEST_CASE("a full disk accepts the bytes that fit and reports an error", "[storage]") {
  MemoryFiles files;
  files.set_faults({.crash_at = {}, .failing_call = {}, .capacity = 10});
  auto file = files.create("file");
  REQUIRE(file);
  const auto written = (*file)->write(bytes_of("0123456789abcdef"));
  REQUIRE_FALSE(written);
  CHECK(written.error().text == "file: cannot write: No space left on device");
  CHECK(files.read("file")->size() == 10);
  CHECK(*files.free_space(".") == 0);
}

TEST_CASE("a crash during a replacement leaves the old or the new file", "[storage]") {
  using Entries = Survival::Entries;
  using Contents = Survival::Contents;
  for (const auto entries : {Entries::lost, Entries::kept})
    for (const auto contents : {Contents::lost, Contents::torn, Contents::kept}) {
      bool finished = false;
      for (std::int64_t call = 0; !finished; ++call) {
        MemoryFiles files;
        REQUIRE(replace_file(files, "file", "the old one"));
        files.set_faults({.crash_at = files.calls() + call, .failing_call = {}, .capacity = {}});
        finished = replace_file(files, "file", "the new one").ok();
        files.restart({entries, contents});
        const auto text = std::string(files.read("file")->text());
        INFO("crash at call " << call << ": " << text);
        CHECK((text == "the new one" || (!finished && text == "the old one")));
        CHECK(replace_file(files, "file", "the next one"));
      }
    }
}
