"""Measurements on a GPU; each script says at its top how it is run."""
