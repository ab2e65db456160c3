"""Where everything is put together: this package alone knows every concrete class.

One module a process, so that a scraper which has to be back in a second does not load the API's libraries first.
"""
