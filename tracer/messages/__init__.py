"""What went wrong, at which line of the user's, and what to write instead.

Errors of users carry their line and the remedy, and their tracebacks end at the user's frames;
`GraphError` is ours, and asks to be reported.
"""
