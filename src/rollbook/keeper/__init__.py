"""The process next door: it seals, forwards, samples the host and finishes the book (see `keeper.main`)."""
