// Catch2 of Debian 12 has no library with a main function.
#define CATCH_CONFIG_MAIN
#include <catch2/catch.hpp>
