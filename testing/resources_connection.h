// A FenceConnection to data that is opened as Resources, with a fence for each name: an adapter
// adds how the text of a resource is read and written through a fence.
#pragma once

#include "kit/try.h"
#include "testing/fence_conformance.h"

namespace leasehold::testing {

template <class Resources, class Fence>
class ResourcesConnection : public AdministeredConnection {
 public:
  // `other_url`: where other fences are, which know nothing of these.
  ResourcesConnection(const Adapter& adapter, const std::string& url, const std::string& other_url)
      : AdministeredConnection(adapter, url),
        resources_(Resources::open(url).value()),
        other_(Resources::open(other_url).value()) {}

  Result<std::string> enter_and_read(std::string_view resource, const Token& token,
                                     EntryMode mode) override {
    const auto fence = TRY(resources_.fence(resource));
    return read(fence, token, std::string(resource), patiently(mode));
  }
  Status enter_and_write(std::string_view resource, const Token& token, std::string_view value,
                         EntryMode mode, std::int64_t sequence) override {
    const auto fence = TRY(resources_.fence(resource));
    return write(fence, token, std::string(resource), std::string(value),
                 patiently(mode, sequence));
  }
  Result<std::string> read_beside(std::string_view resource, const Token& token) override {
    const auto fence = TRY(resources_.fence(resource));
    EnterOptions options = patiently(Entry::repeatable);
    options.access = Access::read;
    return read(fence, token, std::string(resource), options);
  }
  // Through another fence, which nobody else uses.
  Result<std::string> peek(std::string_view resource) override {
    return read(peep_hole(), test_token(1, 1), std::string(resource), {});
  }

 protected:
  Fence peep_hole() const { return other_.fence("peep").value(); }

  virtual Result<std::string> read(const Fence& fence, const Token& token,
                                   const std::string& resource, const EnterOptions& options) = 0;
  virtual Status write(const Fence& fence, const Token& token, const std::string& resource,
                       const std::string& value, const EnterOptions& options) = 0;

 private:
  const Resources resources_;
  const Resources other_;
};

}  // namespace leasehold::testing
