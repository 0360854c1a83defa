#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "config/toml/diagnostics.h"
#include "config/toml/sources.h"
#include "core/result.h"
#include "core/value.h"

namespace troupe::config {

/// A configuration as its files and settings state it, before the keys are checked. Files that it
/// extends and `--set` are merged; later values win. If model.kind is the path of a description,
/// its content is model.description, and model.kind is its name.
struct Document {
  Sources sources;
  Value tree;
  bool whole = true;  // Whether all files could be read. If not, a missing key is no error.
};

/// Returns the folder of the text that contains a position: paths in it are relative to that.
std::filesystem::path folder_at(const Sources& sources, Position position);

/// Sets all positions in a tree. A message has no lines, so column 0 means all of it.
void put_everything_at(Position position, Value& value);

/// Reads the text of a file. Tests replace it.
using ReadText = std::function<Result<std::string>(const std::string& path)>;

/// Reads a file of at most 1 MiB.
Result<std::string> read_text_file(const std::string& path);

struct DocumentRequest {
  std::string path;  // TOML, or JSON if it ends in .json; "-" is JSON from stdin.
  std::vector<std::string> settings = {};  // "a.b=c", in order.
  ReadText read = read_text_file;          // Reads "-" too.
};

/// Reads a document. Adds all errors to `found`.
Document read_document(const DocumentRequest& request, Diagnostics& found);

/// Applies settings to a document, in order.
void apply_settings(const std::vector<std::string>& settings, Document& document,
                    Diagnostics& found);

/// Makes a document from the body of a message, in which `extends` is an error.
Document document_from(Value body, std::string name, Diagnostics& found);

}  // namespace troupe::config
