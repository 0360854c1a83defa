#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "catch.h"
#include "storage/files/files.h"

namespace troupe::storage {

inline void write_and_sync(Files& files, const std::string& path, std::string_view text) {
  auto file = files.create(path);
  REQUIRE(file);
  REQUIRE((*file)->write(std::as_bytes(std::span(text.data(), text.size()))));
  REQUIRE((*file)->sync());
  REQUIRE((*file)->close());
}

/// Checks what every file system promises, on disk, in memory or simulated. `root` must not exist.
inline void check_files_contract(Files& files, const std::string& root) {
  REQUIRE(files.make_directory(root + "/a/b"));
  REQUIRE(files.make_directory(root + "/a/b"));
  write_and_sync(files, root + "/a/one", "first");
  CHECK(files.read(root + "/a/one")->text() == "first");
  CHECK(files.inspect(root + "/a/one")->bytes == 5);
  CHECK_FALSE(files.create(root + "/a/one"));

  write_and_sync(files, root + "/a/two", "second");
  const auto held = files.read(root + "/a/one");
  REQUIRE(files.rename(root + "/a/two", root + "/a/one"));
  CHECK(files.read(root + "/a/one")->text() == "second");
  CHECK(held->text() == "first");
  CHECK_FALSE(*files.exists(root + "/a/two"));

  const auto entries = files.list(root + "/a");
  REQUIRE(entries);
  REQUIRE(entries->size() == 2);
  CHECK((*entries)[0].name == "b");
  CHECK((*entries)[0].kind == DirectoryEntry::Kind::directory);
  CHECK((*entries)[1].name == "one");
  CHECK((*entries)[1].bytes == 6);

  {
    auto file = files.append(root + "/a/one");
    REQUIRE(file);
    const std::string_view more = " and third";
    REQUIRE((*file)->write(std::as_bytes(std::span(more.data(), more.size()))));
    REQUIRE((*file)->close());
    CHECK(files.read(root + "/a/one")->text() == "second and third");
    const auto reader = files.open(root + "/a/one");
    REQUIRE(reader);
    CHECK((*reader)->size() == 16);
    std::string part(5, ' ');
    REQUIRE((*reader)->read(11, std::as_writable_bytes(std::span(part))));
    CHECK(part == "third");
  }

  REQUIRE(files.link(root + "/a/one", root + "/a/same"));
  CHECK_FALSE(files.link(root + "/a/one", root + "/a/same"));
  CHECK(files.read(root + "/a/same")->text() == "second and third");
  CHECK(files.remove(root + "/a/same"));
  REQUIRE(files.sync_directory(root + "/a"));

  {
    const auto lock = files.lock(root + "/a/lock", "the first");
    REQUIRE(lock);
    const auto second = files.lock(root + "/a/lock", "the second");
    REQUIRE_FALSE(second);
    CHECK(second.error().text.find("the first") != std::string::npos);
  }
  CHECK(files.lock(root + "/a/lock", "the second"));
  CHECK(files.remove(root + "/a/lock"));

  REQUIRE(files.rename(root + "/a", root + "/c"));
  CHECK(files.read(root + "/c/one")->text() == "second and third");
  CHECK(*files.exists(root + "/c/b"));
  CHECK_FALSE(*files.exists(root + "/a"));
  REQUIRE(files.make_directory(root + "/a/b"));
  write_and_sync(files, root + "/a/full", "");
  CHECK_FALSE(files.rename(root + "/c", root + "/a"));
  CHECK_FALSE(files.rename(root + "/c", root + "/none/c"));
  REQUIRE(files.remove(root + "/a/full"));
  REQUIRE(files.remove(root + "/a/b"));
  REQUIRE(files.remove(root + "/a"));
  REQUIRE(files.rename(root + "/c", root + "/a"));

  CHECK_FALSE(files.remove(root + "/a"));
  CHECK(files.remove(root + "/a/b"));
  CHECK(files.remove(root + "/a/one"));
  CHECK(files.remove(root + "/a"));
  CHECK_FALSE(files.read(root + "/a/one"));
  CHECK_FALSE(files.open(root + "/a/one"));
  CHECK_FALSE(files.inspect(root + "/a/one"));
  CHECK_FALSE(files.read(root));
  CHECK_FALSE(files.list(root + "/a"));
  write_and_sync(files, root + "/file", "");
  CHECK_FALSE(files.make_directory(root + "/file/below"));
  CHECK_FALSE(files.create(root + "/none/file"));
  CHECK(*files.free_space(root) > 0);
}

}  // namespace troupe::storage
