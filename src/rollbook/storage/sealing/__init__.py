"""From the journal to Parquet: segments and frames become parts, and small parts become large ones."""
