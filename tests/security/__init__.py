"""Attacks: hostile clients, sites and files, against real processes and sockets."""
