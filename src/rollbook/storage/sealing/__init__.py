"""Sealing: segments and frames of the journal become Parquet parts, and small parts become large ones."""
