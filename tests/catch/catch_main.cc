// Catch2 of Debian 12 comes without a library that has its main function.
#define CATCH_CONFIG_MAIN
#include <catch2/catch.hpp>
