"""The most frequent words of a text: right, tested, and slow."""


def top(text: str, count: int) -> list[tuple[str, int]]:
    """The `count` most frequent words with how often each is there; of equally frequent ones, the first by alphabet."""
    if count < 0:
        raise ValueError("count must be 0 or more")
    words = text.lower().split()
    found: list[tuple[str, int]] = []
    for word in words:
        if word not in [known for known, _ in found]:
            found.append((word, words.count(word)))
    found.sort(key=lambda pair: (-pair[1], pair[0]))
    return found[:count]
