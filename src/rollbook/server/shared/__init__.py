"""What all subjects share: the runs and their readers, their rows, SQL in a locked process, the form of an endpoint."""
