// Stands between the adapter and the libraries below it, and does what they do on a bad day. Each
// lasts as long as the object.
#pragma once

namespace leasehold::testing {

// Requests to list a folder are taken, and never answered: the client library loses replies when a
// session ends while it is being closed.
class ListsAreLost {
 public:
  ListsAreLost();
  ~ListsAreLost();
  ListsAreLost(const ListsAreLost&) = delete;
};

// The next request for a list is not sent, nor what its connection sends after it.
class NextListHangs {
 public:
  NextListHangs();
  ~NextListHangs();
  NextListHangs(const NextListHangs&) = delete;
  void wait_for_it();
};

// The name server does not answer: host names cannot be looked up.
class NamesHang {
 public:
  NamesHang();
  ~NamesHang();
  NamesHang(const NamesHang&) = delete;
};

// To close a session takes its time.
class ClosingHangs {
 public:
  ClosingHangs();
  ~ClosingHangs();
  ClosingHangs(const ClosingHangs&) = delete;
  void wait_for_one();  // that is being closed
};

}  // namespace leasehold::testing
