"""Images and videos: the training process writes raw pixels to a spool, the keeper encodes them to files."""
