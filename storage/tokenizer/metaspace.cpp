#include "storage/tokenizer/metaspace.h"

#include "core/text.h"

namespace troupe::storage {

Result<Metaspace> Metaspace::read(Fields& fields) {
  Metaspace read;
  read.replacement = fields.text("replacement");
  if (read.replacement.empty() ||
      first_character(read.replacement).bytes != read.replacement.size() ||
      first_character(read.replacement).is_malformed())
    fields.fail("replacement", "is \"" + read.replacement + "\"; one character was wanted");
  // Files of before 2023 have `add_prefix_space`, and the replacement a second time.
  if (fields.text("str_rep", read.replacement) != read.replacement)
    fields.fail("str_rep", "is not the replacement");
  const bool is_prefixed = fields.boolean("add_prefix_space", true);
  read.prepend = static_cast<Prepend>(
      fields.among("prepend_scheme", {"always", "first", "never"},
                   static_cast<std::size_t>(is_prefixed ? Prepend::always : Prepend::never)));
  if (!is_prefixed && read.prepend != Prepend::never)
    fields.fail("add_prefix_space", "is false, which contradicts prepend_scheme");
  read.split = fields.boolean("split", true);
  if (auto status = fields.finish(); !status) return status.error();
  return read;
}

}  // namespace troupe::storage
