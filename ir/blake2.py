"""`blake2b`, the hash of all keys, without OpenSSL: `hashlib` takes 4 ms to load that."""

try:
    from _blake2 import blake2b as blake2b
except ImportError:
    from hashlib import blake2b as blake2b
