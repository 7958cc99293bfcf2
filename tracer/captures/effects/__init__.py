"""What a traced function leaves behind: its result, and what it has changed in the heap. `finding` makes
recipes of that while it is traced; `recipes` says what they are, and makes the changes at each call."""
