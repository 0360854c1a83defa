// Tests which files a submitted run means, and what is said of files that are not there.

#include "apps/head/submitted_paths.h"

#include <string>

#include "catch.h"
#include "config/schema/dotted.h"
#include "storage/files/memory_files.h"

namespace troupe::apps {
namespace {

void put(storage::Files& files, const std::string& path) {
  REQUIRE(files.make_directory(storage::parent_of(path)).ok());
  REQUIRE(storage::replace_file(files, path, "x").ok());
}

std::string resolved(storage::Files& files, const std::string& key, const std::string& value) {
  Value config = Value::Map{};
  config::set_at(config, key, value);
  resolve_inputs(files, {"alpha", "/home/me"}, config);
  return *config::value_at(config, key)->text();
}

TEST_CASE("names of files in the submitter's folder become absolute", "[apps]") {
  storage::MemoryFiles files;
  for (const std::string name : {"book.txt", "words.json", "book_000000.bin", "w.safetensors"})
    put(files, "/home/me/" + name);
  CHECK(resolved(files, "data.train", "book.txt") == "/home/me/book.txt");
  CHECK(resolved(files, "data.train", "book_*.bin") == "/home/me/book_*.bin");
  CHECK(resolved(files, "data.validate", "book.txt?tokenizer=words.json") ==
        "/home/me/book.txt?tokenizer=/home/me/words.json");
  CHECK(resolved(files, "model.init", "w.safetensors") == "/home/me/w.safetensors");
}

TEST_CASE("other names stay as they are", "[apps]") {
  storage::MemoryFiles files;
  put(files, "/home/me/1f1b");
  put(files, "/home/me/book.txt");
  const std::pair<std::string, std::string> kept[] = {
      {"data.train", "other.txt"},
      {"data.train", "other_*.bin"},
      {"data.train", "/data/book.txt"},
      {"data.train", "made:markov?states=4"},
      {"model.init", "random"},
      {"model.init", "run:own"},
      {"pipeline.schedule", "1f1b"},
      {"data.validate", "other.txt?tokenizer=none.json"},
      {"train.export", "weights.safetensors"}};
  for (const auto& [key, value] : kept) CHECK(resolved(files, key, value) == value);
}

TEST_CASE("the error for an absent file names the machine that was searched", "[apps]") {
  HostFacts head;
  head.host = "alpha";
  head.folder = "/srv";
  const Error absent{"data.train: book.txt: No such file or directory; it was looked for in /srv"};
  CHECK(with_place(absent, head, {"alpha", "/home/me"}).text == absent.text + ", and in /home/me");
  CHECK(with_place(absent, head, {"beta", "/srv"}).text ==
        absent.text +
            " on alpha, where the head runs; files of beta must be copied there, or lie on a disk "
            "that both have");
  CHECK(with_place(absent, head, {"alpha", "/srv"}).text == absent.text);
  CHECK(with_place(absent, head, {}).text == absent.text);
  CHECK(with_place({"seed: wrong"}, head, {"beta", "/srv"}).text == "seed: wrong");
}

}  // namespace
}  // namespace troupe::apps
