"""Shared by all packages: plain values, tables, clocks and keys, run.json, small files, texts."""
