"""The sidecar process: it seals, forwards, samples the host and finishes the run's files (see `keeper.main`)."""
