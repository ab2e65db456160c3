"""The records that all packages share: matches, events, snapshots, commands. Pure."""
