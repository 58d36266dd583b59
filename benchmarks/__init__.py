"""What rollbook costs beside its peers, as ratios measured in one run on one machine: `make bench`."""
