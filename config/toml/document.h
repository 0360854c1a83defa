#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "config/toml/diagnostics.h"
#include "config/toml/sources.h"
#include "core/result.h"
#include "core/value.h"

namespace troupe::config {

/// A run as its files say it, before anybody asked what the keys mean: `extends` was followed,
/// `--set` applied, the later won.
struct Document {
  Sources sources;
  Value tree;
  bool whole = true;  // Whether all files could be read: if not, a missing key means nothing.
};

/// How a file's text is had: tests have their own way.
using ReadText = std::function<Result<std::string>(const std::string& path)>;

/// From the file system; at most 1 MiB.
Result<std::string> read_text_file(const std::string& path);

struct DocumentRequest {
  std::string path;                        // TOML, or JSON where it ends in .json; "-" is JSON.
  std::vector<std::string> settings = {};  // "a.b=c", in order.
  ReadText read = read_text_file;          // Of "-" as well.
};

/// What is wrong goes to `found`.
Document read_document(const DocumentRequest& request, Diagnostics& found);

/// Puts settings over a document, in order.
void apply_settings(const std::vector<std::string>& settings, Document& document,
                    Diagnostics& found);

/// The body of a message. It stands for itself: `extends` is an error.
Document document_from(Value body, std::string name, Diagnostics& found);

}  // namespace troupe::config
