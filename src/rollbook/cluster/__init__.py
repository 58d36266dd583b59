"""Many machines write one run: `rollbook.cluster.ray` for actors and tasks. See docs/cluster.md."""
