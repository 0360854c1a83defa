#pragma once

#include <string>
#include <vector>

#include "config/load.h"
#include "core/value.h"

namespace troupe::config {

enum class Show { values, origins };

/// Writes the complete tree as TOML that parses to the same tree. A comment at each line tells what
/// the key affects and, with `origins`, where the value came from.
std::string show(const Loaded& loaded, Show what);

/// Returns a JSON Schema (2020-12) for configuration files.
Value json_schema();

/// Returns the reference page in Markdown, with a table for each section.
std::string reference_page();

/// Returns the page of the steps of model descriptions in Markdown.
std::string layers_page();

/// A completion of `--set` for a shell: "batch.global=" and the key's help.
struct Completion {
  std::string word;
  std::string help;
};
std::vector<Completion> completions();

}  // namespace troupe::config
