"""The hot path: an append-only journal of fixed-width rows and checksummed frames (standard library and msgspec)."""
