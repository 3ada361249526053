// When a session is closed under requests, ZooKeeper's library now and then drops those that were
// answered already, without a word and without freeing them. Connection::close() knows.
extern "C" const char* __lsan_default_suppressions();
extern "C" const char* __lsan_default_suppressions() {
  return "leak:libzookeeper_mt\n";
}
