"""Many runs: finding, filtering, grouping."""
