#include "actors/withheld.h"

namespace troupe::actors {
namespace {

thread_local Withheld* withheld = nullptr;

}  // namespace

Withheld::Withheld() { withheld = this; }
Withheld::~Withheld() { withheld = nullptr; }
Withheld* Withheld::of_this_thread() { return withheld; }

}  // namespace troupe::actors
