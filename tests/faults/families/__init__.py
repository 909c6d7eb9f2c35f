"""The faults, one file per family; adding a file adds a family."""
