"""Pictures and films between training and their files: raw pixels in `media/.spool`, and what makes files of them."""
