"""The faults, one file per family; whoever adds a file here has added a family."""
