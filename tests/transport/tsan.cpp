/// ThreadSanitizer sees the packaged ZeroMQ from outside only, where what it hands from thread to
/// thread looks like a race. Hides only what has ZeroMQ's own frames on its stack.
extern "C" const char* __tsan_default_suppressions() { return "race:libzmq.so\n"; }
