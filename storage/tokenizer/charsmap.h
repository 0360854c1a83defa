#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"

namespace troupe::storage {

/// The rules of SentencePiece that replace characters. A file has them as a double array, which is
/// a tree of the texts to replace, and as the texts that replace them, each with a zero behind it.
class Charsmap {
 public:
  /// Reads the base64 of a file's precompiled_charsmap.
  static Result<std::shared_ptr<const Charsmap>> read(std::string_view base64);

  std::string apply(std::string_view text) const;
  /// Returns the size of the longest text that replaces another.
  std::size_t longest() const { return longest_; }

 private:
  /// Appends what replaces a text. Returns false if no rule is for the beginning of the text.
  bool replace(std::string_view text, std::string& out) const;

  std::vector<std::uint32_t> units_;
  std::string texts_;
  std::size_t longest_ = 0;
};

}  // namespace troupe::storage
