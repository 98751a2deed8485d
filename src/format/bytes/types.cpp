#include "format/bytes/types.hpp"

#include <fmt/format.h>
#include <sys/random.h>

#include <cerrno>

#include "shale/error.hpp"

namespace shale::format {

uuid uuid::random() {
  uuid id;
  std::size_t got = 0;
  while (got < id.bytes.size()) {
    const auto n = ::getrandom(id.bytes.data() + got, id.bytes.size() - got, 0);
    if (n < 0 && errno != EINTR)
      throw error::from_errno(errc::io, "cannot get random bytes", errno);
    if (n > 0) got += static_cast<std::size_t>(n);
  }
  id.bytes[6] = static_cast<std::uint8_t>((id.bytes[6] & 0x0f) | 0x40);  // version 4: random
  id.bytes[8] = static_cast<std::uint8_t>((id.bytes[8] & 0x3f) | 0x80);  // the RFC 9562 variant
  return id;
}

std::string to_string(const uuid& id) {
  std::string text;
  for (std::size_t i = 0; i < id.bytes.size(); ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += fmt::format("{:02x}", id.bytes[i]);
  }
  return text;
}

}  // namespace shale::format
