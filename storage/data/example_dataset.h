#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "storage/data/dataset.h"
#include "storage/data/text_samples.h"
#include "storage/tokenizer/tokenizer.h"

namespace troupe::storage {

/// Opens prompts with answers: a file of LineKind::examples. A sample is a prompt and its answer,
/// cut to needs.context tokens or padded at the end. Only tokens of the answer count as targets.
/// Examples whose prompt leaves no room for an answer are left out. `path` is for errors.
Result<std::unique_ptr<Dataset>> make_example_dataset(const std::string& path,
                                                      std::string_view contents,
                                                      const Tokenizer* tokenizer,
                                                      const TextOptions& options,
                                                      const DataNeeds& needs);

/// Opens sources with targets: a file of LineKind::pairs, for a model with an encoder and a
/// decoder. Both texts are cut to the lengths that the model takes, or padded at the end.
Result<std::unique_ptr<Dataset>> make_pair_dataset(const std::string& path,
                                                   std::string_view contents,
                                                   const Tokenizer* tokenizer,
                                                   const TextOptions& options,
                                                   const DataNeeds& needs);

/// Opens two texts on each line: a file of LineKind::sentences, for masked words. A sample has
/// both, one behind the other. If they are too long, the longer one is cut before its end.
Result<std::unique_ptr<Dataset>> make_sentence_dataset(const std::string& path,
                                                       std::string_view contents,
                                                       const Tokenizer* tokenizer,
                                                       const TextOptions& options,
                                                       const DataNeeds& needs);

}  // namespace troupe::storage
