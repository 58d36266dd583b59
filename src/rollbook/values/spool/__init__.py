"""Images and videos before encoding: raw pixels in `media/.spool`, and the encoders that create files."""
