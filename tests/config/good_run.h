#pragma once

#include <map>
#include <string>
#include <vector>

#include "config/load.h"

/// A run that is good as it stands: text for settings to be laid over.
extern const std::string good_run;

/// Files in memory.
troupe::config::ReadText in_memory(std::map<std::string, std::string> files);

/// What `run.toml` with this text, and these settings, comes to.
troupe::Result<troupe::config::Loaded> load_text(const std::string& text,
                                                 std::vector<std::string> settings = {});

/// All that is said about `good_run` with these settings; empty where it is still good.
std::string complaints(std::vector<std::string> settings);

/// Of `complaints`, the line that says error or warning; the first, where there are several.
std::string complaint(std::vector<std::string> settings);
