#include "storage/tokenizer/tokenizer.h"

namespace troupe::storage {
namespace {

Result<TokenizerTables> read_tables(Files& files, const std::string& path) {
  const auto bytes = files.read(path);
  if (!bytes) return bytes.error();
  if (name_of(path) != "vocab.json") {
    auto tables = parse_tokenizer_json(bytes->text());
    if (!tables) return within(path, tables.error());
    return tables;
  }
  const auto beside = path.substr(0, path.size() - name_of(path).size());
  const auto merges = files.read(beside + "merges.txt");
  if (!merges) return merges.error();
  auto tables = parse_vocab_and_merges(bytes->text(), merges->text());
  if (!tables) return within(path, tables.error());
  return tables;
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
  auto tables = read_tables(files, file);
  if (!tables) return tables.error();
  auto tokenizer = make(std::move(*tables));
  if (!tokenizer) return within(file, tokenizer.error());
  return tokenizer;
}

}  // namespace troupe::storage
