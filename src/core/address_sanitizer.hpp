// Defines SHALE_ADDRESS_SANITIZER if the code is compiled with AddressSanitizer; g++ and clang
// announce this in different ways.
#pragma once

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SHALE_ADDRESS_SANITIZER 1
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define SHALE_ADDRESS_SANITIZER 1
#endif
