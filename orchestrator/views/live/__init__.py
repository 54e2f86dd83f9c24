"""A campaign at work as one picture that stays in place: drawn by `run` itself, or by `watch` from another terminal."""
