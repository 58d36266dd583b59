"""The folder of a run: sealing it into Parquet and reading it back."""
