#pragma once

#include <string>

#include "storage/tokenizer/fields.h"

namespace troupe::storage {

/// The settings of Metaspace, which is a splitter and a decoder: a visible character in the place
/// of each blank, and at the beginning of words.
struct Metaspace {
  std::string replacement;
  enum class Prepend { always, first, never } prepend = Prepend::always;
  bool split = true;

  static Result<Metaspace> read(Fields& fields);
};

}  // namespace troupe::storage
