"""Pages for a browser: what surrounds the data, the match page of crex, and pages that mean harm."""
