"""The live view for readers: what the newest polls said. It can be built again, so it never holds anyone up."""
