#pragma once

#include <string>
#include <vector>

#include "config/catalog.h"
#include "config/load.h"
#include "core/value.h"

namespace troupe::config {

enum class Show { values, origins };

/// The complete tree as TOML that reads back equal; a comment behind each line says whether it is
/// recipe or plan, and with `origins` where the value came from.
std::string show(const Loaded& loaded, Show what, const Catalog& catalog = built_in_catalog());

/// JSON Schema 2020-12 of a configuration file.
Value json_schema(const Catalog& catalog = built_in_catalog());

/// The reference page, in Markdown: a table for each section.
std::string reference_page(const Catalog& catalog = built_in_catalog());

/// What `--set` may name, for a shell to complete: "batch.global=" and what the key means.
struct Completion {
  std::string word;
  std::string help;
};
std::vector<Completion> completions(const Catalog& catalog = built_in_catalog());

}  // namespace troupe::config
