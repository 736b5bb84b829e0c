// Lies in a folder that only its opener's `$ORIGIN` leads to.
extern "C" [[gnu::visibility("default")]] int Neighbour() { return 1; }
