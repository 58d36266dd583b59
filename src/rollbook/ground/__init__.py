"""What every room needs, once: values made plain, tables, clocks and keys, run.json, small files, texts."""
