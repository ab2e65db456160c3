"""The words of the game: what a match, an event and a snapshot are. Nothing here waits or asks for the time."""
