#pragma once

#include <string>
#include <vector>

#include "config/load.h"
#include "core/value.h"

namespace troupe::config {

enum class Show { values, origins };

/// The complete tree as TOML that reads back equal; a comment behind each line says whether it is
/// recipe or plan, and with `origins` where the value came from.
std::string show(const Loaded& loaded, Show what);

/// JSON Schema 2020-12 of a configuration file.
Value json_schema();

/// The reference page, in Markdown: a table for each section.
std::string reference_page();

/// What `--set` may name, for a shell to complete: "batch.global=" and what the key means.
struct Completion {
  std::string word;
  std::string help;
};
std::vector<Completion> completions();

}  // namespace troupe::config
