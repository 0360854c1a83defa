#include "actors/deferred_sends.h"

namespace troupe::actors {
namespace {

thread_local DeferredSends* deferred_sends = nullptr;

}  // namespace

DeferredSends::DeferredSends() { deferred_sends = this; }
DeferredSends::~DeferredSends() { deferred_sends = nullptr; }
DeferredSends* DeferredSends::of_this_thread() { return deferred_sends; }

}  // namespace troupe::actors
