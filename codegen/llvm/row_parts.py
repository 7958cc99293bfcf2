"""Texts that the functions of `sorting` share: rows cut into parts, which threads take from each other.

    ROW = Fields("ptr keys, i64 n")     what the function that starts a parallel loop hands to its parts
    ROW.allocate()                      in that function: %ctx, %keys_at, %n_at
    ROW.store(keys="%x", n="%m")        and what is there
    ROW.load()                          in a part: %keys and %n

They are templates, like the functions that they are put into: a type may be `{E}`.
"""

from __future__ import annotations


class Fields:
    """The context of a parallel loop over parts of a row: typed names, eight bytes for each."""

    def __init__(self, fields: str) -> None:
        pairs = (field.split() for field in fields.split(", "))
        self.types = {name: type for type, name in pairs}

    def load(self) -> str:
        """Set %field to each of them, from %ctx."""
        return "".join(
            f"  %{name}_at = getelementptr i64, ptr %ctx, i64 {k}\n"
            f"  %{name} = load {type}, ptr %{name}_at, align 8\n"
            for k, (name, type) in enumerate(self.types.items())
        )

    def allocate(self) -> str:
        """Set %ctx to their memory and %field_at to the place of each."""
        places = (
            f"  %{name}_at = getelementptr i64, ptr %ctx, i64 {k}\n"
            for k, name in enumerate(self.types)
        )
        return f"  %ctx = alloca [{len(self.types)} x i64], align 8\n" + "".join(places)

    def store(self, **values: str) -> str:
        """Put values where `allocate` has said."""
        return "".join(
            f"  store {self.types[name]} {value}, ptr %{name}_at, align 8\n"
            for name, value in values.items()
        )


# How many blocks a row of %n elements has, and how long they are: by the row alone, not by threads.
CUT_ROW = """  %whole_blocks = udiv i64 %n, {block}
  %few = icmp ult i64 %whole_blocks, {most}
  %wanted = select i1 %few, i64 %whole_blocks, i64 {most}
  %none = icmp eq i64 %wanted, 0
  %blocks = select i1 %none, i64 1, i64 %wanted
  %up = add i64 %n, %blocks
  %up1 = sub i64 %up, 1
  %length = udiv i64 %up1, %blocks
"""

# Walk the blocks lo..hi; %start and %stop bound the elements of block %b.
EACH_BLOCK = """  br label %blocks
blocks:
  %b = phi i64 [ %lo, %entry ], [ %b_next, %next ]
  %more = icmp slt i64 %b, %hi
  br i1 %more, label %block, label %out
block:
  %start = mul i64 %b, %length
  %end = add i64 %start, %length
  %inside = icmp slt i64 %end, %n
  %stop = select i1 %inside, i64 %end, i64 %n
"""
NEXT_BLOCK = """next:
  %b_next = add i64 %b, 1
  br label %blocks
out:
  ret void
}}
"""
