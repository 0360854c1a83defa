#include <cstdlib>

#include "storage/tokenizer/tokenizer.h"

using namespace troupe;
using namespace troupe::storage;

/// Reads any bytes as a tokenizer.json: gives an error, or a tokenizer that decodes texts to
/// themselves and survives writing and reading.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  auto tables = parse_tokenizer_json(text);
  if (!tables) {
    if (tables.error().text.empty()) std::abort();
    return 0;
  }
  const auto tokenizer = Tokenizer::make(std::move(*tables));
  if (!tokenizer) return 0;
  const auto prefix = tokenizer->tables().prefix_space;
  if (prefix == TokenizerTables::PrefixSpace::none)
    if (const auto back = tokenizer->decode(tokenizer->encode(text)); !back || *back != text)
      std::abort();
  const auto written = to_tokenizer_json(*tokenizer);
  const auto again = parse_tokenizer_json(written);
  if (!again || again->tokens != tokenizer->tables().tokens) std::abort();
  return 0;
}
