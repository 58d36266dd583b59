"""What lies in a run folder: names of files, parts, columns, encodings, pyramids."""
