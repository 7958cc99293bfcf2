"""Structured arrays: groups of arrays, one for each field, which stand in for them in a trace.

    particle = np.dtype([("x", "f8"), ("v", "f8"), ("id", "i4")])

    @jt.jit
    def step(p, dt):                    # p: three arrays, views of the caller's memory
        p["x"] += dt * p["v"]
        for i in range(len(p)):
            if p[i]["x"] > 1.0:
                p[i] = (0.0, 0.0, -1)

`kinds` says which arrays these are, and puts what compiled code gives together again; `arrays` is
what a traced function sees. Here is nothing of graphs: what happens to an array happens to its fields,
by their own operators.
"""
