"""What a function reads from outside of its arguments: found in its code, guarded, hashed.

Whatever tracing looked at is a guard, or the trace is not kept. Guards of names ask first whether
anything was assigned to the namespace at all. A fingerprint is a hash of a function and all that
its code reaches, values included, for traces on disk; a function for which no hash can stand is
traced in each process.
"""
