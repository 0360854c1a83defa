#pragma once

#include <string>

#include "apps/host_facts.h"
#include "core/result.h"
#include "core/value.h"
#include "storage/files/files.h"

namespace troupe::apps {

/// The place of the person who submits a run.
struct Submitter {
  std::string host;    // The name of the machine; empty if it is unknown,
  std::string folder;  // as the working folder is then.
};

/// Makes the relative names of files absolute that a run reads and that lie in the submitter's
/// folder: data, tokenizers, first weights and a schedule file. Other names stay relative to the
/// head's folder. Names are looked for in the submitter's folder only if this machine has it.
void resolve_inputs(storage::Files& files, const Submitter& from, Value& config);

/// Adds to an error about an absent file which machine and folder were searched, if the submitter
/// is elsewhere.
Error with_place(Error error, const HostFacts& head, const Submitter& from);

}  // namespace troupe::apps
