/// Suppressions for the packaged ZeroMQ, which is not instrumented, so that ThreadSanitizer reports
/// races in it. Hides only reports with ZeroMQ's frames on the stack.
extern "C" const char* __tsan_default_suppressions() { return "race:libzmq.so\n"; }
