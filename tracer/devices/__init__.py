"""Where programs run, and what is called with arrays that are on a GPU."""
