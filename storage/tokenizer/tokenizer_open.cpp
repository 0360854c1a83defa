#include "storage/tokenizer/tokenizer.h"

namespace troupe::storage {
namespace {

Result<std::string> read_text(Files& files, const std::string& path) {
  const auto bytes = files.read(path);
  if (!bytes) return bytes.error();
  if (name_of(path) != "vocab.json") return std::string(bytes->text());
  const auto beside = path.substr(0, path.size() - name_of(path).size());
  const auto merges = files.read(beside + "merges.txt");
  if (!merges) return merges.error();
  auto json = json_of_gpt2(bytes->text(), merges->text());
  if (!json) return within(path, json.error());
  return json;
}

}  // namespace

Result<Tokenizer> Tokenizer::open(Files& files, const std::string& path) {
  auto file = path;
  const auto entry = files.inspect(path);
  if (!entry) return entry.error();
  if (entry->kind == DirectoryEntry::Kind::directory) {
    auto there = files.exists(file = path + "/tokenizer.json");
    if (there.ok() && !*there) there = files.exists(file = path + "/vocab.json");
    if (!there.ok()) return there.error();
    if (!*there) return Error{path + ": has neither tokenizer.json nor vocab.json with merges.txt"};
  }
  const auto text = read_text(files, file);
  if (!text) return text.error();
  auto tokenizer = read(*text);
  if (!tokenizer) return within(file, tokenizer.error());
  return tokenizer;
}

}  // namespace troupe::storage
