"""The simulated sofascore: JSON about football matches, the page that asks for it, and a push channel."""
