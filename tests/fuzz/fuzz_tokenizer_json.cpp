#include <cstdlib>

#include "storage/tokenizer/text_stream.h"
#include "storage/tokenizer/tokenizer.h"

using namespace troupe;
using namespace troupe::storage;

/// Reads any bytes as a tokenizer.json: gives an error, or a tokenizer whose tokens of any text are
/// in its vocabulary, decode, and are the same once its JSON is read again.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto tokenizer = Tokenizer::read(text);
  if (!tokenizer) {
    if (tokenizer.error().text.empty()) std::abort();
    return 0;
  }
  const auto ids = tokenizer->encode(text);
  if (!tokenizer->decode(ids)) std::abort();
  TextStream stream(*tokenizer, tokenizer->around().before);
  // The stream decodes a window for each token: a part of the text is enough.
  for (std::size_t i = 0; i < std::min<std::size_t>(ids.size(), 256); ++i) stream.next(ids[i]);
  stream.rest();
  const auto again = Tokenizer::read(tokenizer->json());
  if (!again || again->encode(text) != ids) std::abort();
  return 0;
}
