"""Write timelines and reports for people and for other programs."""
