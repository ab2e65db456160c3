"""The model: a match of which everything is known, watched through the real pipeline and store while things break."""
