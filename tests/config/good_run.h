#pragma once

#include <map>
#include <string>
#include <vector>

#include "config/load.h"

/// A valid configuration, which tests change by settings.
extern const std::string good_run;

/// Returns a reader for files in memory.
troupe::config::ReadText in_memory(std::map<std::string, std::string> files);

/// Loads `run.toml` with this text and these settings.
troupe::Result<troupe::config::Loaded> load_text(const std::string& text,
                                                 std::vector<std::string> settings = {});

/// Returns all diagnostics of `good_run` with these settings; empty if it is valid.
std::string complaints(std::vector<std::string> settings);

/// Returns the first line of complaints() that says error or warning.
std::string complaint(std::vector<std::string> settings);
