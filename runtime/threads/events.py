"""Where compiled code writes what it has run: two words (how many events there were, how many there is
room for), and an event each: the program, its step, the thread, when it began and ended, in ticks."""

HEAD_BYTES = 16
EVENT_BYTES = 40
POOL = 0  # the program of an event that is a pool thread's part in a parallel step
