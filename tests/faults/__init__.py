"""The fault lab: faults that are done to real processes of the service, and what they then measure."""
